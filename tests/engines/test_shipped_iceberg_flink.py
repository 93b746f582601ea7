"""Iceberg's sink for Flink on a real cluster, whose task managers are killed amid a commit to the table.

It runs where Flink and Iceberg have been fetched (`cutproof pipeline try flink-iceberg` does that once), since the
tests do not fetch 400 MB.
"""

from __future__ import annotations

import importlib.util

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtAim, KillNode
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.library import SHIPPED
from cutproof.harness.user_pipelines.needs.supplies import missing
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.properties.model.verdict import Holds

ONE = SHIPPED["flink-iceberg"]
pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec(ONE.module) is None,
        reason=f"{ONE.module} is not installed: pip install 'cutproof[{ONE.extra}]'",
    ),
    pytest.mark.skipif(
        bool(missing(read_pipeline(ONE.path))),
        reason="Flink and Iceberg have not been fetched: `cutproof pipeline try flink-iceberg` fetches them, 400 MB",
    ),
]

TASK_MANAGERS = (2, 3)
"""numbers of processes, in the order of the file"""


def test_a_commit_that_a_kill_has_cut_off_is_made_once_after_the_restore() -> None:
    """With `sink="FlinkSink"` in place of `IcebergSink` such kills lose rows."""
    subject = PipelineSubject(ONE.path, {"sink": "IcebergSink", "alignment": "unaligned"})
    kills = tuple(KillNode(node=node, trigger=AtAim(aim="amid-a-commit")) for node in TASK_MANAGERS)
    result = run_on(subject, replace(subject.without_faults(60), faults=kills))
    assert result.history.unapplied == []
    wanted = {name: result.judgement.verdicts[name] for name in ("exactly-once", "no-data-loss", "progress")}
    assert {name: verdict for name, verdict in wanted.items() if not isinstance(verdict, Holds)} == {}
