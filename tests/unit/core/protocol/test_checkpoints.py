"""Checkpoints as the coordinator leads them: begun, complete, aborted, subsumed (ABS-3, ABS-4)."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.lifecycle.closing import Asked
from cutproof.reference_impl.core.vocabulary.causes import (
    CheckpointsFailed,
    Declined,
    NotStored,
    OtherBarrierFirst,
    SnapshotNotWritten,
    Subsumed,
    TimedOut,
)
from cutproof.reference_impl.core.vocabulary.effects import Discard, SaveJob, SendToTask, SetTimer, Store, Transact
from cutproof.reference_impl.core.vocabulary.events import Answered, Commanded, CommandKind
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Abort, Cancel, Complete, Trigger
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.status_changes import (
    AttemptStarted,
    CheckpointAborted,
    CheckpointAcknowledged,
    CheckpointTriggered,
)
from cutproof.reference_impl.core.vocabulary.timeouts import (
    CheckpointInterval,
    CheckpointTimeout,
    MinimumPause,
    RestartDelay,
)
from cutproof.reference_impl.core.vocabulary.transactions import AbortTransaction, Done
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
    discarded,
    handle,
    handles,
    of,
    sent_to_tasks,
    stored,
    timers,
)

# -- begun -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_triggered_only_when_its_id_is_durable() -> None:
    job = CoordinatorRig().up()
    save, again = job.timer(CheckpointInterval())
    assert isinstance(save, SaveJob)
    assert save.record.next_checkpoint == 2, "nobody will use its id again"
    assert again == SetTimer(CheckpointInterval(), 10_000)
    assert job.saved() == [
        CheckpointTriggered(1, 1, False),
        SetTimer(CheckpointTimeout(CheckpointId(1)), 40_000),
        SendToTask(SOURCE, Trigger(job=1, attempt=1, checkpoint=1)),
    ]


def test_ids_increase_over_what_was_aborted_and_over_attempts() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.decline(1)
    assert changes(job.trigger())[0] == (CheckpointTriggered, 2)
    job.lose()
    job.again()
    job.running()
    assert changes(job.trigger())[0] == (CheckpointTriggered, 3)


def test_only_so_many_at_a_time() -> None:
    job = CoordinatorRig(concurrent_checkpoints=2).up()
    job.trigger()
    job.trigger()
    assert job.timer(CheckpointInterval()) == [SetTimer(CheckpointInterval(), 10_000)]
    job.ack(1)
    assert job.timer(CheckpointInterval()) == [SetTimer(CheckpointInterval(), 10_000)], (
        "its record is still being stored"
    )
    job.stored(1)
    assert changes(job.trigger())[0] == (CheckpointTriggered, 3)


def test_a_checkpoint_that_was_aborted_makes_room() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.decline(1)
    assert changes(job.trigger())[0] == (CheckpointTriggered, 2)


def test_a_record_that_could_not_be_stored_makes_room() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1)
    job.store_fails(1)
    assert changes(job.trigger())[0] == (CheckpointTriggered, 2)


def test_a_savepoint_does_not_count() -> None:
    job = CoordinatorRig().up()
    job.command("savepoint")
    assert changes(job.saved())[0] == (CheckpointTriggered, 1)
    assert changes(job.trigger())[0] == (CheckpointTriggered, 2)
    job.ack(1)
    job.stored(1)
    assert timers(job.timer(CheckpointInterval())) == [CheckpointInterval()], "one is still under way"
    assert job.unsaved == []


def test_a_minimum_pause_is_kept() -> None:
    job = CoordinatorRig(minimum_pause_us=3_000).up()
    assert SetTimer(MinimumPause(), 3_000) in job.checkpoint(1)
    assert job.timer(CheckpointInterval()) == [SetTimer(CheckpointInterval(), 10_000)]
    assert job.timer(MinimumPause()) == []
    assert changes(job.trigger())[0] == (CheckpointTriggered, 2)


def test_no_pause_where_none_is_asked_for() -> None:
    assert timers(CoordinatorRig().up().checkpoint(1)) == []


def test_nothing_is_triggered_while_an_attempt_comes_up() -> None:
    job = CoordinatorRig()
    job.start()
    assert job.timer(CheckpointInterval()) == []
    job.saved()
    job.running(SOURCE, OP)
    assert job.timer(CheckpointInterval()) == []
    assert timers(job.running(SINK)) == [CheckpointInterval()]


def test_at_most_once_takes_no_checkpoints() -> None:
    job = CoordinatorRig(guarantee="at-most-once", sink="plain")
    job.start()
    job.saved()
    assert timers(job.running()) == []


# -- complete ----------------------------------------------------------------------------------------------------


def test_every_task_must_acknowledge() -> None:
    """The sinks alone are not enough (ABS-4)."""
    job = CoordinatorRig().up()
    job.trigger()
    assert job.ack(1, SINK) == []
    assert job.ack(1, SINK) == []
    assert job.ack(1, SOURCE) == []
    attempts = dict.fromkeys(TASKS, 1)
    assert job.ack(1, OP) == [CheckpointAcknowledged(1, 1), Store(complete_snapshot(1), attempts)]


def test_tasks_are_notified_only_once_the_record_is_durable() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    assert not addressed(Complete, job.ack(1))
    assert sent_to_tasks(Complete, job.stored(1)) == [
        (task, Complete(job=1, attempt=1, checkpoint=1, oldest=1)) for task in TASKS
    ]


def test_an_acknowledgement_repeated_while_the_record_is_stored_or_after_discards_nothing() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1)
    assert job.ack(1, OP) == []
    job.stored(1)
    assert job.ack(1, OP) == []


def test_states_in_the_coordinators_memory_come_with_the_acknowledgement() -> None:
    job = CoordinatorRig(snapshots_in_memory=True).up()
    job.trigger()
    state = TaskState(positions={0: 4})
    job.ack(1, state=state)
    (snapshot,) = stored(job.saved())
    assert snapshot == complete_snapshot(1, states=dict.fromkeys(TASKS, state))


def test_in_memory_it_is_durable_that_there_was_a_snapshot_before_anything_rests_on_it() -> None:
    job = CoordinatorRig(snapshots_in_memory=True).up()
    job.trigger()
    (save,) = job.ack(1, state=TaskState())
    assert isinstance(save, SaveJob)
    assert save.record.had_snapshot
    assert [type(effect) for effect in job.saved()] == [CheckpointAcknowledged, Store]
    job.stored(1)
    job.trigger()
    assert [type(effect) for effect in job.ack(2, state=TaskState())] == [CheckpointAcknowledged, Store], "said once"


def test_what_a_record_that_was_not_written_in_memory_would_have_covered_is_aborted_when_the_job_is_cancelled() -> None:
    """The job's record says that there was a snapshot; this coordinator knows that there was none."""
    job = CoordinatorRig(snapshots_in_memory=True).up()
    job.trigger()
    job.ack(1, state=TaskState())
    job.saved()
    job.store_fails(1)
    job.feed(Commanded(9, CommandKind.CANCEL))
    job.saved()
    sealed = Done(unfinished=(("sealed", CheckpointId(1)),))
    asked = [effect.request for effect in of(Transact, job.feed(Answered(Asked.FENCE, sealed)))]
    assert [one.name for one in asked if isinstance(one, AbortTransaction)] == ["sealed"]


