"""How a job ends: the final checkpoint, Terminate until each has finished, closing down."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.lifecycle.closing import Asked
from cutproof.reference_impl.core.vocabulary.causes import CancelledByUser, JobClosed
from cutproof.reference_impl.core.vocabulary.effects import (
    EndJob,
    Return,
    SaveJob,
    SendToTask,
    SetTimer,
    Transact,
)
from cutproof.reference_impl.core.vocabulary.ends import JobEnd, Status
from cutproof.reference_impl.core.vocabulary.events import Closure
from cutproof.reference_impl.core.vocabulary.messages import Cancel, Complete, Deploy, Terminate, Trigger
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.status_changes import AttemptRunning, CheckpointTriggered
from cutproof.reference_impl.core.vocabulary.timeouts import CheckpointInterval, RetryFence, RetryTerminate
from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    Denied,
    Done,
    Fence,
    NoAnswer,
    NoCheckpoint,
)
from unit.core.coordinator_rig import (
    OP,
    SINK,
    SOURCE,
    TASKS,
    CoordinatorRig,
    addressed,
    answer,
    changes,
    complete_snapshot,
    deployed,
    end,
    of,
    sent_to_tasks,
    stored,
    timers,
)

SILENCE = NoAnswer(reason="silence")


# -- the end -----------------------------------------------------------------------------------------------------


def test_when_all_input_has_ended_one_final_checkpoint_is_taken() -> None:
    job = CoordinatorRig().up()
    assert job.ended(SOURCE, OP, OP) == []
    (save,) = job.ended(SINK)
    assert isinstance(save, SaveJob)
    assert sent_to_tasks(Trigger, job.saved()) == [(SOURCE, Trigger(job=1, attempt=1, checkpoint=1))]
    assert job.ended() == []
    (snapshot,) = stored(job.ack(1))
    assert snapshot.ending is JobEnd.FINISH
    effects = job.stored(1)
    assert sent_to_tasks(Terminate, effects) == [(task, Terminate(job=1, attempt=1, checkpoint=1)) for task in TASKS]
    assert not addressed(Complete, effects)


def test_nothing_else_is_triggered_while_it_ends() -> None:
    job = CoordinatorRig(concurrent_checkpoints=3).up()
    job.ended()
    job.saved()
    assert job.timer(CheckpointInterval()) == [SetTimer(CheckpointInterval(), 10_000)]
    assert answer(job.command("savepoint")) == (9, None, "the job is ending already")


def test_the_final_checkpoint_is_taken_again_when_it_was_aborted() -> None:
    job = CoordinatorRig().up()
    job.ended()
    job.saved()
    job.decline(1)
    assert timers(job.timer(CheckpointInterval())) == [CheckpointInterval()]
    assert changes(job.saved())[0] == (CheckpointTriggered, 2)


def test_input_that_ended_before_all_run_is_not_forgotten() -> None:
    job = CoordinatorRig()
    job.start()
    job.saved()
    job.ended()
    effects = job.running()
    assert [type(effect) for effect in effects] == [AttemptRunning, SaveJob, SetTimer]
    assert sent_to_tasks(Trigger, job.saved())


def test_input_that_ended_in_a_failed_attempt_must_end_again() -> None:
    job = CoordinatorRig().up()
    job.ended(SOURCE, OP)
    job.lose()
    job.again()
    job.running()
    assert job.ended(SINK) == []
    assert of(SaveJob, job.ended(SOURCE, OP))


def test_tasks_are_ordered_to_terminate_until_each_has_finished() -> None:
    job = CoordinatorRig().up()
    job.ended()
    job.saved()
    job.ack(1)
    job.stored(1)
    assert job.finished(OP) == []
    assert job.timer(RetryTerminate()) == [
        SendToTask(SOURCE, Terminate(job=1, attempt=1, checkpoint=1)),
        SendToTask(SINK, Terminate(job=1, attempt=1, checkpoint=1)),
        SetTimer(RetryTerminate(), 3_000),
    ]
    assert job.finished(OP, SINK) == []
    assert job.finished(SOURCE) == [EndJob(Status.FINISHED, 1)]
    assert job.timer(RetryTerminate()) == []
    assert job.finished(SOURCE) == []


def test_a_failure_while_terminating_starts_over_from_the_final_checkpoint() -> None:
    job = CoordinatorRig().up()
    job.ended()
    job.saved()
    job.ack(1)
    job.stored(1)
    job.finished(OP)
    assert addressed(Cancel, job.lose(SINK)) == list(TASKS)
    assert all(order.suspended and order.checkpoint == 1 for order in deployed(job.again()).values())
    assert addressed(Terminate, job.running()) == list(TASKS)
    assert end(job.finished()) == ("finished", 1, "")


def test_at_most_once_ends_without_a_checkpoint() -> None:
    job = CoordinatorRig(guarantee="at-most-once", sink="plain").up()
    assert sent_to_tasks(Terminate, job.ended()) == [
        (task, Terminate(job=1, attempt=1, checkpoint=None)) for task in TASKS
    ]
    assert end(job.finished()) == ("finished", None, "")


def test_at_most_once_does_not_rewind() -> None:
    job = CoordinatorRig(guarantee="at-most-once", sink="plain", coordinator={"initial": (complete_snapshot(3),)})
    job.start()
    assert deployed(job.saved())[OP] == Deploy(job=1, attempt=1)


@pytest.mark.parametrize(
    ("is_stored", "returned"), [(True, (9, 1, "")), (False, (9, None, "disk full"))], ids=["stored", "not stored"]
)
def test_a_job_does_not_end_while_a_record_is_being_stored(
    is_stored: bool, returned: tuple[int, int | None, str]
) -> None:
    """A savepoint that was asked for just before the end is answered by the store, and then the job ends."""
    job = CoordinatorRig().up()
    job.command("savepoint")
    job.saved()
    job.ended()
    job.saved()
    job.ack(2)
    job.stored(2)
    assert len(stored(job.ack(1))) == 1
    assert of(EndJob, job.finished()) == []
    effects = job.stored(1) if is_stored else job.store_fails(1)
    assert answer(effects) == returned
    assert isinstance(effects[-1], EndJob)
    assert end(effects) == ("finished", 2, "")


def test_a_late_record_does_not_end_a_job_whose_tasks_have_not_finished() -> None:
    job = CoordinatorRig().up()
    job.command("savepoint")
    job.saved()
    job.ended()
    job.saved()
    job.ack(2)
    job.stored(2)
    job.ack(1)
    job.finished(SOURCE, OP)
    assert of(EndJob, job.stored(1)) == []
    assert end(job.finished(SINK)) == ("finished", 2, "")


# -- closing down ------------------------------------------------------------------------------------------------


def test_a_cancelled_job_leaves_no_transaction_that_no_checkpoint_covers() -> None:
    job = CoordinatorRig().up()
    job.checkpoint(1)
    effects = job.command("cancel")
    assert of(Return, effects) == []
    assert addressed(Cancel, effects) == list(TASKS)
    assert of(SaveJob, effects)[0].record.closure == Closure(Status.CANCELLED, CancelledByUser())
    assert job.saved() == [Return(9), Transact(Asked.FENCE, Fence(writer=SINK, attempt=2))]
    unfinished = (("old", 1), ("newer", 2), ("open", None), ("before", NoCheckpoint.SEALED_FOR_NONE))
    drop = [Transact(Asked.ABORT, AbortTransaction(writer=SINK, attempt=2, name=name)) for name in ("newer", "open")]
    assert job.store_answers(Asked.FENCE, Done(unfinished=unfinished)) == [
        *drop,
        Transact(Asked.FENCE, Fence(writer=SINK, attempt=2)),
    ]
    assert job.store_answers(Asked.FENCE, Done(unfinished=unfinished[:1])) == [
        EndJob(Status.CANCELLED, 1, CancelledByUser())
    ]
    assert job.store_answers(Asked.ABORT, Done()) == []


def test_the_store_is_asked_until_it_answers() -> None:
    job = CoordinatorRig().up()
    job.command("cancel")
    job.saved()
    assert job.store_answers(Asked.FENCE, SILENCE) == [SetTimer(RetryFence(), 3_000)]
    assert job.timer(RetryFence()) == [Transact(Asked.FENCE, Fence(writer=SINK, attempt=2))]
    assert job.store_answers(Asked.FENCE, Denied(reason="not now")) == [SetTimer(RetryFence(), 3_000)]
    assert job.store_answers(Asked.ABORT, Done()) == [], "of an abort, which nobody waits for"
    assert end(job.store_answers(Asked.FENCE, Done())) == ("cancelled", None, "by its user")
    assert job.timer(RetryFence()) == []


def test_a_record_that_was_being_stored_counts_as_cover() -> None:
    """It was written before the decision to close was: both are durable in this order."""
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1)
    job.command("cancel")
    job.stored(1)
    job.saved()
    assert end(job.store_answers(Asked.FENCE, Done(unfinished=(("sealed", 1),)))) == ("cancelled", 1, "by its user")


def test_a_cancel_amid_a_completion_waits_for_its_record() -> None:
    """In memory the record is stored only once it is durable that there is one: after the cancel."""
    job = CoordinatorRig(snapshots_in_memory=True).up()
    job.trigger()
    job.ack(1, state=TaskState())
    job.command("cancel")
    assert len(stored(job.saved())) == 1
    assert job.saved() == [Return(9)], "nothing is fenced or dropped yet"
    assert of(Transact, job.stored(1)) == [Transact(Asked.FENCE, Fence(writer=SINK, attempt=2))]
    unfinished = (("sealed", 1), ("open", None))
    effects = job.store_answers(Asked.FENCE, Done(unfinished=unfinished))
    assert of(Transact, effects)[0] == Transact(Asked.ABORT, AbortTransaction(writer=SINK, attempt=2, name="open"))
    assert end(job.store_answers(Asked.FENCE, Done(unfinished=unfinished[:1]))) == ("cancelled", 1, "by its user")


def test_answers_of_the_store_mean_nothing_before_a_job_closes() -> None:
    assert CoordinatorRig().up().store_answers(Asked.FENCE, Done()) == []


def test_a_savepoint_that_is_under_way_when_the_job_ends_is_answered() -> None:
    job = CoordinatorRig().up()
    job.command("savepoint")
    job.saved()
    job.ended()
    job.saved()
    job.ack(2)
    job.stored(2)
    effects = job.finished()
    assert of(Return, effects) == [Return(9, cause=JobClosed(Status.FINISHED))]
    assert end(effects) == ("finished", 2, "")
