"""Flink's pipelines on a real cluster: killed, paused, stopped, drained and resumed.

They run where Flink has been fetched (`cutproof pipeline try flink-count` does that once), since the
tests do not fetch 330 MB.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtAim, AtTime, KillNode, PauseNode
from cutproof.harness.scenario.model import Resume, StopWithSavepoint
from cutproof.harness.subject.run import Result
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.library import SHIPPED
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import AttemptStarted, JobEnded
from cutproof.properties.model.verdict import Holds, Verdict, Violated

pytestmark = pytest.mark.skipif(
    not SHIPPED["flink-count"].is_installed,
    reason="Flink has not been fetched: `cutproof pipeline try flink-count` fetches it, 330 MB",
)

JOB_MANAGER, TASK_MANAGER = 1, 2
"""numbers of processes, in the order of the file"""
STORED = AtAim(aim="written-and-not-committed", after_us=50_000)


def ran(name: str, *faults: Any, commands: tuple[Any, ...] = (), records: int = 40, **parameters: str) -> Result:
    subject = PipelineSubject(SHIPPED[name].path, parameters)
    result = run_on(subject, replace(subject.without_faults(records), faults=faults, commands=commands))
    assert result.history.unapplied == []
    return result


def entries(result: Result, kind: type[Any]) -> list[Any]:
    return [entry for entry in result.history.journal if isinstance(entry, kind)]


def not_held(result: Result) -> dict[str, Verdict]:
    """The verdicts that should be Holds, and are not."""
    wanted = {name: result.judgement.verdicts[name] for name in ("exactly-once", "no-data-loss", "progress")}
    return {name: verdict for name, verdict in wanted.items() if not isinstance(verdict, Holds)}


@pytest.mark.parametrize(
    ("alignment", "backend"), [("aligned", "hashmap"), ("unaligned", "hashmap"), ("timeout", "rocksdb")]
)
def test_a_job_goes_on_from_its_checkpoint_when_a_task_manager_is_killed(alignment: str, backend: str) -> None:
    kill = KillNode(node=TASK_MANAGER, trigger=STORED)
    assert not_held(ran("flink-count", kill, alignment=alignment, backend=backend)) == {}


def test_a_job_is_given_its_checkpoint_when_the_job_manager_is_killed() -> None:
    assert not_held(ran("flink-count", KillNode(node=JOB_MANAGER, trigger=STORED), backend="rocksdb")) == {}


def test_a_job_that_begins_again_from_nothing_is_seen_to_repeat_rows(tmp_path: Path) -> None:
    """A client that forgets the checkpoints when the job manager is killed."""
    folder = tmp_path / "flink"
    shutil.copytree(SHIPPED["flink-count"].path.parent, folder)
    client, remembers = folder / "client.py", "snapshot = self.snapshot()"
    assert remembers in client.read_text()
    client.write_text(client.read_text().replace(remembers, "snapshot = None"))
    subject = PipelineSubject(folder / "count.toml")
    kill = KillNode(node=JOB_MANAGER, trigger=STORED)
    found = run_on(subject, replace(subject.without_faults(40), faults=(kill,))).judgement.verdicts["exactly-once"]
    assert isinstance(found, Violated)
    assert found.difference == "repeated row"


def test_a_task_manager_that_comes_back_as_a_zombie_changes_nothing() -> None:
    result = ran("flink-count", PauseNode(node=TASK_MANAGER, for_us=4_000_000, trigger=STORED))
    assert not_held(result) == {}
    assert entries(result, AttemptStarted)[-1].cause == "taskmanager1 was paused"


def test_a_job_goes_on_from_its_checkpoint_when_the_job_manager_was_paused_for_longer_than_a_heartbeat() -> None:
    result = ran("flink-count", PauseNode(node=JOB_MANAGER, for_us=4_000_000, trigger=STORED))
    assert not_held(result) == {}
    assert entries(result, AttemptStarted)[-1].cause == "jobmanager was paused"


KILL = KillNode(node=TASK_MANAGER, trigger=STORED)


def test_a_job_is_resumed_from_its_savepoint_with_more_subtasks() -> None:
    parallelism = dict.fromkeys(("input", "count1", "sink"), 3)
    commands = (StopWithSavepoint(trigger=STORED), Resume(trigger=AtTime(at_us=0), parallelism=parallelism))
    result = ran("flink-count", KILL, commands=commands, records=60)
    assert not_held(result) == {}
    assert [entry.status for entry in entries(result, JobEnded)] == ["stopped", "finished"]


@pytest.mark.parametrize(
    ("drain", "status", "other", "difference"),
    [(False, "stopped", "drained", "lost row"), (True, "drained", "stopped", "unexpected row")],
)
def test_a_drained_job_puts_out_its_open_windows_and_a_stopped_one_does_not(
    drain: bool, status: str, other: str, difference: str
) -> None:
    """And its rows, held against those of the other end, are found to be others: a window was open."""
    stop = StopWithSavepoint(trigger=AtAim(aim="halfway"), drain=drain)
    result = ran("flink-windows", KILL, commands=(stop,), records=60)
    assert not_held(result) == {}
    (end,) = entries(result, JobEnded)
    assert end.status == status
    end.status = other
    found = judge(result.scenario.workload, result.scenario.topology, result.history).verdicts["exactly-once"]
    assert isinstance(found, Violated)
    assert found.difference == difference
