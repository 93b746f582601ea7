"""Distinct types for numbers and names."""

from __future__ import annotations

from typing import NewType

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


def task_id(operator: str, subtask: int) -> TaskId:
    return TaskId(f"{operator}-{subtask}")


def subtask_of(task: TaskId) -> int:
    """The number of a task among those of its operator."""
    return int(task.rpartition("-")[2])


def channel_id(sender: TaskId, receiver: TaskId) -> ChannelId:
    return ChannelId(f"{sender}>{receiver}")
