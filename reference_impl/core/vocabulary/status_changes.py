"""Changes of the status of a job, its attempts and its checkpoints: effects that are for the observer only, and that no
message reports."""

from __future__ import annotations

from .causes import AnyCause
from .effects import Effect
from .ids import AttemptId, CheckpointId, TaskId


class StatusChange(Effect, frozen=True, array_like=True, tag=True, gc=False):
    """Base of all changes.  The fields keep their order, and the types their tags: journals of saved runs have them."""


class AttemptStarted(StatusChange):
    """The tasks of an attempt are ordered to start: all of them, unless `RegionRestarted` follows."""

    attempt: AttemptId
    restores: CheckpointId | None
    cause: AnyCause


class RegionRestarted(StatusChange, tag="PartRestarted"):
    """The attempt is one of a partial failover, of these tasks; the others go on.  The tag is the name that journals
    have."""

    attempt: AttemptId
    restores: CheckpointId | None
    tasks: tuple[TaskId, ...]
    in_place: bool
    """they recover locally, in channels that outlive them (UNA-4)"""


class AttemptRunning(StatusChange):
    """All tasks run."""

    attempt: AttemptId


class CheckpointTriggered(StatusChange):
    checkpoint: CheckpointId
    attempt: AttemptId
    savepoint: bool


class CheckpointAcknowledged(StatusChange):
    """Every expected task has acknowledged it."""

    checkpoint: CheckpointId
    attempt: AttemptId


class CheckpointAborted(StatusChange):
    checkpoint: CheckpointId
    attempt: AttemptId
    cause: AnyCause
    failed: bool = True
    """false: a newer one subsumed it, or it was aborted with its attempt"""


AnyStatusChange = (
    AttemptStarted | RegionRestarted | AttemptRunning | CheckpointTriggered | CheckpointAcknowledged | CheckpointAborted
)
