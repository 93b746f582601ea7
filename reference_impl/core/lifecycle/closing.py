"""Closing a job that is cancelled or has failed, and what it leaves in the external store (FIN-4).

The decision to close is made durable, so that a coordinator that takes over goes on with it.  The job's sinks may be
dead, so the coordinator itself fences every writer and aborts the transactions that no complete checkpoint covers.
Covered transactions stay: they were promised, and a resumed job commits them.  Writers whose rows replace others are
fenced too.  A job that resumes with fewer sinks would not fence them all, and rows still under way would replace newer
ones.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..protocol.checkpoints import UnderWay
from ..vocabulary.causes import AnyCause, JobClosed
from ..vocabulary.effects import Effect, Return, SetTimer, Transact
from ..vocabulary.ends import Status
from ..vocabulary.errors import expect
from ..vocabulary.events import Answered, Closure
from ..vocabulary.ids import CheckpointId
from ..vocabulary.stages import (
    AwaitingRecords,
    Closing,
    Covered,
    CoveredUpTo,
    MayBeCovered,
    NothingCovered,
    Settling,
)
from ..vocabulary.timeouts import RetryFence
from ..vocabulary.transactions import AbortTransaction, Done, Fence, NoCheckpoint
from .cancellation import Cancellation
from .completed_checkpoint_store import CompletedCheckpointStore
from .job_ending import JobEnding
from .job_life import JobLife
from .job_records import Close, JobRecords


class Asked(IntEnum):
    """The requests to the store, by the numbers with which they are sent and answered."""

    FENCE = 1
    ABORT = 2
    """The answer does not matter: the list of the next fence shows whether it was done."""


def requests(stage: Closing) -> list[Effect]:
    """A fence for the next writer."""
    if not isinstance(stage.step, Settling) or not stage.step.waiting:
        return []
    return [Transact(Asked.FENCE, Fence(writer=stage.step.waiting[0], attempt=stage.attempt))]


def close_step(stage: Closing, event: Answered, retry_us: int) -> tuple[Closing, list[Effect]]:
    """The first writer is fenced: abort what is not covered, then fence the writer again.

    The coordinator sends requests for one writer at a time, so an answer always belongs to the first that waits.
    An abort may be lost when the store crashes, which then still has the sealed transaction.
    So the next writer's turn comes only when a fence finds nothing left to abort.
    """
    step = stage.step
    if event.number != Asked.FENCE or not isinstance(step, Settling) or not step.waiting:
        return stage, []
    if not isinstance(event.outcome, Done):
        return stage, [SetTimer(RetryFence(), retry_us)]
    writer, *remaining = step.waiting
    aborts: list[Effect] = [
        Transact(Asked.ABORT, AbortTransaction(writer=writer, attempt=stage.attempt, name=name))
        for name, checkpoint in event.outcome.unfinished
        if checkpoint is None or not covers(step.covered, checkpoint)
    ]
    if not aborts:
        stage = msgspec.structs.replace(stage, step=Settling(step.covered, tuple(remaining)))
    return stage, [*aborts, *requests(stage)]


def covers(covered: Covered, checkpoint: CheckpointId | NoCheckpoint) -> bool:
    """Whether a transaction that is sealed for this checkpoint stays: it was promised, or may have been."""
    if isinstance(covered, CoveredUpTo):
        return isinstance(checkpoint, NoCheckpoint) or checkpoint <= covered.checkpoint
    return not isinstance(covered, NothingCovered)


class JobClosing:
    """The closing of one job: decided, durable, and settled with each writer."""

    def __init__(
        self,
        graph: JobGraph,
        config: Config,
        *,
        life: JobLife,
        attempts: Attempts,
        under_way: UnderWay,
        completed: CompletedCheckpointStore,
        records: JobRecords,
        cancellation: Cancellation,
        ending: JobEnding,
    ) -> None:
        self._writers = tuple(task for task, spec, _ in graph.tasks() if spec.must_be_shut_out(config.sink))
        self._retry_us = config.retry_us
        self._life = life
        self._attempts = attempts
        self._under_way = under_way
        self._completed = completed
        self._records = records
        self._cancellation = cancellation
        self._ending = ending

    def fail(self, cause: AnyCause) -> list[Effect]:
        return self.close(Closure(Status.FAILED, cause))

    def close(self, closure: Closure, command: int | None = None) -> list[Effect]:
        """The job is cancelled or has failed: give up its attempt, and make the decision durable."""
        effects = self._cancellation.end_last_attempt(JobClosed(closure.status))
        self._attempts.begin()
        self._life.enter(Closing(closure, self._attempts.newest))
        return [*effects, *self._records.save_closure(closure, command)]

    def decided(self, then: Close) -> list[Effect]:
        """The decision to close is durable."""
        answer = [Return(then.command)] if then.command is not None else []
        return [*answer, *self._settle()]

    def resume(self) -> list[Effect]:
        """Go on if it waited for a record to be stored."""
        stage = self._life.stage
        return self._settle() if isinstance(stage, Closing) and isinstance(stage.step, AwaitingRecords) else []

    def _settle(self) -> list[Effect]:
        """The decision is durable.  So must be every record that was being stored before it."""
        stage = expect(self._life.stage, Closing)
        if self._under_way.storing:
            self._life.enter(msgspec.structs.replace(stage, step=AwaitingRecords()))
            return []
        self._life.enter(msgspec.structs.replace(stage, step=Settling(self._covered(), self._writers)))
        return [*self._requests(), *self._ending.end_if_settled()]

    def _covered(self) -> Covered:
        """The sealed transactions that must be committed, or may have to be.  A job that was refused before it began
        has not decided that what came behind its snapshot is void."""
        if not self._records.has_begun:
            return MayBeCovered()
        newest = self._completed.to_restore()
        if newest is not None and self._completed.knows_all:
            return CoveredUpTo(newest.checkpoint)
        unknown = self._records.others_had_snapshot or not self._completed.knows_all
        return MayBeCovered() if unknown else NothingCovered()

    def on_answered(self, event: Answered) -> list[Effect]:
        """The external store has answered a request."""
        stage = self._life.stage
        if not isinstance(stage, Closing):
            return []
        stage, effects = close_step(stage, event, self._retry_us)
        self._life.enter(stage)
        return [*effects, *self._ending.end_if_settled()]

    def fence_again(self, timeout: RetryFence) -> list[Effect]:
        return self._requests()

    def _requests(self) -> list[Effect]:
        stage = self._life.stage
        return requests(stage) if isinstance(stage, Closing) else []
