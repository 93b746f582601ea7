"""Commands: nothing ends a job in their stead, and their answers are true."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cutproof.properties.invariants.progress import check
from cutproof.properties.model.history import CommandIssued, CommandReturned, CoordinatorDown, CoordinatorUp, JobEnded
from cutproof.properties.model.verdict import Holds, Violated
from unit.properties.asked import Asked
from unit.properties.histories import counting, recovered
from unit.properties.toy import Toy

judged = Asked(check).judged


def accused(toy: Toy) -> tuple[str, str]:
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    return verdict.difference, verdict.message


def stopped(*, drain: bool = False) -> Toy:
    toy = recovered()
    toy.stop(drain=drain)
    return toy


def drained() -> Toy:
    return stopped(drain=True)


def cancelled() -> Toy:
    toy = recovered()
    toy.checkpoint_now()
    toy.cancel()
    return toy


def resting() -> Toy:
    """An unbounded job that has covered all there is."""
    toy = recovered(counting(bounded=False))
    toy.read_all()
    toy.checkpoint_now()
    return toy


def issued(toy: Toy) -> CommandIssued:
    return next(entry for entry in toy.seen.journal if isinstance(entry, CommandIssued))


def returned(toy: Toy) -> CommandReturned:
    return next(entry for entry in toy.seen.journal if isinstance(entry, CommandReturned))


def ended(toy: Toy) -> JobEnded:
    return next(entry for entry in toy.seen.journal if isinstance(entry, JobEnded))


def saved(toy: Toy, *, begun: bool = True) -> int:
    """A savepoint at a user's wish."""
    number = 0 if begun else toy.trigger(savepoint=True)
    toy.note(CommandIssued, command=5, kind="savepoint")
    if begun:
        number = toy.trigger(savepoint=True)
    toy.settle()
    toy.complete(number)
    toy.note(CommandReturned, command=5, checkpoint=number)
    return number


# ends that nobody asked for


@pytest.mark.parametrize("make", [stopped, drained, cancelled])
def test_a_job_that_ends_as_requested(make: Callable[[], Toy]) -> None:
    assert isinstance(judged(make()), Holds)


@pytest.mark.parametrize("make", [stopped, drained, cancelled])
def test_a_job_that_ends_itself(make: Callable[[], Toy]) -> None:
    toy = make()
    status = ended(toy).status
    toy.seen.journal.remove(issued(toy))
    toy.seen.journal.remove(returned(toy))
    assert accused(toy) == ("ended without a command", f"job 1 was {status}, although no command had requested it")


def test_a_command_of_another_kind_is_no_excuse() -> None:
    toy = stopped()
    issued(toy).kind = "savepoint"
    assert accused(toy)[0] == "ended without a command"


@pytest.mark.parametrize("make", [stopped, drained])
def test_to_drain_and_not_to_are_two_commands(make: Callable[[], Toy]) -> None:
    toy = make()
    issued(toy).drain = not issued(toy).drain
    assert accused(toy)[0] == "ended without a command"


def test_a_command_for_an_earlier_job_is_no_excuse() -> None:
    toy = cancelled()
    toy.resume()
    toy.end("cancelled")
    assert accused(toy)[0] == "ended without a command"


def test_a_command_that_came_too_late_is_no_excuse() -> None:
    toy = cancelled()
    toy.seen.journal.remove(issued(toy))
    toy.note(CommandIssued, command=1, kind="cancel")
    assert accused(toy)[0] == "ended without a command"


# answers and what became of them


@pytest.mark.parametrize("make", [stopped, drained, cancelled])
def test_a_command_that_was_refused_and_obeyed(make: Callable[[], Toy]) -> None:
    toy = make()
    returned(toy).checkpoint, returned(toy).error = None, "the job is ending already"
    difference, message = accused(toy)
    assert difference == "command answered wrongly"
    assert message.endswith("the job is ending already")


@pytest.mark.parametrize("make", [stopped, drained, cancelled])
def test_a_coordinator_that_died_in_between_answers_for_nothing(make: Callable[[], Toy]) -> None:
    toy = make()
    answer = returned(toy)
    toy.seen.journal.remove(answer)
    toy.note(CoordinatorDown, fault=0)
    toy.note(CommandReturned, command=answer.command, error="the coordinator died")
    assert isinstance(judged(toy), Holds)
    down = next(entry for entry in toy.seen.journal if isinstance(entry, CoordinatorDown))
    down.order = issued(toy).order - 1
    assert accused(toy)[0] == "command answered wrongly"


def test_a_refused_command_may_be_repeated() -> None:
    toy = recovered()
    toy.note(CommandIssued, command=8, kind="stop-with-savepoint")
    toy.note(CommandReturned, command=8, error="its savepoint timed out")
    toy.stop()
    assert isinstance(judged(toy), Holds)


