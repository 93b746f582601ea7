"""A committer as the work of a task: what it holds, when it asks, and when it lets its task finish (ABS-11)."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.sinks.committing import Committer
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.vocabulary.causes import StoreRefused
from cutproof.reference_impl.core.vocabulary.effects import Effect, Fail, SetTimer, Transact
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.events import Answered
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Committable, Settled
from cutproof.reference_impl.core.vocabulary.state import Sealed, TaskState, as_kept
from cutproof.reference_impl.core.vocabulary.timeouts import RetryRequest
from cutproof.reference_impl.core.vocabulary.transactions import Commit, Denied, Done, Finalise, NoAnswer
from unit.core.machines import ATTEMPT, output, row, spec
from unit.core.neighbours import Told

WRITER, COMMITTER = TaskId("sink-0"), TaskId("committer-0")


class Job:
    """A committer whose task is stood in for.  `is_last`: no global committer is behind it."""

    def __init__(self, *, is_last: bool = True, starts_from: int | None = None) -> None:
        self.spec = spec("committer-0", gates=(0,), outputs=() if is_last else (output("forward", 0),))
        self.parts, self.config = Parts(), Config(retry_us=60)
        self.starts_from = CheckpointId(starts_from) if starts_from is not None else None
        self.awaits_commits = False
        self.work = Committer(self.spec)
        task: Any = self
        self.work.task = task

    # what it stands in for

    def broadcast(self, element: object) -> list[Effect]:
        return [Told("sent", (element,))]

    def open_inputs(self) -> list[Effect]:
        return [Told("opened")]

    def finish(self) -> list[Effect]:
        return [Told("finished")]

    def await_commits(self) -> None:
        self.awaits_commits = True

    # what comes

    def holds(self, *checkpoints: int) -> Job:
        for checkpoint in checkpoints:
            self.work.on_committable(committable(checkpoint), 0)
        return self

    def complete(self, checkpoint: int) -> list[Effect]:
        return self.work.on_complete(CheckpointId(checkpoint))

    def answer(self, number: int, outcome: Done | Denied | NoAnswer | None = None) -> list[Effect]:
        return self.work.on_answered(Answered(number, outcome or Done()))


def named(checkpoint: int) -> str:
    return f"job-1/{WRITER}/3-{checkpoint}"


def committable(checkpoint: int) -> Committable:
    return Committable(named(checkpoint), CheckpointId(checkpoint), WRITER)


def sealed(checkpoint: int) -> Sealed:
    return Sealed(named(checkpoint), CheckpointId(checkpoint), WRITER)


def commit(number: int, checkpoint: int) -> Transact:
    return Transact(number, Commit(writer=COMMITTER, attempt=ATTEMPT, name=named(checkpoint)))


def settled(checkpoint: int) -> Told:
    return Told("sent", (Settled(CheckpointId(checkpoint)),))


def test_what_a_writer_sealed_is_committed_once_its_checkpoint_or_a_newer_one_is_complete() -> None:
    job = Job().holds(1, 2, 3)
    assert job.complete(2) == [commit(1, 1), commit(2, 2)]
    assert job.complete(2) == [], "both are asked for"
    assert job.complete(1) == [], "an older notification is late"
    assert job.complete(3) == [commit(3, 3)]


def test_a_committable_that_comes_twice_is_held_once_and_dropped_when_it_is_committed() -> None:
    job = Job().holds(1, 1, 2)
    job.complete(1)
    assert job.work.sealed == [sealed(1), sealed(2)]
    assert job.answer(1) == []
    assert job.work.sealed == [sealed(2)]


def test_a_commit_without_a_definite_answer_is_asked_for_again() -> None:
    job = Job().holds(1)
    job.complete(1)
    assert job.answer(1, NoAnswer(reason="silence")) == [SetTimer(RetryRequest(1), 60)]
    assert job.work.repeat(RetryRequest(1)) == [commit(1, 1)]
    job.answer(1)
    assert job.work.repeat(RetryRequest(1)) == []


def test_a_refused_commit_fails_the_task_by_name() -> None:
    job = Job().holds(1)
    job.complete(1)
    assert job.answer(1, Denied(reason="it is gone", transaction="of 1")) == [
        Fail(StoreRefused(COMMITTER, "of 1", "it is gone"))
    ]


def test_in_front_of_a_global_committer_it_makes_final_and_sends_on_and_says_up_to_where() -> None:
    job = Job(is_last=False).holds(1, 3)
    finalise = Transact(1, Finalise(writer=COMMITTER, attempt=ATTEMPT, name=named(1)))
    assert job.complete(2) == [finalise]
    assert job.answer(1) == [Told("sent", (committable(1),)), settled(2)]
    assert job.complete(2) == [], "it has said so"


def test_with_nothing_to_commit_a_global_committer_hears_that_at_once() -> None:
    assert Job(is_last=False).complete(4) == [settled(4)]
    assert Job().complete(4) == []


def test_its_state_is_what_it_holds_and_it_has_not_ended_while_a_global_committer_expects_more() -> None:
    for is_last in (True, False):
        state = TaskState(ended=True)
        Job(is_last=is_last).holds(1, 2).work.describe(state)
        assert state.transactions == as_kept([sealed(1), sealed(2)])
        assert state.ended is is_last


def test_restored_it_commits_what_its_snapshot_holds_and_forgets_what_overtook_the_barrier() -> None:
    job = Job(starts_from=2)
    job.work.adopt(TaskState(transactions=as_kept([sealed(2), sealed(3)])))
    assert job.work.on_restored() == [Told("opened"), commit(1, 2)]
    assert job.work.sealed == [sealed(2)]


def test_a_task_that_starts_from_nothing_opens_its_inputs() -> None:
    assert Job(is_last=False).work.on_restored() == [Told("opened")]


def test_it_finishes_when_it_was_ordered_to_and_all_that_is_due_is_committed() -> None:
    job = Job().holds(1, 2)
    assert job.work.on_terminate(CheckpointId(2)) == [commit(1, 1), commit(2, 2)]
    assert job.answer(2) == []
    assert job.answer(1) == [Told("finished")]


@pytest.mark.parametrize("checkpoint", [CheckpointId(4), None])
def test_with_nothing_due_it_finishes_at_once(checkpoint: CheckpointId | None) -> None:
    job = Job().holds(5)
    assert job.work.on_terminate(checkpoint) == [Told("finished")]


def test_no_answer_finishes_a_task_that_was_not_ordered_to() -> None:
    job = Job().holds(1)
    job.complete(1)
    assert job.answer(1) == []


def test_it_takes_no_records() -> None:
    with pytest.raises(ProtocolViolated, match="committer-0 takes no records"):
        Job().work.on_record(row(1, 10), 0)
