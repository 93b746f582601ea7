"""What a task is created with."""

from __future__ import annotations

import msgspec

from ..vocabulary.ids import AttemptId, TaskId
from .routing import Output


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A task's name and its channels; `gates` gives the operator's input by channel."""

    task: TaskId
    job: int
    attempt: AttemptId
    channels_of: AttemptId | None = None
    """with local recovery: the attempt to which its channels belong; None: its own"""
    gates: tuple[int, ...] = ()
    outputs: tuple[Output, ...] = ()
    key_groups: int = 16
    subtask: int = 0
    parallelism: int = 1
    splits: tuple[int, ...] = ()
    overtaken: bool = False
    """barriers may overtake the elements in its inputs"""
    partitioning: tuple[str, ...] = ()
    """of each of the operator's inputs"""

    @property
    def input_channels(self) -> range:
        """The input channels, by number."""
        return range(len(self.gates))

    @property
    def all_outputs(self) -> tuple[int, ...]:
        """The output channels, by number."""
        if len(self.outputs) == 1:
            return self.outputs[0].channels
        return tuple(channel for output in self.outputs for channel in output.channels)

    @property
    def overtaken_outputs(self) -> tuple[int, ...]:
        """The output channels in which barriers may overtake."""
        return tuple(channel for output in self.outputs if output.overtaken for channel in output.channels)