def test_the_record_of_a_job_names_snapshots_in_files_too() -> None:
    job = CoordinatorRig().up()
    (first,) = of(SaveJob, job.timer(CheckpointInterval()))
    job.saved()
    job.ack(1)
    job.stored(1)
    (second,) = of(SaveJob, job.timer(CheckpointInterval()))
    assert (first.record.had_snapshot, second.record.had_snapshot) == (False, True)


# -- aborted ----------------------------------------------------------------------------------------------------


def aborts(checkpoint: int, attempt: int = 1) -> list[SendToTask]:
    return [SendToTask(task, Abort(job=1, attempt=attempt, checkpoint=checkpoint)) for task in TASKS]


def test_a_declined_checkpoint_is_aborted_and_what_there_is_of_it_discarded() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1, SOURCE)
    assert job.decline(1) == [
        CheckpointAborted(1, 1, Declined(OP, SnapshotNotWritten("no room"))),
        Discard((handle(1, SOURCE),)),
        *aborts(1),
    ]
    assert job.decline(1) == []
    assert job.timer(CheckpointTimeout(CheckpointId(1))) == []


def test_a_checkpoint_times_out() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    assert job.timer(CheckpointTimeout(CheckpointId(1))) == [
        CheckpointAborted(1, 1, TimedOut()),
        *aborts(1),
    ]


