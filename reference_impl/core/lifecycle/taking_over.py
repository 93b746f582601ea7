"""How a coordinator begins: it reads what is durable, and goes on from there (ABS-6).

Without a record the job is new.  If it resumes another one whose snapshots were in the memory of a coordinator that
died meanwhile, it fails (ABS-14).  With a record another coordinator led it before: its tasks are cancelled, the
records of its complete snapshots are listed, and the job starts another attempt, unless it was already decided to
close it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..decisions.checkpointing import RestoreChoice, WhenListed
from ..job.config import Config
from ..vocabulary.causes import RecordsUnreadable, SnapshotsLost, Submitted, TakenOver
from ..vocabulary.effects import Effect, ListSnapshots, SetTimer
from ..vocabulary.errors import expect
from ..vocabulary.events import CompletedCheckpoint, CoordinatorStarted, SnapshotsListed
from ..vocabulary.stages import Listing
from ..vocabulary.timeouts import RetryListing
from .cancellation import Cancellation
from .checkpoints_cleaner import CheckpointsCleaner
from .closing import JobClosing
from .completed_checkpoint_store import CompletedCheckpointStore
from .execution import Execution
from .job_life import JobLife
from .job_records import JobRecords

LISTING_TRIES = 5


class TakeOver:
    """The beginning of one coordinator of one job."""

    def __init__(
        self,
        config: Config,
        restore_choice: RestoreChoice,
        *,
        initial: Sequence[CompletedCheckpoint],
        life: JobLife,
        completed: CompletedCheckpointStore,
        cleaner: CheckpointsCleaner,
        records: JobRecords,
        cancellation: Cancellation,
        execution: Execution,
        closing: JobClosing,
    ) -> None:
        """`initial` are the snapshots of the job that this one resumes."""
        self._retry_us = config.retry_us
        self._restore_choice = restore_choice
        self._initial = tuple(initial)
        self._life = life
        self._completed = completed
        self._cleaner = cleaner
        self._records = records
        self._cancellation = cancellation
        self._execution = execution
        self._closing = closing

    def on_started(self, event: CoordinatorStarted) -> list[Effect]:
        if event.record is None:
            if self._records.had_snapshot and not self._initial:
                return self._closing.fail(SnapshotsLost())
            self._completed.take_over(self._initial)
            sweep = [self._cleaner.sweep()] if self._initial else []
            return [*sweep, *self._execution.start(Submitted())]
        self._records.take_over(event.record)
        return [*self._cancellation.cancel_all(), *self._cleaner.take_over(), ListSnapshots()]

    def on_listed(self, event: SnapshotsListed) -> list[Effect]:
        stage = expect(self._life.stage, Listing)
        then = self._restore_choice.when_listed(event.unreadable, LISTING_TRIES - stage.tries)
        if then is WhenListed.give_up:
            return self._give_up_reading(event)
        if then is WhenListed.list_again:
            self._life.enter(Listing(stage.tries + 1))
            return [SetTimer(RetryListing(), self._retry_us)]
        self._completed.take_over(event.retained)
        self._completed.copied.update(dict.fromkeys(event.copied))
        # a job that was being cancelled fails too: else its user would resume it from nothing
        if self._records.had_snapshot and not event.retained:
            return self._closing.fail(SnapshotsLost())
        if self._records.closure is not None:
            return self._closing.close(self._records.closure)
        moved = self._completed.let_go()
        discarded = self._cleaner.subsumed(moved) if moved else []
        return [*discarded, *self._cleaner.all_listed(), *self._execution.start(TakenOver())]

    def list_again(self, timeout: RetryListing) -> list[Effect]:
        return [ListSnapshots()] if isinstance(self._life.stage, Listing) else []

    def _give_up_reading(self, event: SnapshotsListed) -> list[Effect]:
        """The record of a complete checkpoint cannot be read: fail the job, and leave all that it may refer to."""
        self._completed.take_over(event.retained, knows_all=False)
        return self._closing.fail(RecordsUnreadable(event.unreadable))
