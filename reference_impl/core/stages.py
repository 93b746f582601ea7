"""The stages of a coordinator's life, each a type of its own."""

from __future__ import annotations

import msgspec

from .closing import Closing
from .events import CompletedSnapshot
from .ids import CheckpointId, TaskId


class Listing(msgspec.Struct, frozen=True):
    """Reading what is durable, before anything else."""

    tries: int = 1


class Saving(msgspec.Struct, frozen=True):
    """A new attempt waits for its number to be durable."""

    restores: CompletedSnapshot | None


class Deploying(msgspec.Struct, frozen=True):
    """The tasks of an attempt come up; `waiting` have not said that they run."""

    restores: CompletedSnapshot | None
    waiting: tuple[TaskId, ...]


class Working(msgspec.Struct, frozen=True):
    """Every task runs."""


class Restarting(msgspec.Struct, frozen=True):
    """An attempt failed; the next waits for its delay, and for a record being stored."""

    cause: str
    delayed: bool = True


class PartialFailover(msgspec.Struct, frozen=True):
    """`tasks` are lost and come up again while the others go on; `step` is one of delayed (the delay before
    it), storing (a record is being stored), saving (the new number is) and deploying (`waiting` do not run yet)."""

    tasks: tuple[TaskId, ...]
    cause: str
    step: str = "delayed"
    restores: CompletedSnapshot | None = None
    waiting: tuple[TaskId, ...] = ()

    @property
    def has_begun(self) -> bool:
        """The tasks have their new number: what is lost of the old one is lost already."""
        return self.step in ("saving", "deploying")

    @property
    def has_started(self) -> bool:
        """The tasks are ordered up."""
        return self.step == "deploying"


class Terminating(msgspec.Struct, frozen=True):
    """Everything rests on a complete checkpoint (None: at-most-once); tasks commit and finish."""

    checkpoint: CheckpointId | None
    ending: str
    waiting: tuple[TaskId, ...]


class Ended(msgspec.Struct, frozen=True):
    """Over."""


Stage = Listing | Saving | Deploying | Working | Restarting | PartialFailover | Terminating | Closing | Ended

STATUS = {"finish": "finished", "stop": "stopped", "drain": "drained"}
"""How a job has ended, by the ending of the snapshot that it rests on."""
