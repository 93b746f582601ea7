"""What a coordinator does and no message reports: effects that are for the observer only."""

from __future__ import annotations

from .effects import Effect
from .ids import AttemptId, CheckpointId, TaskId


class Note(Effect, frozen=True, array_like=True, tag=True, gc=False):
    """Base of the notes.  The fields keep their order, and the types their names: journals of saved runs have them."""


class AttemptStarted(Note):
    """The tasks of an attempt are ordered to start: all of them, unless `PartRestarted` follows."""

    attempt: AttemptId
    restores: CheckpointId | None
    cause: str
    """in words"""


class PartRestarted(Note):
    """The attempt is one of a partial failover, of these tasks; the others go on."""

    attempt: AttemptId
    restores: CheckpointId | None
    tasks: tuple[TaskId, ...]
    in_place: bool
    """they recover locally, in channels that outlive them (UNA-4)"""


class AttemptRunning(Note):
    """All tasks run."""

    attempt: AttemptId


class CheckpointTriggered(Note):
    checkpoint: CheckpointId
    attempt: AttemptId
    savepoint: bool


class CheckpointAcknowledged(Note):
    """Every expected task has acknowledged it."""

    checkpoint: CheckpointId
    attempt: AttemptId


class CheckpointAborted(Note):
    checkpoint: CheckpointId
    attempt: AttemptId
    reason: str


AnyNote = (
    AttemptStarted | PartRestarted | AttemptRunning | CheckpointTriggered | CheckpointAcknowledged | CheckpointAborted
)