def test_a_savepoint_as_it_should_be() -> None:
    toy = resting()
    saved(toy)
    assert isinstance(judged(toy), Holds)


def test_a_savepoint_that_was_begun_before_it_was_asked_for() -> None:
    toy = resting()
    number = saved(toy, begun=False)
    assert accused(toy) == (
        "command not obeyed",
        f"the command savepoint was answered with checkpoint {number}, which is no complete savepoint taken for it",
    )


@pytest.mark.parametrize("named", [None, 1, 99])
def test_a_savepoint_that_is_not_there(named: int | None) -> None:
    toy = resting()
    saved(toy)
    returned(toy).checkpoint = named
    assert accused(toy)[0] == "command not obeyed"


def test_a_savepoint_that_was_answered_before_it_was_complete() -> None:
    toy = resting()
    saved(toy)
    answer = returned(toy)
    answer.order = issued(toy).order
    assert accused(toy)[0] == "command not obeyed"


def test_a_savepoint_that_failed_promises_nothing() -> None:
    toy = resting()
    saved(toy)
    returned(toy).checkpoint, returned(toy).error = None, "it timed out"
    assert isinstance(judged(toy), Holds)


def test_a_stop_rests_on_its_own_savepoint() -> None:
    toy = stopped()
    ended(toy).checkpoint = toy.seen.completed[0].checkpoint
    difference, message = accused(toy)
    assert difference == "command not obeyed"
    assert message.endswith("which is not its savepoint")


@pytest.mark.parametrize("make", [stopped, cancelled])
def test_a_job_that_finished_instead(make: Callable[[], Toy]) -> None:
    toy = make()
    ended(toy).status = "finished"
    difference, message = accused(toy)
    assert difference == "command not obeyed"
    assert message.endswith("and job 1 ended finished")


def test_a_cancel_may_overtake_a_stop() -> None:
    toy = stopped()
    toy.seen.journal.remove(ended(toy))
    toy.cancel()
    assert isinstance(judged(toy), Holds)


def test_a_stop_does_not_overtake_a_cancel() -> None:
    toy = cancelled()
    toy.seen.journal.insert(0, CommandIssued(order=1, at_us=1, command=9, kind="stop-with-savepoint"))
    ended(toy).status, ended(toy).checkpoint = "stopped", toy.checkpoint
    toy.seen.completed[-1].savepoint = True
    assert accused(toy) == ("command not obeyed", "the command cancel succeeded, and job 1 ended stopped")


def test_no_failure_comes_after_a_cancel_that_was_answered() -> None:
    toy = cancelled()
    ended(toy).status = "failed"
    assert accused(toy) == ("command not obeyed", "the command cancel succeeded, and job 1 ended failed")


def test_a_coordinator_that_takes_the_snapshots_with_it_fails_a_job_that_was_being_cancelled() -> None:
    toy = cancelled()
    ended(toy).status, ended(toy).reason = "failed", "its snapshots were in the memory of the coordinator that died"
    toy.seen.snapshots = "memory"
    assert accused(toy)[0] == "command not obeyed"
    last = toy.seen.journal.index(ended(toy))
    toy.seen.journal.insert(last, CoordinatorDown(order=ended(toy).order - 1, at_us=ended(toy).at_us, fault=0))
    assert not isinstance(judged(toy), Violated)


@pytest.mark.parametrize("make", [stopped, cancelled])
def test_a_job_that_lives_on(make: Callable[[], Toy]) -> None:
    toy = resting()
    kind = issued(make()).kind
    toy.note(CommandIssued, command=3, kind=kind)
    number = toy.checkpoint_now(savepoint=True) if kind != "cancel" else None
    toy.note(CommandReturned, command=3, checkpoint=number)
    assert accused(toy) == ("command not obeyed", f"the command {kind} succeeded, and the job is still running")


def test_a_resume_that_starts_nothing() -> None:
    toy = cancelled()
    toy.note(CommandIssued, command=2, kind="resume")
    toy.note(CommandReturned, command=2, checkpoint=toy.checkpoint)
    assert accused(toy) == ("command not obeyed", "the command resume succeeded, and no job began")


def test_a_resumed_job_may_die_before_its_first_attempt() -> None:
    toy = cancelled()
    toy.note(CommandIssued, command=2, kind="resume")
    toy.note(CommandReturned, command=2, checkpoint=toy.checkpoint)
    toy.note(CoordinatorDown, fault=0)
    toy.note(CoordinatorUp)
    toy.note(JobEnded, job=2, status="failed", reason="the record of checkpoint 1 cannot be read")
    assert not isinstance(judged(toy), Violated)


def test_a_command_after_the_end_is_for_nobody() -> None:
    toy = stopped()
    toy.note(CommandIssued, command=4, kind="cancel")
    toy.note(CommandReturned, command=4, error="the job has ended")
    assert isinstance(judged(toy), Holds)
