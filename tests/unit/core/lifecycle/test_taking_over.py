"""How a coordinator begins: a new job, or one that another coordinator led before (ABS-6)."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.lifecycle.taking_over import LISTING_TRIES, TakeOver
from cutproof.reference_impl.core.protocol.checkpoints import UnderWay
from cutproof.reference_impl.core.vocabulary.causes import RecordsUnreadable, SnapshotsLost, Submitted, TakenOver
from cutproof.reference_impl.core.vocabulary.effects import Effect, ListSnapshots, SetTimer
from cutproof.reference_impl.core.vocabulary.events import (
    CompletedCheckpoint,
    CoordinatorStarted,
    JobRecord,
    SnapshotsListed,
)
from cutproof.reference_impl.core.vocabulary.stages import Listing, Stage, Working
from cutproof.reference_impl.core.vocabulary.timeouts import RetryListing
from unit.core.coordinator_rig import GRAPH, complete_snapshot
from unit.core.neighbours import CLOSURE, Told, life_at, neighbour

RECORD = JobRecord(job=1, attempt=4, next_checkpoint=7, version=11)


class Job:
    """Its coordinator begins."""

    def __init__(self, *initial: CompletedCheckpoint, stage: Stage | None = None) -> None:
        self.life = life_at(stage) if stage is not None else life_at(Listing())
        self.completed = CompletedCheckpointStore(GRAPH, Config(), Parts(), 1, UnderWay(), named=None)
        self.records = neighbour("records")
        self.records.had_snapshot, self.records.closure = False, None
        cleaner: Any = neighbour("cleaner")
        cleaner.sweep = lambda: Told("cleaner.sweep")
        self.machine = TakeOver(
            Config(retry_us=70),
            Parts().restore_choice,
            initial=initial,
            life=self.life,
            completed=self.completed,
            cleaner=cleaner,
            records=self.records,
            cancellation=neighbour("cancellation"),
            execution=neighbour("execution"),
            closing=neighbour("closing"),
        )

    def listed(self, *retained: CompletedCheckpoint, unreadable: tuple[int, ...] = ()) -> list[Effect]:
        return self.machine.on_listed(SnapshotsListed(retained, unreadable))


def test_a_new_job_starts_at_once() -> None:
    assert Job().machine.on_started(CoordinatorStarted(None)) == [Told("execution.start", (Submitted(),))]


def test_a_job_that_resumes_another_has_its_snapshots_and_sweeps_what_that_left() -> None:
    job = Job(complete_snapshot(2), complete_snapshot(1))
    assert job.machine.on_started(CoordinatorStarted(None)) == [
        Told("cleaner.sweep"),
        Told("execution.start", (Submitted(),)),
    ]
    assert job.completed.all == (complete_snapshot(1), complete_snapshot(2))


def test_a_job_that_resumes_another_fails_if_the_snapshots_are_gone() -> None:
    job = Job()
    job.records.had_snapshot = True
    assert job.machine.on_started(CoordinatorStarted(None)) == [Told("closing.fail", (SnapshotsLost(),))]
    job = Job(complete_snapshot(2))
    job.records.had_snapshot = True
    assert job.machine.on_started(CoordinatorStarted(None))[-1] == Told("execution.start", (Submitted(),))


def test_with_a_record_the_tasks_are_cancelled_and_what_is_durable_is_listed() -> None:
    job, read = Job(complete_snapshot(1)), []
    job.records.take_over = read.append
    assert job.machine.on_started(CoordinatorStarted(RECORD)) == [
        Told("cancellation.cancel_all"),
        Told("cleaner.take_over"),
        ListSnapshots(),
    ]
    assert read == [RECORD]
    assert job.completed.all == (), "its own record counts, not the job that it resumed"


def test_once_all_are_listed_another_attempt_starts() -> None:
    job = Job()
    assert job.listed(complete_snapshot(3)) == [Told("cleaner.all_listed"), Told("execution.start", (TakenOver(),))]
    assert job.completed.all == (complete_snapshot(3),)


def test_a_job_whose_snapshots_are_gone_fails_unless_it_never_had_one() -> None:
    job = Job()
    job.records.had_snapshot = True
    assert job.listed() == [Told("closing.fail", (SnapshotsLost(),))]
    assert job.listed(complete_snapshot(3))[-1] == Told("execution.start", (TakenOver(),))
    job.records.had_snapshot = False
    assert job.listed()[-1] == Told("execution.start", (TakenOver(),))


def test_a_job_that_was_to_be_closed_is_closed_unless_its_snapshots_are_gone() -> None:
    job = Job()
    job.records.closure, job.records.had_snapshot = CLOSURE, True
    assert job.listed(complete_snapshot(3)) == [Told("closing.close", (CLOSURE,))]
    assert job.listed() == [Told("closing.fail", (SnapshotsLost(),))]


def test_a_record_that_cannot_be_read_is_read_again_so_many_times_and_then_the_job_fails() -> None:
    job = Job()
    for tries in range(2, LISTING_TRIES + 1):
        assert job.listed(complete_snapshot(1), unreadable=(2,)) == [SetTimer(RetryListing(), 70)]
        assert job.life.stage == Listing(tries)
        assert job.completed.all == ()
        assert job.machine.list_again(RetryListing()) == [ListSnapshots()]
    assert job.listed(complete_snapshot(1), unreadable=(2,)) == [Told("closing.fail", (RecordsUnreadable((2,)),))]
    assert not job.completed.knows_all
    assert job.completed.all == (complete_snapshot(1),), "what it may refer to is left"


def test_a_reminder_that_is_late_lists_nothing() -> None:
    assert Job(stage=Working()).machine.list_again(RetryListing()) == []
