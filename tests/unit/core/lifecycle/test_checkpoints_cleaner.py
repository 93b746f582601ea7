"""What is discarded of a job's checkpoints, and never what somebody needs (ABS-4)."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.snapshots.shared_files import SharedFiles
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.checkpoints_cleaner import CheckpointsCleaner
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.protocol.checkpoints import BeingStored, PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.effects import ClearLogs, Discard, Effect, Sweep
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle
from cutproof.reference_impl.core.vocabulary.messages import Ack
from unit.core.coordinator_rig import GRAPH, OP, SOURCE, TASKS, attempts_up_to, complete_snapshot, handle, handles

A, B = Handle("a"), Handle("b")


class Job:
    """A cleaner, and the checkpoints of which it cleans up."""

    def __init__(self, *retained: CompletedCheckpoint, **settings: Any) -> None:
        config, parts = Config(**settings), Parts()
        self.under_way = UnderWay()
        self.completed = CompletedCheckpointStore(GRAPH, config, parts, 1, self.under_way, named=None)
        self.completed.take_over(retained)
        self.files = SharedFiles(1, config, parts.increments, self.under_way, self.completed)
        self.attempts = attempts_up_to(4)
        self.cleaner = CheckpointsCleaner(
            1,
            GRAPH,
            config,
            parts,
            attempts=self.attempts,
            under_way=self.under_way,
            completed=self.completed,
            files=self.files,
        )

    def complete(self, snapshot: CompletedCheckpoint) -> list[Effect]:
        return self.cleaner.subsumed(self.completed.add(snapshot))

    def aborted(self, pending: PendingCheckpoint, *missing: Handle) -> list[Effect]:
        return self.cleaner.aborted(pending, missing)

    def refused(self, ack: Ack) -> list[Effect]:
        return self.cleaner.acknowledged(ack, None)


def pending(checkpoint: int, *acknowledged: Handle, **more: Any) -> PendingCheckpoint:
    by_task = dict(zip(TASKS, acknowledged, strict=False))
    number = CheckpointId(checkpoint)
    return PendingCheckpoint(checkpoint=number, attempt=AttemptId(1), expected=TASKS, acknowledged=by_task, **more)


def with_files(checkpoint: int, *needed: Handle, **more: Any) -> CompletedCheckpoint:
    return complete_snapshot(checkpoint, format="incremental", files={OP: needed}, **more)


def ack(checkpoint: int, *needed: Handle) -> Ack:
    number, attempt = CheckpointId(checkpoint), AttemptId(1)
    return Ack(job=1, attempt=attempt, task=OP, checkpoint=number, handle=handle(checkpoint, OP), files=needed)


def leftovers(*left: Handle, with_files: bool = False) -> list[Discard]:
    return [Discard(left, with_files=with_files)]


# -- leftovers -------------------------------------------------------------------------


def test_what_may_be_left_is_discarded_after_each_checkpoint_since_a_task_may_write_late() -> None:
    job = Job()
    assert job.cleaner.discard_leftovers() == []
    job.cleaner.discard_if_written(A)
    job.cleaner.discard_if_written(B)
    job.cleaner.discard_if_written(A)
    for _ in range(2):
        assert job.cleaner.discard_leftovers() == leftovers(A, B)


def test_leftovers_go_with_their_files_once_checkpoints_have_some() -> None:
    job = Job()
    job.cleaner.discard_if_written(A)
    job.files.base_of("incremental")
    assert job.cleaner.discard_leftovers() == leftovers(A, with_files=True)


def test_what_a_pending_checkpoint_took_stays_and_is_no_leftover() -> None:
    job = Job()
    for savepoint in (False, True):
        assert job.cleaner.acknowledged(ack(1), pending(1, savepoint=savepoint)) == [], savepoint
        assert job.cleaner.discard_leftovers() == [], savepoint


# -- aborted ----------------------------------------------------------------------------


def test_of_a_checkpoint_that_is_aborted_the_acknowledged_goes_at_once_and_the_missing_discard_if_written() -> None:
    job = Job()
    assert job.aborted(pending(1, A), B) == [Discard((A,))]
    assert job.cleaner.discard_leftovers() == leftovers(B)


def test_of_one_that_nobody_has_acknowledged_nothing_goes_at_once() -> None:
    assert Job().aborted(pending(1), A) == []


def test_what_complete_checkpoints_hold_stays_when_another_is_aborted() -> None:
    """The next attempt restores one of them."""
    assert Job(complete_snapshot(1)).aborted(pending(2, *handles(2))) == [Discard(handles(2))]


def test_with_it_go_the_files_that_nobody_else_needs() -> None:
    job = Job(with_files(1, A))
    assert job.aborted(pending(2, handle(2, SOURCE), files={OP: (A, B)})) == [Discard((handle(2, SOURCE), B))]


# -- refused acknowledgements --------------------------------------------------------------


def test_a_refused_state_is_discarded() -> None:
    assert Job(complete_snapshot(1)).refused(ack(2)) == [Discard((handle(2, OP),))]


def test_a_refused_state_that_a_complete_checkpoint_holds_stays() -> None:
    """The acknowledgement is a repeat that comes late."""
    assert Job(complete_snapshot(1)).refused(ack(1)) == []


def test_a_refused_state_of_a_checkpoint_whose_record_is_being_stored_stays() -> None:
    job = Job()
    job.under_way.storing = (BeingStored(pending(1, *handles(1)), complete_snapshot(1)),)
    assert job.refused(ack(1)) == []
    assert job.refused(ack(2)) == [Discard((handle(2, OP),))]


def test_a_refused_state_is_no_leftover_any_more() -> None:
    """It is written by now, and discarded."""
    job = Job()
    job.aborted(pending(1), handle(1, OP), handle(1, SOURCE))
    job.refused(ack(1))
    assert job.cleaner.discard_leftovers() == leftovers(handle(1, SOURCE))


def test_with_a_refused_state_go_its_files_that_nobody_else_needs() -> None:
    assert Job(with_files(1, A)).refused(ack(2, A, B)) == [Discard((handle(2, OP), B))]


# -- subsumed ------------------------------------------------------------------------------


def test_a_subsumed_checkpoint_goes_with_its_record_and_its_handles() -> None:
    job = Job(complete_snapshot(1))
    assert job.complete(complete_snapshot(2)) == [Discard(handles(1), CheckpointId(1))]


def test_its_files_go_when_the_last_checkpoint_that_needs_them_is_gone() -> None:
    job = Job(with_files(1, A, B))
    assert job.complete(with_files(2, B)) == [Discard(handles(1), CheckpointId(1))]
    assert job.cleaner.discard_leftovers() == [Discard((A,))]
    job.complete(with_files(3))
    assert job.cleaner.discard_leftovers() == [Discard((B,))]
    assert job.cleaner.discard_leftovers() == []


def test_the_last_state_of_a_finished_task_stays_until_no_record_refers_to_it() -> None:
    job = Job(complete_snapshot(1, handles={SOURCE: A, OP: B}, finished=(SOURCE,)))
    assert job.complete(complete_snapshot(2, handles={SOURCE: A})) == [Discard((B,), CheckpointId(1))]
    for _ in range(2):
        assert job.cleaner.discard_leftovers() == [], "a complete checkpoint still needs it"
    assert job.complete(complete_snapshot(3)) == [Discard((A,), CheckpointId(2))]


def test_a_last_state_that_was_needed_once_is_discarded_later_and_once() -> None:
    job = Job(complete_snapshot(1, handles={SOURCE: A}, finished=(SOURCE,)))
    job.under_way.storing = (BeingStored(pending(3), complete_snapshot(3, handles={SOURCE: A})),)
    assert job.complete(complete_snapshot(2)) == [Discard((), CheckpointId(1))]
    assert job.cleaner.discard_leftovers() == []
    job.under_way.storing = ()  # it could not be stored
    assert job.cleaner.discard_leftovers() == [Discard((A,))]
    assert job.cleaner.discard_leftovers() == []


# -- deleted by its user ---------------------------------------------------------------------


def test_the_record_of_a_deleted_snapshot_goes_before_what_nobody_needs_besides() -> None:
    job = Job(with_files(1, A, B, savepoint=True), with_files(2, B))
    assert job.cleaner.delete(CheckpointId(1)) == [Discard((), CheckpointId(1)), Discard((*handles(1), A))]
    assert [one.checkpoint for one in job.completed.all] == [2]


def test_nothing_is_deleted_of_a_snapshot_that_is_not_there() -> None:
    assert Job(complete_snapshot(1)).cleaner.delete(CheckpointId(2)) == []


def test_a_deleted_snapshot_leaves_the_last_state_that_another_one_needs() -> None:
    last = {SOURCE: A}
    job = Job(complete_snapshot(1, handles={**last, OP: B}, finished=(SOURCE,)), complete_snapshot(2, handles=last))
    assert job.cleaner.delete(CheckpointId(1)) == [Discard((), CheckpointId(1)), Discard((B,))]


# -- logs of persistent channels ---------------------------------------------------------------

LIVING = tuple(f"job-1/log/{task}-4" for task in TASKS)
KEEPS_LOGS = {"alignment": "unaligned", "spilling": "continuous"}


def test_the_logs_that_a_snapshot_or_a_pending_checkpoint_refers_to_are_kept_each_named_once() -> None:
    job = Job(complete_snapshot(1, logs=("l1", "l2")), **KEEPS_LOGS)
    job.under_way.storing = (BeingStored(pending(2), complete_snapshot(2, logs=("l2", "l3"))),)
    job.under_way.pending[CheckpointId(3)] = pending(3, logs={SOURCE: ("l4",), OP: ("l1",)})
    assert job.cleaner.clear_logs() == [ClearLogs(("l1", "l2", "l3", "l4"), LIVING)]


def test_those_of_the_attempts_that_live_are_kept() -> None:
    job = Job(**KEEPS_LOGS)
    job.attempts.begin(survivors=[SOURCE])
    living = [f"job-1/log/{task}-{attempt}" for task, attempt in zip(TASKS, (4, 5, 5), strict=True)]
    assert job.cleaner.clear_logs() == [ClearLogs((), tuple(living))]


def test_logs_are_cleared_when_a_user_deletes_the_snapshot_that_needed_them() -> None:
    job = Job(complete_snapshot(1, logs=("l1",)), complete_snapshot(2, logs=("l2",)), **KEEPS_LOGS)
    assert job.cleaner.delete(CheckpointId(1))[-1] == ClearLogs(("l2",), LIVING)


def test_no_log_is_cleared_where_none_are_kept() -> None:
    assert Job(complete_snapshot(1)).cleaner.clear_logs() == []


def test_the_logs_that_a_former_job_has_left_are_cleared_once_no_snapshot_refers_to_them() -> None:
    job = Job(complete_snapshot(1, logs=("l1",)))
    assert job.cleaner.clear_logs() == [ClearLogs(("l1",), LIVING)]
    job.complete(complete_snapshot(2))
    assert job.cleaner.clear_logs() == [ClearLogs((), LIVING)]


# -- of former coordinators, of failed attempts, and of the job that has ended -----------------------


def test_a_coordinator_that_takes_over_sweeps_once_all_is_listed() -> None:
    job = Job(complete_snapshot(1))
    assert job.cleaner.take_over() == []
    assert job.cleaner.all_listed() == [job.cleaner.sweep()] == [Sweep(handles(1))]


def test_a_job_that_has_ended_leaves_neither_leftovers_nor_logs_of_an_attempt() -> None:
    job = Job(complete_snapshot(1, logs=("l1",)), **KEEPS_LOGS)
    job.cleaner.discard_if_written(A)
    assert job.cleaner.job_over() == [*leftovers(A), ClearLogs(("l1",), ())]


def test_what_a_former_coordinator_left_is_swept_when_the_job_ends() -> None:
    job = Job(complete_snapshot(1))
    job.cleaner.take_over()
    job.cleaner.discard_if_written(A)
    assert job.cleaner.job_over() == [*leftovers(A), Sweep(handles(1))]


def test_nothing_is_swept_nor_any_log_deleted_if_a_record_could_not_be_read() -> None:
    job = Job(**KEEPS_LOGS)
    job.completed.take_over((complete_snapshot(1),), knows_all=False)
    job.cleaner.take_over()
    job.cleaner.discard_if_written(A)
    assert job.cleaner.job_over() == leftovers(A)
