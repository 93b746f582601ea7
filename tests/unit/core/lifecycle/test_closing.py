"""Closing a job: it is decided, and durable; then one writer after the other is shut out, and what no complete
checkpoint covers is dropped."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import JobGraph
from cutproof.reference_impl.core.lifecycle.closing import Asked, JobClosing, close_step, requests
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.lifecycle.job_records import Close
from cutproof.reference_impl.core.protocol.checkpoints import BeingStored, PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.causes import CancelledByUser, JobClosed, Killed
from cutproof.reference_impl.core.vocabulary.effects import Return, SetTimer, Transact
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.events import Answered, Closure, CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.stages import (
    AwaitingRecords,
    Closing,
    Covered,
    CoveredUpTo,
    Deciding,
    MayBeCovered,
    NothingCovered,
    Settling,
    Working,
)
from cutproof.reference_impl.core.vocabulary.timeouts import RetryFence
from cutproof.reference_impl.core.vocabulary.transactions import AbortTransaction, Denied, Done, Fence, NoAnswer
from unit.core.coordinator_rig import GRAPH, SINK, TASKS, attempts_up_to, complete_snapshot
from unit.core.neighbours import Told, life_at, neighbour

CLOSURE = Closure(Status.CANCELLED, CancelledByUser())
UP_TO_FIVE = CoveredUpTo(CheckpointId(5))


def settling(*waiting: str, covered: Covered = UP_TO_FIVE) -> Closing:
    return Closing(CLOSURE, AttemptId(7), Settling(covered, tuple(TaskId(writer) for writer in waiting)))


STAGE = settling("sink-0", "sink-1")


def fence(writer: str) -> Transact:
    return Transact(Asked.FENCE, Fence(writer=writer, attempt=7))


def drop(writer: str, name: str) -> Transact:
    return Transact(Asked.ABORT, AbortTransaction(writer=writer, attempt=7, name=name))


def test_the_first_writer_is_asked_first() -> None:
    assert requests(STAGE) == [fence("sink-0")]


def test_each_writer_after_the_other() -> None:
    unfinished = (("older", 4), ("covered", 5), ("newer", 6), ("open", None))
    first, effects = close_step(STAGE, Answered(Asked.FENCE, Done(unfinished=unfinished)), 30)
    assert effects == [drop("sink-0", "newer"), drop("sink-0", "open"), fence("sink-0")]
    assert first == STAGE
    second, effects = close_step(first, Answered(Asked.FENCE, Done(unfinished=unfinished[:2])), 30)
    assert effects == [fence("sink-1")]
    assert second == settling("sink-1")
    assert close_step(second, Answered(Asked.FENCE, Done()), 30) == (settling(), [])


def test_an_abort_that_died_with_the_store_is_asked_again() -> None:
    """Nothing is heard of it but what the fence behind it finds."""
    left = Answered(Asked.FENCE, Done(unfinished=(("sealed", 6),)))
    once, effects = close_step(STAGE, left, 30)
    assert effects == [drop("sink-0", "sealed"), fence("sink-0")]
    assert close_step(once, Answered(Asked.ABORT, NoAnswer(reason="silence")), 30) == (once, [])
    assert close_step(once, Answered(Asked.FENCE, NoAnswer(reason="silence")), 30) == (
        once,
        [SetTimer(RetryFence(), 30)],
    )
    assert requests(once) == [fence("sink-0")]
    assert close_step(once, left, 30) == (once, effects)


@pytest.mark.parametrize("outcome", [NoAnswer(reason="silence"), Denied(reason="busy")])
def test_a_writer_that_could_not_be_shut_out_is_asked_again(outcome: NoAnswer | Denied) -> None:
    assert close_step(STAGE, Answered(Asked.FENCE, outcome), 30) == (STAGE, [SetTimer(RetryFence(), 30)])


def test_answers_that_nobody_waits_for_change_nothing() -> None:
    assert close_step(STAGE, Answered(Asked.ABORT, Done()), 30) == (STAGE, [])
    done = settling()
    assert close_step(done, Answered(Asked.FENCE, Done()), 30) == (done, [])


@pytest.mark.parametrize(
    ("covered", "aborted"),
    [(NothingCovered(), ["first", "second", "open"]), (MayBeCovered(), ["open"])],
)
def test_without_a_newest_checkpoint_all_that_is_sealed_goes_or_stays(covered: Covered, aborted: list[str]) -> None:
    """It goes if no checkpoint completed, and stays if one may have: it may have been promised."""
    unfinished = (("first", 1), ("second", 2), ("open", None))
    _, effects = close_step(settling("sink-0", covered=covered), Answered(Asked.FENCE, Done(unfinished=unfinished)), 30)
    assert effects == [*(drop("sink-0", name) for name in aborted), fence("sink-0")]


def test_nobody_is_shut_out_before_the_decision_is_durable() -> None:
    deciding = Closing(CLOSURE, AttemptId(7), Deciding())
    assert requests(deciding) == []
    assert close_step(deciding, Answered(Asked.FENCE, Done()), 30) == (deciding, [])


# -- the closing as a whole ------------------------------------------------------------------------


class Job:
    """It works in its sixth attempt, with these complete snapshots."""

    def __init__(self, *complete: CompletedCheckpoint, knows_all: bool = True, graph: JobGraph = GRAPH) -> None:
        self.life, self.under_way = life_at(Working()), UnderWay()
        self.attempts = attempts_up_to(6)
        self.completed = CompletedCheckpointStore(graph, Config(), Parts(), 1, self.under_way, named=None)
        self.completed.take_over(complete, knows_all=knows_all)
        self.records = neighbour("records")
        self.records.others_had_snapshot, self.records.has_begun = False, True
        self.closing = JobClosing(
            graph,
            Config(retry_us=30),
            life=self.life,
            attempts=self.attempts,
            under_way=self.under_way,
            completed=self.completed,
            records=self.records,
            cancellation=neighbour("cancellation"),
            ending=neighbour("ending"),
        )

    def settling(self, *waiting: TaskId, covered: Covered) -> Closing:
        return Closing(CLOSURE, AttemptId(7), Settling(covered, waiting))

    def closed(self) -> Job:
        """The decision is durable."""
        self.closing.close(CLOSURE)
        self.closing.decided(Close(None))
        return self


END = Told("ending.end_if_settled")


def test_the_attempt_is_given_up_and_the_decision_made_durable_under_a_number_that_fences_it() -> None:
    job = Job()
    assert job.closing.close(CLOSURE, command=3) == [
        Told("cancellation.end_last_attempt", (JobClosed(Status.CANCELLED),)),
        Told("records.save_closure", (CLOSURE, 3)),
    ]
    assert job.life.stage == Closing(CLOSURE, AttemptId(7), Deciding())
    assert job.attempts.newest == 7


def test_a_failed_job_is_closed_with_its_cause() -> None:
    job = Job()
    assert job.closing.fail(Killed())[-1] == Told("records.save_closure", (Closure(Status.FAILED, Killed()), None))


@pytest.mark.parametrize(("command", "answers"), [(3, [Return(3)]), (None, [])])
def test_the_user_hears_of_it_once_it_is_durable_and_then_writers_are_fenced(
    command: int | None, answers: list[Return]
) -> None:
    job = Job()
    job.closing.close(CLOSURE, command)
    assert job.closing.decided(Close(command)) == [*answers, fence(SINK), END]
    assert job.life.stage == job.settling(SINK, covered=NothingCovered())


def test_it_waits_for_a_record_that_was_being_stored_before_the_decision() -> None:
    job = Job()
    number = CheckpointId(4)
    being_stored = BeingStored(
        PendingCheckpoint(checkpoint=number, attempt=AttemptId(6), expected=TASKS), complete_snapshot(4)
    )
    job.under_way.storing = (being_stored,)
    job.closing.close(CLOSURE)
    assert job.closing.decided(Close(None)) == []
    assert job.life.stage == Closing(CLOSURE, AttemptId(7), AwaitingRecords())
    assert job.closing.resume() == []
    job.under_way.storing = ()
    job.completed.add(complete_snapshot(4))
    assert job.closing.resume() == [fence(SINK), END]
    assert job.life.stage == job.settling(SINK, covered=CoveredUpTo(number))
    assert job.closing.resume() == [], "it waits no more"


@pytest.mark.parametrize(
    ("complete", "knows_all", "others_had_snapshot", "covered"),
    [
        ((), True, False, NothingCovered()),
        ((4, 5), True, False, UP_TO_FIVE),
        ((4, 5), False, False, MayBeCovered()),
        ((), False, False, MayBeCovered()),
        ((), True, True, MayBeCovered()),
    ],
)
def test_what_may_have_been_promised_is_covered(
    complete: tuple[int, ...], knows_all: bool, others_had_snapshot: bool, covered: Covered
) -> None:
    job = Job(*map(complete_snapshot, complete), knows_all=knows_all)
    job.records.others_had_snapshot = others_had_snapshot
    assert job.closed().life.stage == job.settling(SINK, covered=covered)


@pytest.mark.parametrize("complete", [(), (4, 5)])
def test_a_job_that_was_refused_before_it_began_aborts_nothing_that_is_sealed(complete: tuple[int, ...]) -> None:
    """What newer snapshots of its origin cover may still be restored by another job."""
    job = Job(*map(complete_snapshot, complete))
    job.records.has_begun = False
    assert job.closed().life.stage == job.settling(SINK, covered=MayBeCovered())


def test_answers_of_the_store_lead_to_the_end() -> None:
    job = Job().closed()
    assert job.closing.on_answered(Answered(Asked.FENCE, NoAnswer(reason="silence"))) == [
        SetTimer(RetryFence(), 30),
        END,
    ]
    assert job.closing.fence_again(RetryFence()) == [fence(SINK)]
    assert job.closing.on_answered(Answered(Asked.FENCE, Done())) == [END]
    assert job.life.stage == job.settling(covered=NothingCovered())
    assert job.closing.fence_again(RetryFence()) == [], "nobody is left"


def test_a_job_that_is_not_being_closed_fences_nobody_and_takes_no_answer() -> None:
    job = Job()
    assert job.closing.on_answered(Answered(Asked.FENCE, Done())) == []
    assert job.closing.fence_again(RetryFence()) == job.closing.resume() == []
    assert job.life.stage == Working()
