"""Scenarios that once showed a fault of the engine or of the judge: the correct engine keeps all that it promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.subject.run import Result, run
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import (
    AttemptStarted,
    CheckpointAborted,
    CommandIssued,
    CoordinatorUp,
    FaultFired,
    JobEnded,
)
from cutproof.properties.model.verdict import Holds, Unknown
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.spark.unasked import RETYPED, nothing_asked

HERE = Path(__file__).parent


ON_PROCESSES = [
    "fenced-before-it-was-cancelled",
    "in-flight-data-discarded-under-a-fork",
    "referred-to-by-the-older-of-two-in-memory",
]
"""Of these, only runs on processes showed the error."""


def result_of(name: str) -> Result:
    return run(SimulatedSubject(), read_scenario(HERE / f"{name}.json"))


@pytest.fixture(scope="module")
def processes(toxiproxy_server: Path) -> Iterator[ProcessesSubject]:
    subject = ProcessesSubject()
    yield subject
    subject.close()


@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("*.json")))
def test_it_holds(name: str) -> None:
    result = result_of(name)
    assert result.judgement.violated == {}
    assert isinstance(result.judgement.verdicts["progress"], Holds)


@pytest.mark.parametrize("name", ON_PROCESSES)
def test_it_holds_on_processes(processes: ProcessesSubject, name: str) -> None:
    assert run(processes, read_scenario(HERE / f"{name}.json")).judgement.violated == {}


@pytest.mark.parametrize("name", sorted(path.stem for path in (HERE / "failed").glob("*.json")))
def test_a_job_that_fails_for_lack_of_its_snapshots_is_accused_of_nothing(name: str) -> None:
    """Its coordinator died, and with it the memory that they were in."""
    result = result_of(f"failed/{name}")
    assert result.history.snapshots == "memory"
    assert result.judgement.violated == {}
    progress = result.judgement.verdicts["progress"]
    assert isinstance(progress, Unknown)
    assert "were in the memory of the coordinator that died" in progress.detail


def test_a_resumed_job_fails_on_processes_too_if_its_snapshots_died_before_it_began(
    processes: ProcessesSubject,
) -> None:
    """It began from nothing there, and committed rows again."""
    result = run(processes, read_scenario(HERE / "failed" / "resumed-as-its-snapshots-died-in-memory.json"))
    assert result.history.unapplied == []
    assert result.judgement.violated == {}
    assert [(one.job, one.status) for one in result.history.journal if isinstance(one, JobEnded)] == [
        (1, "stopped"),
        (2, "failed"),
    ]
    assert not any(isinstance(one, AttemptStarted) and one.job == 2 for one in result.history.journal)


def test_a_job_that_fails_on_an_abandoned_snapshot_is_accused_of_nothing() -> None:
    """Its user had begun another job from an older snapshot, and that job aborted a transaction of the newer one."""
    result = result_of("abandoned/a-newest-snapshot-behind-which-a-job-went-back")
    assert result.judgement.violated == {}
    progress = result.judgement.verdicts["progress"]
    assert isinstance(progress, Unknown)
    assert "transaction job-1/sink-0/1-2 has been aborted" in progress.detail


@pytest.mark.parametrize("name", sorted(path.stem for path in (HERE / "timed_out").glob("*.json")))
def test_a_job_whose_timeout_is_too_short_for_its_load_is_accused_of_nothing(name: str) -> None:
    """It has no fault, and tolerates one failed checkpoint: each of its attempts fails with the second one."""
    result = result_of(f"timed_out/{name}")
    assert result.judgement.violated == {}
    assert not any(isinstance(entry, FaultFired) for entry in result.history.journal)
    progress = result.judgement.verdicts["progress"]
    assert isinstance(progress, Unknown)
    assert "8 restarts are used up" in progress.detail
    result.history.short_timeout = msgspec.UNSET
    found = judge(result.scenario.workload, result.scenario.topology, result.history).violated["progress"]
    assert found.difference == "job failed", "with enough time for a barrier behind all records it would be the engine"


def test_a_table_may_hold_a_row_that_was_in_flight_at_the_cut_and_no_other() -> None:
    result = result_of("a-row-in-flight-at-a-cut-of-all-records")
    history = result.history
    (at,) = (at for at, row in enumerate(history.committed) if row[0] == 4)
    for value, violated in ((1, False), (2, False), (3, True)):
        history.committed[at] = (4, value, 0, 0)
        found = judge(result.scenario.workload, result.scenario.topology, history).violated
        assert ("exactly-once" in found) is violated, value


def test_a_job_that_is_cancelled_while_its_transactions_expire_is_accused_of_nothing() -> None:
    result = result_of("expired/cancelled-as-its-transaction-expires")
    assert result.judgement.violated == {}
    lost = result.judgement.verdicts["no-data-loss"]
    assert isinstance(lost, Unknown)
    assert lost.reason == "assumption broken"
    history = result.history
    (cancel,) = (one for one in history.journal if isinstance(one, CommandIssued))
    history.journal.remove(cancel)
    history.journal.insert(-1, cancel)
    found = judge(result.scenario.workload, result.scenario.topology, history).violated["no-data-loss"]
    assert found.difference == "lost row", "before it was cancelled the job could have said what was lost"


def test_an_older_checkpoint_completes_after_a_newer_one_was_aborted() -> None:
    history = result_of("counting-beside-an-abort").history
    assert [one.checkpoint for one in history.completed][:2] == [1, 3]


def test_an_end_does_not_stand_for_the_part_of_an_older_savepoint() -> None:
    history = result_of("savepoint-before-an-end").history
    assert not any(one.savepoint and one.finished for one in history.completed)


def test_a_savepoint_keeps_the_file_that_later_checkpoints_refer_to() -> None:
    history = result_of("savepoint-holds-a-last-state").history
    savepoint = next(one for one in history.completed if one.savepoint)
    shared = {handle for one in history.completed if one.finished for handle in one.handles.values()}
    assert shared & set(savepoint.handles.values())
    assert set(savepoint.handles.values()) <= set(history.residue.files)


def test_a_savepoint_that_completes_after_newer_checkpoints_can_be_restored() -> None:
    """Its source trims its log meanwhile, and keeps what the savepoint needs."""
    result = result_of("a-savepoint-behind-newer-checkpoints-of-a-trimmed-log")
    completed = [one.checkpoint for one in result.history.completed]
    assert completed.index(4) < completed.index(1)
    assert isinstance(result.judgement.verdicts["restorable"], Holds)


@pytest.mark.parametrize("name", ["readers-that-had-finished", "drained-at-rest-and-resumed"])
def test_a_job_that_nothing_ends_comes_to_rest(name: str) -> None:
    history = result_of(name).history
    assert history.quiet
    assert len(history.completed) < 100


@pytest.mark.parametrize("name", ["a-zombie-with-a-backlog", "a-late-write-at-the-end"])
def test_what_is_written_late_is_reported_and_deleted(name: str) -> None:
    result = result_of(name)
    assert isinstance(result.judgement.verdicts["no-leaks"], Holds)


def test_a_job_is_at_rest_only_when_another_checkpoint_has_cleared_up() -> None:
    history = result_of("given-up-just-before-the-end").history
    aborted = next(entry for entry in reversed(history.journal) if isinstance(entry, CheckpointAborted))
    of_aborted = [one.handle for one in history.stored if one.checkpoint == aborted.checkpoint]
    assert of_aborted, "something of it was written"
    last = max(one.order for one in history.completed)
    assert aborted.order < last
    assert not set(of_aborted) & set(history.residue.files)


def test_half_a_file_that_nobody_knows_of_stays_until_the_end() -> None:
    """The coordinator that asked for it is dead, and the next had swept before it was written."""
    history = result_of("half-written-between-two-coordinators").history
    (torn,) = [one for one in history.journal if isinstance(one, FaultFired) and one.kind == "tear-write"]
    up = next(one for one in history.journal if isinstance(one, CoordinatorUp))
    assert up.order < torn.order
    assert any(handle in torn.detail for handle in history.residue.files)


def test_pyspark_is_not_asked_where_a_task_had_finished_before_its_sum_was_retyped() -> None:
    """Its state stays as it was stored: PySpark had it in hundredths, and the engine and the quick checker whole."""
    result = result_of("judges-apart-on-a-retyped-sum")
    case = Case(result.scenario.workload, result.scenario.topology, result.history)
    assert nothing_asked(case) == RETYPED
