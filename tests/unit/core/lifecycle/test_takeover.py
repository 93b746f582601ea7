"""A new coordinator goes on from what is durable, or says what is lost (ABS-6, ABS-14)."""

from __future__ import annotations

from cutproof.reference_impl.core.lifecycle.closing import Asked
from cutproof.reference_impl.core.lifecycle.taking_over import LISTING_TRIES
from cutproof.reference_impl.core.vocabulary.causes import CancelledByUser, SnapshotsLost, TakenOver
from cutproof.reference_impl.core.vocabulary.effects import (
    Discard,
    Effect,
    ListSnapshots,
    SaveJob,
    SendToTask,
    SetTimer,
    Sweep,
    Transact,
)
from cutproof.reference_impl.core.vocabulary.ends import JobEnd, Status
from cutproof.reference_impl.core.vocabulary.events import Closure, CompletedCheckpoint, JobRecord
from cutproof.reference_impl.core.vocabulary.messages import Terminate
from cutproof.reference_impl.core.vocabulary.status_changes import AttemptRunning, AttemptStarted, CheckpointTriggered
from cutproof.reference_impl.core.vocabulary.timeouts import RetryListing, RetryTerminate
from cutproof.reference_impl.core.vocabulary.transactions import AbortTransaction, Done, Fence
from unit.core.coordinator_rig import (
    SINK,
    TASKS,
    CoordinatorRig,
    cancels,
    changes,
    complete_snapshot,
    deployed,
    discarded,
    end,
    handles,
    of,
)

CANCELLED = Closure(Status.CANCELLED, CancelledByUser())
RECORD = JobRecord(job=1, attempt=4, next_checkpoint=7, version=11, had_snapshot=True)


def took_over(
    *retained: CompletedCheckpoint, record: JobRecord = RECORD, **settings: object
) -> tuple[CoordinatorRig, list[Effect]]:
    job = CoordinatorRig(**settings)
    job.start(record)
    return job, job.listed(*retained)


def test_a_new_coordinator_cancels_the_attempt_it_finds_and_reads_what_is_durable() -> None:
    assert CoordinatorRig().start(RECORD) == [*cancels(4), ListSnapshots()]


def test_it_goes_on_from_the_newest_snapshot_with_a_new_attempt_and_new_ids() -> None:
    job, effects = took_over(complete_snapshot(3), complete_snapshot(6, 4), complete_snapshot(5, savepoint=True))
    assert effects == [
        Sweep((*handles(3), *handles(5), *handles(6, 4))),
        SaveJob(JobRecord(job=1, attempt=5, next_checkpoint=7, version=12, had_snapshot=True)),
    ]
    change, *_ = job.saved()
    assert change == AttemptStarted(5, 6, TakenOver())
    job.running()
    assert changes(job.trigger())[0] == (CheckpointTriggered, 7)
    job.ack(7)
    assert {discard.checkpoint for discard in of(Discard, job.stored(7))} == {3, 6}


def test_a_record_that_cannot_be_read_is_read_again_and_fails_the_job_in_the_end() -> None:
    job = CoordinatorRig(sink="plain")
    job.start(RECORD)
    for _ in range(4):
        assert job.listed(complete_snapshot(3), unreadable=(5, 6)) == [SetTimer(RetryListing(), 3_000)]
        assert job.timer(RetryListing()) == [ListSnapshots()]
    job.listed(unreadable=(5, 6))
    assert end(job.saved())[::2] == ("failed", "the record of checkpoint 5, 6 cannot be read")


def test_a_record_that_could_be_read_the_second_time_is_used() -> None:
    job = CoordinatorRig()
    job.start(RECORD)
    job.listed(unreadable=(6,))
    job.timer(RetryListing())
    job.listed(complete_snapshot(6, 4))
    assert (AttemptStarted, 6) in changes(job.saved())
    assert job.timer(RetryListing()) == []


def test_when_its_memory_died_with_it_the_job_fails_and_reports_it() -> None:
    """It never starts from nothing silently (ABS-14), and aborts nothing that may be promised."""
    job, effects = took_over(snapshots_in_memory=True)
    (save,) = of(SaveJob, effects)
    assert save.record.closure == Closure(Status.FAILED, SnapshotsLost())
    assert of(Transact, job.saved()) == [Transact(Asked.FENCE, Fence(writer=SINK, attempt=5))]
    effects = job.store_answers(Asked.FENCE, Done(unfinished=(("sealed", 6), ("open", None))))
    abort, fence = of(Transact, effects)
    assert abort.request.name == "open"
    assert fence.request == Fence(writer=SINK, attempt=5)
    effects = job.store_answers(Asked.FENCE, Done(unfinished=(("sealed", 6),)))
    assert end(effects)[::2] == ("failed", "its snapshots were in the memory of the coordinator that died (ABS-14)")


