"""How a job ends."""

from __future__ import annotations

from enum import Enum


class JobEnd(Enum):
    """How a job ends with its last snapshot."""

    FINISH = "finish"
    """all input was processed (FIN-3)"""
    STOP = "stop"
    DRAIN = "drain"

    @property
    def by_command(self) -> bool:
        """A user stops the job with a savepoint."""
        return self is not JobEnd.FINISH


class Status(Enum):
    """How a job has ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    DRAINED = "drained"
    CANCELLED = "cancelled"
    FAILED = "failed"


STATUS = {JobEnd.FINISH: Status.FINISHED, JobEnd.STOP: Status.STOPPED, JobEnd.DRAIN: Status.DRAINED}
"""How a job has ended, by the ending of the snapshot that it rests on."""
