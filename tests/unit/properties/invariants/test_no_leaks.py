"""no-leaks: what it sees, and that it accuses no correct run."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.properties.invariants.no_leaks import check
from cutproof.properties.invariants.parts.struck_deletes import TRIES, struck_to_the_last
from cutproof.properties.model.history import (
    AttemptStarted,
    CheckpointTriggered,
    Completed,
    CoordinatorDown,
    CoordinatorUp,
    FaultFired,
    History,
    JobEnded,
    PersistentLog,
    SnapshotDeleted,
)
from cutproof.properties.model.struck import StruckDelete, TornWrite
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.quick_checker.case import Case
from cutproof.reference_impl.driver.durable.records import DELETE_TRIES
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, recovered
from unit.properties.toy import Toy

judged = Asked(check).judged


def accused(toy: Toy, history: History | None = None) -> Violated:
    verdict = judged(toy, history)
    assert isinstance(verdict, Violated)
    return verdict


def test_no_correct_run_is_accused() -> None:
    for case, history in correct_runs():
        verdict = check(Case(*case, history))
        assert isinstance(verdict, Holds), (case[0].name, verdict)


def test_garbage_is_counted() -> None:
    toy = recovered()
    history = toy.history()
    deleted = sum(len(entry.handles) for entry in history.journal if isinstance(entry, SnapshotDeleted))
    aborted = sum(one.status == "aborted" for one in history.transactions)
    assert judged(toy) == Holds(exercised=deleted + aborted + 6)


def test_nothing_became_garbage() -> None:
    toy = Toy(counting(bounded=False))
    toy.start()
    toy.read_all()
    toy.checkpoint_now()
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not exercised"


def test_a_run_without_rest_shows_nothing() -> None:
    toy = recovered()
    toy.seen.quiet = False
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not observable"


def test_an_open_transaction_of_a_dead_attempt() -> None:
    toy = recovered()
    history = toy.history()
    dead = next(one for one in history.transactions if one.attempt == 1 and one.prepared is None)
    history.residue.open_transactions.append(dead.name)
    verdict = accused(toy, history)
    assert verdict.difference == "transaction left"
    assert dead.name in verdict.message
    assert verdict.tasks == (dead.task,)


def test_a_second_open_transaction_of_a_living_sink() -> None:
    toy = recovered()
    toy.begin(toy.tasks["sink-0"])
    assert accused(toy).difference == "second open transaction"


@pytest.mark.parametrize("drain", [True, False])
def test_an_open_transaction_after_the_end(drain: bool) -> None:
    toy = recovered()
    toy.stop(drain=drain)
    assert isinstance(judged(toy), Holds)
    history = toy.history()
    history.residue.open_transactions.append(history.transactions[-1].name)
    assert accused(toy, history).difference == "transaction left"


def test_a_transaction_that_nobody_began() -> None:
    toy = recovered()
    toy.finish()
    history = toy.history()
    history.residue.open_transactions.append("stray")
    assert "no task began" in accused(toy, history).message


def test_sealed_for_a_checkpoint_that_was_aborted() -> None:
    toy = recovered()
    number = toy.trigger()
    toy.settle()
    toy.abort(number)
    toy.kill("count-0")
    toy.restart()
    toy.finish()
    history = toy.history()
    left = next(one for one in history.transactions if one.checkpoint == number)
    history.residue.prepared_transactions.append(left.name)
    verdict = accused(toy, history)
    assert verdict.difference == "transaction left"
    assert verdict.checkpoint == number


def test_a_cancelled_job_may_leave_what_a_completed_snapshot_holds() -> None:
    toy = recovered()
    number = toy.trigger()
    toy.settle()
    toy.complete(number, notify=False)
    toy.cancel()
    history = toy.history()
    assert history.residue.prepared_transactions
    assert isinstance(judged(toy, history), Holds)


def test_a_cancelled_job_may_not_leave_open_transactions() -> None:
    toy = Toy(counting())
    toy.start()
    toy.read("numbers-0")
    toy.settle()
    toy.cancel()
    history = toy.history()
    history.residue.open_transactions.append(history.transactions[0].name)
    assert accused(toy, history).difference == "transaction left"


def test_what_died_with_a_failed_job_is_nobodys() -> None:
    toy = recovered()
    toy.kill("sink-0")
    toy.end("failed", reason="restart attempts exhausted")
    history = toy.history()
    last = [one for one in history.transactions if one.attempt == 2][-1]
    history.residue.open_transactions.append(last.name)
    assert isinstance(judged(toy, history), Holds)


def test_a_file_of_a_subsumed_checkpoint() -> None:
    toy = recovered()
    toy.checkpoint_now()
    history = toy.history()
    handle = next(entry for entry in history.journal if isinstance(entry, SnapshotDeleted)).handles[0]
    history.residue.files.append(handle)
    verdict = accused(toy, history)
    assert verdict.difference == "file left"
    assert handle in verdict.message
    assert any("snapshot deleted" in words for words in verdict.events)


def test_a_file_that_nobody_knows() -> None:
    toy = recovered()
    history = toy.history()
    history.residue.files.append("7/count-0/1.part")
    assert accused(toy, history).difference == "file left"


def test_a_savepoint_stays() -> None:
    toy = recovered()
    savepoint = toy.checkpoint_now(savepoint=True)
    toy.checkpoint_now()
    history = toy.history()
    history.residue.retained.remove(savepoint)
    assert any(handle.startswith(f"{savepoint}/") for handle in history.residue.files)
    assert isinstance(judged(toy, history), Holds)


def test_a_checkpoint_under_way_is_no_garbage() -> None:
    toy = recovered()
    toy.trigger()
    toy.settle()
    assert isinstance(judged(toy), Holds)


def test_a_checkpoint_that_its_job_did_not_outlive_is() -> None:
    toy = recovered()
    number = toy.trigger()
    toy.settle()
    handles = [one.handle for one in toy.pending[number].values()]
    toy.cancel()
    history = toy.history()
    history.residue.files.append(handles[0])
    assert accused(toy, history).checkpoint == number


def test_only_the_checkpoint_under_way_is_none() -> None:
    """Another that was aborted meanwhile changes nothing, and its own files are garbage."""
    toy = recovered()
    aborted = toy.trigger()
    toy.settle()
    handle = next(iter(toy.pending[aborted].values())).handle
    meanwhile = toy.trigger()
    toy.settle()
    toy.abort(aborted)
    toy.complete(meanwhile)
    toy.trigger()
    toy.settle()
    assert isinstance(judged(toy), Holds)
    history = toy.history()
    history.residue.files.append(handle)
    assert accused(toy, history).checkpoint == aborted


def test_files_of_a_checkpoint_that_a_dead_attempt_was_taking() -> None:
    toy = recovered()
    number = toy.trigger()
    toy.settle()
    handle = next(iter(toy.pending[number].values())).handle
    toy.kill("count-0")
    toy.restart()
    toy.checkpoint_now()
    toy.seen.journal = [entry for entry in toy.seen.journal if type(entry).__name__ != "CheckpointAborted"]
    history = toy.history()
    history.residue.files.append(handle)
    assert accused(toy, history).difference == "file left"


@pytest.mark.parametrize(
    ("outlived", "was_deleted", "is_leak"), [(False, False, True), (True, False, False), (True, True, True)]
)
def test_a_log_that_is_on_record_may_be_made_until_its_writer_ends(
    outlived: bool, was_deleted: bool, is_leak: bool
) -> None:
    """One that stood still as it was about to make it, and was given up, makes it when nobody is there any more."""
    toy = recovered()
    toy.finish()
    history = toy.history()
    zombie = next(run for run in history.runs if (run.task, run.attempt) == ("count-0", 1))
    log = PersistentLog(name="job-1/log/count-0-1/0", task="count-0", attempt=1, opened=zombie.started + 1)
    log.cleared = zombie.started + 2 if was_deleted else None
    zombie.ended = last(toy, JobEnded) + 1 if outlived else zombie.ended
    history.logs.append(log)
    history.residue.logs.append(log.name)
    if is_leak:
        assert accused(toy, history).difference == "log left"
    else:
        assert isinstance(judged(toy, history), Holds)


def late_file(toy: Toy) -> str:
    """A checkpoint is aborted with its attempt; the file of it that somebody may write late."""
    number = toy.trigger()
    toy.settle()
    handle = next(iter(toy.pending[number].values())).handle
    toy.kill("count-0")
    toy.restart()
    return handle


def written_at(toy: Toy, handle: str, order: int) -> History:
    """The history with the file left, as if it had been written at `order`."""
    history = toy.history()
    next(entry for entry in history.stored if entry.handle == handle).order = order
    history.residue.files.append(handle)
    return history


def last(toy: Toy, sort: type) -> int:
    return max(entry.order for entry in (*toy.seen.journal, *toy.seen.completed) if isinstance(entry, sort))


def test_a_file_is_left_once_its_coordinator_completes_another_checkpoint() -> None:
    toy = recovered()
    handle = late_file(toy)
    early = written_at(toy, handle, last(toy, AttemptStarted))
    assert isinstance(judged(toy, early), Holds), "the next checkpoint deletes it"
    toy.checkpoint_now()
    completed = last(toy, Completed)
    assert accused(toy, written_at(toy, handle, completed - 1)).difference == "file left"
    assert isinstance(judged(toy, written_at(toy, handle, completed + 1)), Holds), "it was written after that"


def test_a_file_is_left_once_its_checkpoint_is_aborted_and_another_completes() -> None:
    toy = recovered()
    number, other = toy.trigger(savepoint=True), toy.trigger()
    toy.settle()
    handle = next(iter(toy.pending[number].values())).handle
    pending = toy.pending.pop(number)
    toy.complete(other)
    toy.pending[number] = pending
    toy.abort(number)
    history = toy.history()
    history.residue.files.append(handle)
    assert isinstance(judged(toy, history), Holds), "it was still wanted when the other completed"
    toy.checkpoint_now()
    history = toy.history()
    history.residue.files.append(handle)
    assert accused(toy, history).checkpoint == number


def test_what_is_written_after_a_new_coordinator_swept_nobody_knows_of() -> None:
    toy = recovered()
    toy.note(CoordinatorDown, fault=0)
    toy.note(CoordinatorUp)
    handle = late_file(toy)
    toy.note(CoordinatorDown, fault=0)
    toy.note(CoordinatorUp)
    toy.restart()
    toy.checkpoint_now()
    up = last(toy, CoordinatorUp)
    assert accused(toy, written_at(toy, handle, up - 1)).difference == "file left", "the new one swept"
    assert isinstance(judged(toy, written_at(toy, handle, up + 1)), Holds)
    toy.finish()
    assert accused(toy, written_at(toy, handle, up + 1)).difference == "file left", "it sweeps at the end"


def test_what_is_written_after_the_end_nobody_deletes() -> None:
    toy = recovered()
    handle = late_file(toy)
    toy.finish()
    end = last(toy, JobEnded)
    assert accused(toy, written_at(toy, handle, end - 1)).difference == "file left"
    assert isinstance(judged(toy, written_at(toy, handle, end + 1)), Holds)


@pytest.mark.parametrize(
    "told",
    [
        {"struck": TornWrite(handle="7/count-0"), "detail": "half of a snapshot"},
        {"detail": "half of 7/count-0 is written"},  # as histories of older runs have it
    ],
)
def test_half_a_file_is_left_as_a_whole_one_is(told: dict[str, Any]) -> None:
    toy = recovered()
    toy.note(FaultFired, fault=1, kind="tear-write", phase="running", attempt=2, **told)
    history = toy.history()
    history.residue.files.append("7/count-0")
    assert isinstance(judged(toy, history), Holds), "the next checkpoint deletes it"
    toy.checkpoint_now()
    history = toy.history()
    history.residue.files.append("7/count-0")
    assert accused(toy, history).difference == "file left"


def struck(toy: Toy, times: int) -> History:
    """The history in which faults struck so many deletes of a file, which is left; the next calls of `toy` go on."""
    for number in range(times):
        toy.note(FaultFired, fault=number, kind="fail-write", phase="finishing", struck=StruckDelete(handle="1/gone"))
    return left_over(toy)


def left_over(toy: Toy) -> History:
    history = toy.history()
    history.residue.files.append("1/gone")
    return history


def test_a_file_stays_if_faults_strike_each_try_to_delete_it_and_nobody_sweeps_later() -> None:
    toy = recovered()
    toy.checkpoint_now()
    assert accused(toy, struck(toy, TRIES - 1)).difference == "file left", "the last try would have deleted it"
    verdict = judged(toy, struck(toy, 1))
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "assumption broken"
    assert verdict.detail == "faults 0, 1, 2, 3, 0 struck each try to delete the file 1/gone"
    history = left_over(toy)
    history.residue.files.append("1/other")
    assert "1/other" in accused(toy, history).message, "no fault struck this one"
    assert isinstance(judged(toy), Holds), "it was deleted"
    toy.note(CoordinatorDown)
    toy.note(CoordinatorUp)
    assert accused(toy, left_over(toy)).difference == "file left", "the new coordinator swept"
    assert accused(toy, struck(toy, TRIES - 1)).difference == "file left", "it tries as often as the one before"
    assert isinstance(judged(toy, struck(toy, 1)), Unknown)
    toy.finish()
    assert accused(toy, left_over(toy)).difference == "file left", "it sweeps at the end"


def test_a_job_that_is_resumed_sweeps_what_could_not_be_deleted() -> None:
    toy = recovered()
    struck(toy, TRIES)
    toy.stop()
    assert isinstance(judged(toy, left_over(toy)), Unknown)
    toy.resume()
    assert accused(toy, left_over(toy)).difference == "file left"


@pytest.mark.parametrize(("before_the_end", "stays"), [(TRIES, True), (TRIES - 1, False)])
def test_a_job_ends_behind_the_deletes_of_its_last_sweep(before_the_end: int, stays: bool) -> None:
    """Another coordinator had led it before, so the store is swept at its end."""
    toy = recovered()
    toy.note(CoordinatorDown)
    toy.note(CoordinatorUp)
    struck(toy, TRIES - before_the_end)
    toy.note(CheckpointTriggered, checkpoint=9, job=1, attempt=2, savepoint=False)
    struck(toy, before_the_end)
    toy.note(JobEnded, job=1, status="finished")
    assert struck_to_the_last(toy.history()) == ({"1/gone": list(range(TRIES))} if stays else {})


def test_an_attempt_that_restarts_sweeps_nothing() -> None:
    toy = recovered()
    struck(toy, TRIES)
    toy.restart()
    assert isinstance(judged(toy, left_over(toy)), Unknown)


def test_the_judge_knows_how_often_the_engine_tries() -> None:
    assert TRIES == DELETE_TRIES


def test_what_died_before_a_job_was_cancelled_is_nobodys() -> None:
    toy = recovered()
    dead = toy.tasks["sink-0"].open
    assert dead is not None
    toy.kill("sink-0")
    toy.cancel()
    history = toy.history()
    history.residue.open_transactions.append(dead.name)
    assert isinstance(judged(toy, history), Holds)


def test_a_later_attempt_cleans_even_when_its_job_was_cancelled() -> None:
    toy = recovered()
    toy.cancel()
    history = toy.history()
    dead = next(one for one in history.transactions if one.attempt == 1 and one.prepared is None)
    history.residue.open_transactions.append(dead.name)
    assert accused(toy, history).tasks == (dead.task,)


@pytest.mark.parametrize(("kind", "kept"), [("fail-read", True), ("fail-write", False)])
def test_a_job_that_cannot_read_its_records_deletes_nothing(kind: str, kept: bool) -> None:
    toy = recovered()
    toy.note(FaultFired, fault=1, kind=kind, phase="recovering")
    toy.end("failed", reason="the record of checkpoint 1 cannot be read")
    history = toy.history()
    history.residue.retained.clear()
    history.residue.files.append("7/count-0/1.part")
    assert isinstance(judged(toy, history), Holds if kept else Violated)
