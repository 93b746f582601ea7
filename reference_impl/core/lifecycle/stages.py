"""The stages of a coordinator's life, each a type of its own."""

from __future__ import annotations

import msgspec

from ..vocabulary.events import CompletedSnapshot
from ..vocabulary.ids import CheckpointId, TaskId
from .closing import Closing


class Listing(msgspec.Struct, frozen=True):
    """Reading the durable state, before anything else."""

    tries: int = 1


class Saving(msgspec.Struct, frozen=True):
    """A new attempt waits for its number to be durable."""

    restores: CompletedSnapshot | None


class Deploying(msgspec.Struct, frozen=True):
    """The tasks of an attempt start; `waiting` have not reported that they run."""

    restores: CompletedSnapshot | None
    waiting: tuple[TaskId, ...]


class Working(msgspec.Struct, frozen=True):
    """Every task runs."""


class Restarting(msgspec.Struct, frozen=True):
    """An attempt failed; the next one waits for the restart delay, and for a checkpoint whose record is being
    stored."""

    cause: str
    delayed: bool = True


class PartialFailover(msgspec.Struct, frozen=True):
    """`tasks` are lost and restart while the others go on.  `step`: "delayed" (waiting for the restart delay),
    "storing" (a checkpoint's record is being stored), "saving" (the job's record is) or "deploying" (`waiting` do not
    run yet)."""

    tasks: tuple[TaskId, ...]
    cause: str
    step: str = "delayed"
    restores: CompletedSnapshot | None = None
    waiting: tuple[TaskId, ...] = ()

    @property
    def has_begun(self) -> bool:
        """The tasks have their new number, so the loss of an older attempt changes nothing."""
        return self.step in ("saving", "deploying")

    @property
    def has_started(self) -> bool:
        """The tasks have been ordered to start."""
        return self.step == "deploying"


class Terminating(msgspec.Struct, frozen=True):
    """A complete checkpoint covers everything (None: at-most-once); tasks commit and finish."""

    checkpoint: CheckpointId | None
    ending: str
    waiting: tuple[TaskId, ...]


class Ended(msgspec.Struct, frozen=True):
    """The job has ended."""


Stage = Listing | Saving | Deploying | Working | Restarting | PartialFailover | Terminating | Closing | Ended

STATUS = {"finish": "finished", "stop": "stopped", "drain": "drained"}
"""How a job has ended, by the ending of the snapshot that it rests on."""