def test_a_complete_checkpoint_does_not_time_out() -> None:
    job = CoordinatorRig().up()
    job.checkpoint(1)
    assert job.timer(CheckpointTimeout(CheckpointId(1))) == []
    assert job.decline(1) == []


def test_a_late_acknowledgement_changes_nothing_and_its_state_is_discarded() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.decline(1)
    assert job.ack(1, SOURCE) == [Discard((handle(1, SOURCE),))]
    assert job.ack(7, SOURCE) == [Discard((handle(7, SOURCE),))], "of a checkpoint that never was"


def test_an_acknowledgement_by_a_stranger_is_discarded() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    assert job.ack(1, "op-7") == [Discard((handle(1, "op-7"),))]


def test_an_acknowledgement_of_an_older_attempt_is_discarded() -> None:
    job = CoordinatorRig().up()
    job.lose()
    job.again()
    job.running()
    job.trigger()
    assert job.ack(1, OP, attempt=1) == [Discard((handle(1, OP, attempt=1),))]
    assert [one.handles for one in stored(job.ack(1))] == [complete_snapshot(1, attempt=2).handles]


def test_what_may_still_be_written_of_it_is_discarded_again_and_again() -> None:
    """A task that was out of reach may write late."""
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1, SOURCE)
    job.decline(1)
    late = (handle(1, OP), handle(1, SINK))
    assert of(Discard, job.checkpoint(2)) == [Discard(late)]
    assert late == tuple(discarded(job.checkpoint(3)))[-2:]
    job.ack(1, OP)
    assert discarded(job.checkpoint(4))[-1] == handle(1, SINK), "what has been seen is settled"
    assert handle(1, OP) not in discarded(job.checkpoint(5))


def test_a_record_that_cannot_be_stored_aborts_the_checkpoint() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1)
    assert job.store_fails(1) == [CheckpointAborted(1, 1, NotStored("disk full")), Discard(handles(1)), *aborts(1)]


def test_a_completed_checkpoint_subsumes_older_ones_under_way() -> None:
    job = CoordinatorRig(concurrent_checkpoints=2).up()
    job.trigger()
    job.trigger()
    job.ack(1, SOURCE)
    job.ack(2)
    effects = job.stored(2)
    assert CheckpointAborted(1, 1, Subsumed(CheckpointId(2)), failed=False) in effects
    assert addressed(Abort, effects) == list(TASKS)
    assert discarded(effects) == [handle(1, SOURCE), handle(1, OP), handle(1, SINK)]
    assert changes(job.trigger())[0] == (CheckpointTriggered, 3)


def test_a_savepoint_under_way_is_not_subsumed() -> None:
    job = CoordinatorRig().up()
    job.command("savepoint")
    job.saved()
    job.checkpoint(2)
    job.ack(1)
    assert answer(job.stored(1)) == (9, 1, "")


def test_a_newer_checkpoint_under_way_is_not_subsumed() -> None:
    job = CoordinatorRig(concurrent_checkpoints=2).up()
    job.trigger()
    job.trigger()
    job.ack(1)
    job.stored(1)
    assert len(stored(job.ack(2))) == 1


# -- tolerated failures ------------------------------------------------------------------------------------------


def test_so_many_failed_checkpoints_in_a_row_are_tolerated() -> None:
    job = CoordinatorRig(tolerated_failures=2).up()
    for checkpoint in (1, 2):
        job.trigger()
        assert not addressed(Cancel, job.decline(checkpoint))
    job.trigger()
    effects = job.decline(3)
    assert addressed(Cancel, effects) == list(TASKS)
    assert timers(effects) == [RestartDelay()]
    (change,) = of(AttemptStarted, job.again())
    assert change.cause == CheckpointsFailed(Declined(OP, SnapshotNotWritten("no room")))


