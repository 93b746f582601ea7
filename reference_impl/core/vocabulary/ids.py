"""Distinct types for numbers and names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NewType

import msgspec

TaskId = NewType("TaskId", str)
"""One subtask of an operator: "count-1"."""

ChannelId = NewType("ChannelId", str)
"""From one task to another: "source-0>count-1"."""

CheckpointId = NewType("CheckpointId", int)
"""Of a checkpoint or savepoint: never used twice, increasing over jobs and coordinators."""

AttemptId = NewType("AttemptId", int)
"""Of one deployment of the dataflow or of a part of it: increasing over jobs and coordinators."""

Handle = NewType("Handle", str)
"""The name of one task's snapshot in the store."""


class Ends(msgspec.Struct, frozen=True):
    """The two tasks that a channel joins."""

    sender: TaskId
    receiver: TaskId

    @property
    def name(self) -> ChannelId:
        """The channel's name."""
        return ChannelId(f"{self.sender}>{self.receiver}")


# -- the order of checkpoints ----------------------------------------------------------
#
# A moment at which there was no checkpoint yet is None, and is older than each checkpoint.


def is_newer(checkpoint: CheckpointId | None, than: CheckpointId | None) -> bool:
    return checkpoint is not None and (than is None or checkpoint > than)


def oldest(checkpoints: Iterable[CheckpointId | None]) -> CheckpointId | None:
    """None if any of them is."""
    known = list(checkpoints)
    return min((one for one in known if one is not None), default=None) if None not in known else None


def newest(checkpoints: Iterable[CheckpointId | None]) -> CheckpointId | None:
    return max((one for one in checkpoints if one is not None), default=None)


def preceding(checkpoint: CheckpointId) -> CheckpointId | None:
    """The id before this one; None if it is the first."""
    return CheckpointId(checkpoint - 1) if checkpoint > 1 else None


def following(checkpoint: CheckpointId | None) -> CheckpointId:
    """The id after this one."""
    return CheckpointId(checkpoint + 1 if checkpoint is not None else 1)


def task_id(operator: str, subtask: int) -> TaskId:
    return TaskId(f"{operator}-{subtask}")


# -- names that were read ------------------------------------------------------------
#
# A job's graph knows the operators of its tasks and the ends of its channels.  These are for what is read from bytes:
# snapshots and records of jobs with another graph, names in stores, frames, journals.


def operator_of(task: str) -> str:
    return task.rpartition("-")[0]


def subtask_of(task: str) -> int:
    """The number of a task among those of its operator."""
    return int(task.rpartition("-")[2])


def ends_of(channel: str) -> Ends:
    sender, _, receiver = channel.partition(">")
    return Ends(TaskId(sender), TaskId(receiver))
