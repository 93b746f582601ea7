"""Working state in files, whoever keeps them: a job loses none of it and gets none of it twice (ABS-8, ABS-10)."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.answers import expected_rows
from conformance.conforming import EXACTLY, PATIENTLY, committed, conforms
from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.reference_engine.services import rocksdb
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.port import Subject
from cutproof.harness.workloads.library import GENERAL
from cutproof.properties.model.history import AttemptStarted, FaultFired

FILES = {
    "state_backend": "lsm",
    "memtable_entries": 1,
    "compaction_files": 3,
    "compaction_us": 500,
    "checkpoint_interval_us": 2_000,
    "read_interval_us": 400,
    **PATIENTLY,
    "tolerated_failures": 20,
}
SEASONED = AtPoint(point="checkpoint-completed", occurrence=2)


@pytest.fixture(autouse=True)
def _there(subject: Subject) -> None:
    if "lsm" not in subject.capabilities.state_backends:
        pytest.skip(rocksdb.ADVICE)


def scenario(workload: str, *faults: Any, **engine: Any) -> Scenario:
    found = GENERAL[workload][1]()
    return Scenario(
        workload=found,
        topology=lay_out(found, dict.fromkeys([source.name for source in found.inputs], 2)),
        engine=Engine(**{**FILES, **engine}),
        faults=faults,
        seed=found.name,
    )


@pytest.mark.parametrize("snapshot_mode", ["asynchronous", "synchronous"])
@pytest.mark.parametrize(("workload", "keyed"), [("payments", "balance"), ("order-payments", "match")])
def test_state_in_files_is_restored(subject: Subject, workload: str, keyed: str, snapshot_mode: str) -> None:
    kill = KillTask(trigger=SEASONED, task=f"{keyed}-0")
    asked = scenario(workload, kill, snapshot_mode=snapshot_mode)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert [entry.restores for entry in result.history.journal if isinstance(entry, AttemptStarted)][1]


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", ["memtable-flushed", "files-compacted"])
def test_a_task_may_die_at_a_flush_and_at_a_compaction(subject: Subject, point: str, side: str) -> None:
    trigger = AtPoint(point=point, task="count-0", occurrence=30 if point == "memtable-flushed" else 8, side=side)
    asked = scenario("orders", KillTask(trigger=trigger, task="count-0"))
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert [entry.kind for entry in result.history.journal if isinstance(entry, FaultFired)] == ["kill-task"]
