"""progress: what it sees, and that it accuses no correct run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cutproof.properties.invariants.progress import check
from cutproof.properties.model.history import (
    AttemptStarted,
    CommandReturned,
    CoordinatorDown,
    FaultFired,
    JobEnded,
    TaskFailed,
)
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, recovered, resting
from unit.properties.toy import Toy

ASKED = Asked(check)
judged, difference, reason = ASKED.judged, ASKED.difference, ASKED.reason


def finished() -> Toy:
    toy = recovered()
    toy.finish()
    return toy


def test_no_correct_run_is_accused() -> None:
    for case, history in correct_runs():
        verdict = check(Case(*case, history))
        assert isinstance(verdict, Holds), (case[0].name, verdict)


def test_what_was_achieved_after_healing_is_counted() -> None:
    toy = finished()
    healed = toy.seen.healed or 0
    commits = sum((one.committed or 0) > healed for one in toy.seen.transactions)
    assert judged(toy) == Holds(exercised=1 + commits + 1)


def test_without_any_fault_everything_counts() -> None:
    toy = Toy(counting())
    toy.start()
    toy.checkpoint_now()
    toy.finish()
    assert judged(toy) == Holds(exercised=2 + 4 + 1)


def test_nothing_expected_after_healing() -> None:
    toy = resting()
    toy.seen.healed = toy.order + 1
    assert reason(toy) == "not exercised"


@pytest.mark.parametrize("make", [finished, resting])
def test_a_failure_that_no_fault_explains(make: Callable[[], Toy]) -> None:
    toy = make()
    toy.seen.journal.append(TaskFailed(order=1, at_us=1, task="count-0", attempt=1, reason="KeyError: 3"))
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "unexplained failure"
    assert "KeyError: 3" in verdict.message
    assert verdict.tasks == ("count-0",)


def test_a_coordinator_that_falls_over_by_itself() -> None:
    toy = finished()
    toy.seen.journal.append(CoordinatorDown(order=1, at_us=1))
    assert difference(toy) == "unexplained failure"
    toy.seen.journal[-1] = CoordinatorDown(order=1, at_us=1, fault=0)
    assert isinstance(judged(toy), Holds)


def test_a_job_that_failed_and_reported_it_after_faults() -> None:
    toy = recovered()
    toy.end("failed", reason="restart attempts exhausted")
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "assumption broken"
    assert "restart attempts exhausted" in verdict.detail


def test_a_job_that_failed_and_reported_nothing() -> None:
    toy = recovered()
    toy.end("failed")
    assert difference(toy) == "job failed silently"


def test_a_job_that_failed_without_any_fault() -> None:
    toy = Toy(counting())
    toy.start()
    toy.end("failed", reason="no idea")
    assert difference(toy) == "job failed"


def failed(reason: str, *, restarts: int = -1, snapshots: str = "files") -> Toy:
    toy = recovered()
    toy.seen.restart_attempts, toy.seen.snapshots = restarts, snapshots
    toy.end("failed", reason=reason)
    return toy


@pytest.mark.parametrize(("restarts", "excused"), [(0, True), (1, True), (2, False), (8, False)])
def test_restarts_are_used_up_only_once_there_were_so_many(restarts: int, excused: bool) -> None:
    toy = failed("restarts are used up", restarts=restarts)  # two attempts were started
    if excused:
        assert reason(toy) == "assumption broken"
    else:
        assert difference(toy) == "job failed"


def test_a_number_that_no_attempt_was_started_with_used_up_nothing() -> None:
    """A part of a job is lost again while it is being numbered anew: no task came up with the number before."""
    toy = failed("restarts are used up", restarts=2)
    newest = next(entry for entry in reversed(toy.seen.journal) if isinstance(entry, AttemptStarted))
    newest.attempt += 1
    assert difference(toy) == "job failed"


def test_attempts_of_another_job_use_up_nothing() -> None:
    toy = recovered()
    toy.seen.restart_attempts = 1
    toy.cancel()
    toy.resume()
    toy.end("failed", reason="restarts are used up")
    assert difference(toy) == "job failed"


def test_snapshots_that_died_with_the_memory_they_were_in() -> None:
    assert difference(failed("its memory was lost", restarts=8, snapshots="memory")) == "job failed"
    for snapshots, expected in (("memory", Unknown), ("files", Violated)):
        toy = recovered()
        toy.seen.restart_attempts, toy.seen.snapshots = 8, snapshots
        toy.note(CoordinatorDown, fault=0)
        toy.end("failed", reason="its memory was lost")
        assert isinstance(judged(toy), expected)


@pytest.mark.parametrize(
    ("kind", "end_reason", "excused"),
    [
        ("fail-read", "the record of checkpoint 1 cannot be read", True),
        ("fail-read", "the record of checkpoint 9 cannot be read", False),
        ("fail-read", "something cannot be read", False),
        ("fail-read", "exit code 1", False),
        ("fail-read", "could not restore from chk-1/op-0", True),
        ("fail-write", "the record of checkpoint 1 cannot be read", False),
    ],
)
def test_a_snapshot_that_a_fault_made_unreadable_is_named(kind: str, end_reason: str, excused: bool) -> None:
    toy = recovered()
    toy.seen.restart_attempts = 8
    toy.note(FaultFired, fault=1, kind=kind, phase="recovering")
    toy.end("failed", reason=end_reason)
    assert isinstance(judged(toy), Unknown if excused else Violated)


def test_a_reason_that_an_earlier_job_had_excuses_no_later_one() -> None:
    toy = recovered()
    toy.seen.restart_attempts, toy.seen.snapshots = 8, "memory"
    toy.note(CoordinatorDown, fault=0)
    toy.cancel()
    toy.resume()
    toy.end("failed", reason="its memory was lost")
    assert difference(toy) == "job failed"


def test_a_job_that_failed_for_no_good_reason_is_not_forgiven_when_it_is_resumed() -> None:
    toy = failed("no idea", restarts=8)
    toy.resume()
    toy.finish()
    assert difference(toy) == "job failed"


def test_a_failed_job_that_was_resumed_is_judged_by_what_followed() -> None:
    toy = recovered()
    toy.end("failed", reason="restart attempts exhausted")
    toy.resume()
    toy.finish()
    assert isinstance(judged(toy), Holds)


def test_a_hang() -> None:
    toy = recovered()
    toy.seen.quiet = False
    assert difference(toy) == "no rest"


def test_a_hang_without_any_fault() -> None:
    toy = Toy(counting())
    toy.start()
    toy.seen.quiet = False
    assert difference(toy) == "no rest"


def test_a_hang_after_a_fault_that_healed_as_it_struck() -> None:
    toy = recovered()
    fired = next(entry for entry in toy.seen.journal if isinstance(entry, FaultFired))
    toy.seen.quiet, toy.seen.healed = False, fired.order
    assert any(isinstance(entry, TaskFailed) and entry.order > fired.order for entry in toy.seen.journal)
    assert difference(toy) == "no rest"


def test_a_fault_that_strikes_every_attempt_leaves_nothing_to_demand() -> None:
    toy = recovered()
    fired = next(entry for entry in toy.seen.journal if isinstance(entry, FaultFired))
    toy.seen.quiet, toy.seen.healed = False, fired.order
    toy.note(TaskFailed, task="count-0", attempt=toy.attempt, reason="raised", fault=fired.fault)
    assert reason(toy) == "assumption broken"


def test_a_job_that_ended_is_at_rest_whatever_lingers() -> None:
    toy = finished()
    toy.seen.quiet = False
    assert isinstance(judged(toy), Holds)


def test_of_an_unbounded_job_that_is_cut_off_what_was_offered_is_expected() -> None:
    toy = recovered(counting(bounded=False))
    toy.seen.quiet = False
    toy.read_all()
    assert difference(toy) == "input not covered"
    number = toy.trigger()
    toy.settle()
    toy.complete(number, notify=False)
    assert isinstance(judged(toy), Holds)


def test_a_fault_that_comes_again_and_again() -> None:
    toy = recovered()
    toy.seen.quiet = False
    toy.note(TaskFailed, task="count-0", attempt=2, reason="injected exception", fault=0)
    assert reason(toy) == "assumption broken"


def test_a_command_that_never_returns() -> None:
    toy = recovered()
    toy.stop()
    toy.seen.journal = [entry for entry in toy.seen.journal if not isinstance(entry, CommandReturned)]
    assert difference(toy) == "command never returned"


def test_a_commit_outstanding() -> None:
    toy = finished()
    transaction = next(one for one in toy.seen.transactions if one.rows and one.status == "committed")
    transaction.status, transaction.committed = "prepared", None
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "commit outstanding"
    assert verdict.checkpoint == transaction.checkpoint
    assert verdict.tasks == (transaction.task,)


def test_no_commit_is_expected_of_a_cancelled_job() -> None:
    toy = recovered()
    number = toy.trigger()
    toy.settle()
    toy.complete(number, notify=False)
    toy.cancel()
    assert any(one.status == "prepared" for one in toy.seen.transactions)
    assert isinstance(judged(toy), Holds)


def test_an_abort_outstanding() -> None:
    toy = recovered()
    toy.trigger()
    toy.settle()
    toy.kill("count-0")
    toy.restart()
    left = next(one for one in toy.seen.transactions if one.prepared and one.status == "aborted")
    left.status, left.aborted = "prepared", None
    toy.finish()
    left.status, left.aborted = "prepared", None
    assert difference(toy) == "abort outstanding"


def test_a_bounded_job_that_rests_without_an_end() -> None:
    toy = recovered()
    toy.read_all()
    toy.checkpoint_now()
    assert difference(toy) == "job never ended"


def test_input_that_no_snapshot_covers() -> None:
    toy = recovered(counting(bounded=False))
    toy.read_all()
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "input not covered"
    toy.checkpoint_now()
    assert isinstance(judged(toy), Holds)


def test_at_most_once_no_cover_is_expected() -> None:
    toy = recovered(counting(bounded=False), guarantee="at-most-once")
    toy.read_all()
    assert not isinstance(judged(toy), Violated)


def test_a_restart_out_of_nothing() -> None:
    toy = resting()
    toy.restart()
    assert difference(toy) == "restart without a failure"


def test_a_restart_that_a_late_detection_explains() -> None:
    toy = resting()
    toy.note(TaskFailed, task="count-0", attempt=2, reason="no heartbeat", fault=0)
    toy.restart()
    toy.checkpoint_now()
    assert isinstance(judged(toy), Holds)


def test_healing_is_not_awaited_when_nothing_fired() -> None:
    toy = Toy(counting(bounded=False))
    toy.start()
    toy.read_all()
    assert toy.seen.healed is None
    assert not any(isinstance(entry, (FaultFired, JobEnded)) for entry in toy.seen.journal)
    assert difference(toy) == "input not covered"


def test_sealed_rows_of_the_living_attempt_wait_for_the_next_snapshot() -> None:
    toy = resting()
    number = toy.trigger()
    toy.settle()
    toy.abort(number)
    assert any(one.status == "prepared" for one in toy.seen.transactions)
    assert isinstance(judged(toy), Holds)


def test_what_an_earlier_job_left_is_not_this_ones_debt() -> None:
    toy = recovered(counting(bounded=False))
    toy.trigger()
    toy.settle()
    toy.cancel()
    left = next(one for one in toy.seen.transactions if one.prepared and one.attempt == 2)
    toy.resume()
    left.status, left.aborted = "prepared", None
    toy.read_all()
    toy.checkpoint_now()
    assert isinstance(judged(toy), Holds)


@pytest.mark.parametrize("complete", [True, False])
def test_what_is_covered_is_reported(complete: bool) -> None:
    toy = Toy(counting(per_split=4, bounded=False))
    toy.start()
    toy.read("numbers-0")
    toy.settle()
    if complete:
        toy.checkpoint_now()
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    uncovered = "0 of them covered: no checkpoint was completed"
    until = "1 of them covered: checkpoint 1 is the newest" if complete else uncovered
    assert verdict.message == f"split 0 has 4 records, {until}"


def test_the_second_job_may_start_without_a_failure() -> None:
    toy = resting()
    toy.stop()
    toy.resume()
    toy.checkpoint_now()
    assert isinstance(judged(toy), Holds)
    toy.restart()
    assert difference(toy) == "restart without a failure"


def test_a_restart_after_checkpoints_that_came_to_nothing() -> None:
    toy = resting()
    toy.abort(toy.trigger())
    toy.restart()
    toy.checkpoint_now()
    assert isinstance(judged(toy), Holds)