def test_a_checkpoint_that_is_declined_for_a_newer_barrier_is_no_failure() -> None:
    job = CoordinatorRig(tolerated_failures=0, concurrent_checkpoints=2).up()
    job.trigger()
    job.trigger()
    effects = job.decline(1, cause=OtherBarrierFirst())
    assert not addressed(Cancel, effects)
    assert [(change.checkpoint, change.failed) for change in of(CheckpointAborted, effects)] == [(1, False)]
    effects = job.decline(2)
    assert addressed(Cancel, effects) == list(TASKS)
    assert [(change.checkpoint, change.failed) for change in of(CheckpointAborted, effects)] == [(2, True)]


def test_what_is_aborted_with_its_attempt_is_no_failure() -> None:
    job = CoordinatorRig(concurrent_checkpoints=2).up()
    job.trigger()
    assert [change.failed for change in of(CheckpointAborted, job.lose())] == [False]


def test_a_complete_one_in_between_starts_the_count_again() -> None:
    job = CoordinatorRig(tolerated_failures=1).up()
    for checkpoint in (1, 3, 5):
        job.trigger()
        assert not addressed(Cancel, job.decline(checkpoint))
        job.checkpoint(checkpoint + 1)


def test_a_new_attempt_starts_the_count_again() -> None:
    job = CoordinatorRig(tolerated_failures=1).up()
    for checkpoint in (1, 2, 3):
        job.trigger()
        assert not addressed(Cancel, job.decline(checkpoint))
        job.lose()
        job.again()
        job.running()


def test_a_failure_does_not_count_once_a_newer_checkpoint_is_complete() -> None:
    job = CoordinatorRig(tolerated_failures=0, concurrent_checkpoints=2).up()
    job.trigger()
    job.ack(1)
    job.trigger()
    job.ack(2)
    job.stored(2)
    assert not addressed(Cancel, job.store_fails(1))


def test_failed_stores_count_too() -> None:
    job = CoordinatorRig(tolerated_failures=0).up()
    job.trigger()
    job.ack(1)
    assert addressed(Cancel, job.store_fails(1)) == list(TASKS)


# -- retained ----------------------------------------------------------------------------------------------------


def test_the_newest_is_kept_and_the_one_before_deleted() -> None:
    job = CoordinatorRig().up()
    assert of(Discard, job.checkpoint(1)) == []
    assert of(Discard, job.checkpoint(2)) == [Discard(handles(1), 1)]
    assert of(Discard, job.checkpoint(3)) == [Discard(handles(2), 2)]


def test_as_many_are_kept_as_asked_for() -> None:
    job = CoordinatorRig(retained_checkpoints=2).up()
    assert of(Discard, job.checkpoint(1)) + of(Discard, job.checkpoint(2)) == []
    assert of(Discard, job.checkpoint(3)) == [Discard(handles(1), 1)]


def test_a_savepoint_is_never_deleted_and_does_not_count() -> None:
    job = CoordinatorRig().up()
    job.checkpoint(1)
    assert of(Discard, job.savepoint(2)) == []
    assert of(Discard, job.checkpoint(3)) == [Discard(handles(1), 1)]
    assert of(Discard, job.checkpoint(4)) == [Discard(handles(3), 3)]


def test_an_older_record_that_is_stored_late_does_not_push_the_newer_one_out() -> None:
    job = CoordinatorRig(concurrent_checkpoints=2).up()
    job.trigger()
    job.trigger()
    job.ack(1)
    job.ack(2)
    job.stored(2)
    assert of(Discard, job.stored(1)) == [Discard(handles(1), 1)]
    job.lose()
    assert (AttemptStarted, 2) in changes(job.again())


# -- refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["checkpoint", "savepoint"])
def test_a_checkpoint_whose_attempt_fails_before_its_id_is_durable_is_never_triggered(what: str) -> None:
    job = CoordinatorRig().up()
    job.timer(CheckpointInterval()) if what == "checkpoint" else job.command("savepoint")
    job.lose()
    assert job.saved() == []


@pytest.mark.parametrize("in_flight", [True, False])
def test_a_record_says_whether_some_snapshot_of_it_holds_elements_in_flight(in_flight: bool) -> None:
    job = CoordinatorRig(alignment="unaligned").up()
    job.trigger()
    job.ack(1, SOURCE, SINK)
    (record,) = stored(job.ack(1, OP, in_flight=in_flight))
    assert record.in_flight is in_flight