def test_a_resumed_job_fails_if_its_snapshots_died_before_it_had_a_record() -> None:
    """Neither it nor its successors start from nothing, and what may be promised is not aborted."""
    job = CoordinatorRig(
        snapshots_in_memory=True, coordinator={"first_attempt": 3, "first_checkpoint": 9, "had_snapshot": True}
    )
    (save,) = of(SaveJob, job.start())
    assert (save.record.had_snapshot, save.record.closure) == (True, Closure(Status.FAILED, SnapshotsLost()))
    job.saved()
    assert of(Transact, job.store_answers(Asked.FENCE, Done(unfinished=(("sealed", 6),)))) == []
    job, effects = took_over(snapshots_in_memory=True, record=save.record)
    assert of(SaveJob, effects)[0].record.closure == Closure(Status.FAILED, SnapshotsLost())


def test_a_job_that_had_no_snapshot_yet_starts_from_nothing() -> None:
    job, _ = took_over(record=JobRecord(job=1, attempt=1, next_checkpoint=2, version=2))
    assert (AttemptStarted, None) in changes(job.saved())


def test_a_coordinator_that_died_closing_a_job_down_leaves_that_to_its_successor() -> None:
    closing = JobRecord(job=1, attempt=4, next_checkpoint=7, version=11, closure=CANCELLED)
    job, effects = took_over(complete_snapshot(6, 4), record=closing, sink="plain")
    assert of(SaveJob, effects)[0].record.closure == CANCELLED
    assert end(job.saved()) == ("cancelled", 6, "by its user")


def test_a_job_that_was_being_cancelled_fails_without_its_snapshots() -> None:
    """Else its user would resume it, and it would start from nothing silently (ABS-14)."""
    closing = JobRecord(job=1, attempt=4, next_checkpoint=7, version=11, had_snapshot=True, closure=CANCELLED)
    _, effects = took_over(record=closing, snapshots_in_memory=True)
    assert of(SaveJob, effects)[0].record.closure == Closure(Status.FAILED, SnapshotsLost())


def test_a_job_that_ended_on_a_snapshot_only_finishes_its_commits() -> None:
    job, _ = took_over(complete_snapshot(6, 4, ending=JobEnd.FINISH))
    orders = deployed(job.saved())
    assert all(order.suspended for order in orders.values())
    change, *terminates, timer = job.running()
    assert change == AttemptRunning(5)
    assert terminates == [SendToTask(task, Terminate(job=1, attempt=5, checkpoint=6)) for task in TASKS]
    assert timer == SetTimer(RetryTerminate(), 3_000)
    assert end(job.finished()) == ("finished", 6, "")


def test_what_a_dead_coordinator_left_is_swept_when_the_job_ends() -> None:
    job, _ = took_over(complete_snapshot(6, 4, ending=JobEnd.FINISH))
    job.saved()
    job.running()
    assert of(Sweep, job.finished()) == [Sweep(handles(6, 4))]


def test_an_acknowledgement_while_it_reads_is_left_to_the_sweep() -> None:
    job = CoordinatorRig()
    job.start(RECORD)
    assert job.ack(6, attempt=4) == []


def test_a_job_that_cannot_read_what_is_durable_deletes_nothing_of_it() -> None:
    """What an unreadable record holds is not known: no file and no sealed transaction is touched."""
    job = CoordinatorRig()
    effects = job.start(RECORD)
    for _ in range(LISTING_TRIES - 1):
        effects += job.listed(complete_snapshot(3), unreadable=(6,))
        effects += job.timer(RetryListing())
    effects += job.listed(complete_snapshot(3), unreadable=(6,))
    while job.unsaved:
        effects += job.saved()
    left = (("covered", 3), ("sealed", 6), ("open", None))
    effects += job.store_answers(Asked.FENCE, Done(unfinished=left))
    effects += job.store_answers(Asked.FENCE, Done(unfinished=left[:2]))
    assert [one.request.name for one in of(Transact, effects) if isinstance(one.request, AbortTransaction)] == ["open"]
    assert of(Sweep, effects) == []
    assert discarded(effects) == []
    assert end(effects)[::2] == ("failed", "the record of checkpoint 6 cannot be read")
