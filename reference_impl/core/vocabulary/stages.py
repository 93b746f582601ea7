"""The stages of a job's life, as its coordinator sees it; each is a type of its own."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from .causes import AnyCause
from .ends import JobEnd
from .events import Closure, CompletedCheckpoint
from .ids import AttemptId, CheckpointId, TaskId


class Listing(msgspec.Struct, frozen=True):
    """Reading the durable state, before anything else."""

    tries: int = 1


class Saving(msgspec.Struct, frozen=True):
    """A new attempt waits for its number to be durable."""

    restores: CompletedCheckpoint | None


class Deploying(msgspec.Struct, frozen=True):
    """The tasks of an attempt start; `waiting` have not reported that they run."""

    restores: CompletedCheckpoint | None
    waiting: tuple[TaskId, ...]


class Working(msgspec.Struct, frozen=True):
    """Every task runs."""


class Restarting(msgspec.Struct, frozen=True):
    """An attempt failed; the next one waits for the restart delay, and for a checkpoint whose record is being
    stored."""

    cause: AnyCause
    delayed: bool = True


class Delayed(msgspec.Struct, frozen=True):
    """A partial failover waits for the restart delay."""


class AwaitingRecord(msgspec.Struct, frozen=True):
    """A partial failover waits for a checkpoint whose record is being stored."""


class Renumbered(msgspec.Struct, frozen=True):
    """A partial failover waits for the new attempt number of its tasks to be durable."""

    restores: CompletedCheckpoint | None


class Starting(msgspec.Struct, frozen=True):
    """The tasks of a partial failover start; `waiting` have not reported that they run."""

    restores: CompletedCheckpoint | None
    waiting: tuple[TaskId, ...]


class PartialFailover(msgspec.Struct, frozen=True):
    """`tasks` are lost and restart while the others go on."""

    tasks: tuple[TaskId, ...]
    cause: AnyCause
    step: Delayed | AwaitingRecord | Renumbered | Starting = Delayed()

    @property
    def has_begun(self) -> bool:
        """The tasks have their new number, so the loss of an older attempt changes nothing."""
        return isinstance(self.step, Renumbered | Starting)

    @property
    def has_started(self) -> bool:
        """The tasks have been ordered to start."""
        return isinstance(self.step, Starting)


class Terminating(msgspec.Struct, frozen=True):
    """A complete checkpoint covers everything (None: at-most-once); tasks commit and finish."""

    checkpoint: CheckpointId | None
    ending: JobEnd
    waiting: tuple[TaskId, ...]


class Deciding(msgspec.Struct, frozen=True):
    """The decision to close is being made durable."""


class AwaitingRecords(msgspec.Struct, frozen=True):
    """The decision is durable; records of checkpoints that were being stored before it are not yet."""


class NothingCovered(msgspec.Struct, frozen=True):
    """No checkpoint is complete: no sealed transaction may be committed."""


class CoveredUpTo(msgspec.Struct, frozen=True):
    """The newest complete checkpoint: what was sealed for it or an older one was promised."""

    checkpoint: CheckpointId


class MayBeCovered(msgspec.Struct, frozen=True):
    """The newest complete checkpoint is not known, or another job may restore it: nothing that is sealed may be
    aborted."""


Covered = NothingCovered | CoveredUpTo | MayBeCovered


class Settling(msgspec.Struct, frozen=True):
    """Writers in `waiting` have not been settled: one at a time, the first of them is fenced."""

    covered: Covered
    waiting: tuple[TaskId, ...]


class Closing(msgspec.Struct, frozen=True):
    """The job is cancelled or failed; `attempt` fences all its writers."""

    closure: Closure
    attempt: AttemptId
    step: Deciding | AwaitingRecords | Settling = Deciding()


class Ended(msgspec.Struct, frozen=True):
    """The job has ended."""


Stage = Listing | Saving | Deploying | Working | Restarting | PartialFailover | Terminating | Closing | Ended


class StageName(Enum):
    """The name of a stage, as a coordinator reports it to other processes."""

    LISTING = "listing"
    SAVING = "saving"
    DEPLOYING = "deploying"
    WORKING = "working"
    RESTARTING = "restarting"
    PARTIAL_FAILOVER = "partial-failover"
    TERMINATING = "terminating"
    CLOSING = "closing"
    ENDED = "ended"


NAMES: Mapping[type, StageName] = {
    Listing: StageName.LISTING,
    Saving: StageName.SAVING,
    Deploying: StageName.DEPLOYING,
    Working: StageName.WORKING,
    Restarting: StageName.RESTARTING,
    PartialFailover: StageName.PARTIAL_FAILOVER,
    Terminating: StageName.TERMINATING,
    Closing: StageName.CLOSING,
    Ended: StageName.ENDED,
}
"""by the stage's type"""
