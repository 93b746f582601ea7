"""The description of a task that it is made with."""

from __future__ import annotations

import msgspec

from .ids import AttemptId, TaskId
from .routing import Output


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who a task is and how it is wired; `gates` gives the operator's input by channel."""

    task: TaskId
    job: int
    attempt: AttemptId
    channels_of: AttemptId | None = None
    """with local recovery: the attempt of all tasks to which its channels belong; None: they are its own"""
    gates: tuple[int, ...] = ()
    outputs: tuple[Output, ...] = ()
    key_groups: int = 16
    subtask: int = 0
    parallelism: int = 1
    splits: tuple[int, ...] = ()
    overtaken: bool = False
    """barriers may overtake what is in its inputs"""
    partitioning: tuple[str, ...] = ()
    """of each of the operator's inputs"""
