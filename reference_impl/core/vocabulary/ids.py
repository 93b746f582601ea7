"""Distinct types for numbers and names."""

from __future__ import annotations

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
