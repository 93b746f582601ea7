"""What a machine waits for when it sets a timer: one type for each kind of wait.

A machine has one timer for each value: to set it again replaces the earlier setting.
A type named `Retry...` repeats what was sent, since a message or an answer may be lost.
"""

from __future__ import annotations

from typing import dataclass_transform

import msgspec

from .ids import AttemptId, CheckpointId


@dataclass_transform(frozen_default=True)
class Timeout(msgspec.Struct, frozen=True, gc=False):
    """Base of the waits."""


# -- of the coordinator ---------------------------------------------------------------


class CheckpointInterval(Timeout, frozen=True):
    """Until the next checkpoint may be triggered."""


class CheckpointTimeout(Timeout, frozen=True):
    """Until a checkpoint that is still pending is aborted."""

    checkpoint: CheckpointId


class MinimumPause(Timeout, frozen=True):
    """From the completion of a checkpoint until the next may be triggered."""


class RestartDelay(Timeout, frozen=True):
    """From the failure of an attempt, or of a part of it, until it starts again."""


class DeployTimeout(Timeout, frozen=True):
    """Until all tasks that start with this attempt number must run."""

    attempt: AttemptId


class SplitAppears(Timeout, frozen=True):
    """Until an enumerator discovers a split (OPS-3)."""

    split: int


class RetryListing(Timeout, frozen=True):
    """The complete snapshots are listed again."""


class RetryTerminate(Timeout, frozen=True):
    """The order to end the job is sent again to all tasks that have not finished."""


class RetryTerminateTasks(Timeout, frozen=True):
    """The order to finish is sent again to single tasks, while the job goes on."""


class RetryAssignments(Timeout, frozen=True):
    """Assignments of splits that no reader has confirmed are sent again."""


class RetryFence(Timeout, frozen=True):
    """The fence of a writer of a job that closes is requested again."""


# -- of a task ------------------------------------------------------------------------


class AlignmentTimeout(Timeout, frozen=True):
    """Until the barriers of this checkpoint may overtake (UNA-1)."""

    checkpoint: CheckpointId


class BufferTimeout(Timeout, frozen=True):
    """Until elements that lie unprocessed in an input are appended to its log (UNA-2)."""


class IdleTimeout(Timeout, frozen=True):
    """Until the splits of a source from which nothing was read become idle (OPS-1)."""


class RetryEndReport(Timeout, frozen=True):
    """The report that all input has ended is sent again."""


class RetryAsk(Timeout, frozen=True):
    """A reader asks again for splits."""


class RetryRequest(Timeout, frozen=True):
    """A request to the external store is sent again, under the same number."""

    number: int
