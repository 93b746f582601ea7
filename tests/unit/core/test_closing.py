"""Closing a job down: one writer after the other is shut out, and what no complete checkpoint covers is dropped."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.lifecycle.closing import Asked, close_step, requests
from cutproof.reference_impl.core.vocabulary.causes import CancelledByUser
from cutproof.reference_impl.core.vocabulary.effects import SetTimer, Transact
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.events import Answered, Closure
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.stages import (
    Closing,
    Covered,
    CoveredUpTo,
    Deciding,
    MayBeCovered,
    NothingCovered,
    Settling,
)
from cutproof.reference_impl.core.vocabulary.timeouts import RetryFence
from cutproof.reference_impl.core.vocabulary.transactions import AbortTransaction, Denied, Done, Fence, NoAnswer

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
