"""Persistent channels: what a snapshot refers to and waits for, and what a log keeps (UNA-2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Complete
from ..vocabulary.state import Ref, TaskState
from .part import Part


def referred_to(states: Iterable[TaskState]) -> tuple[Ref, ...]:
    """All references in these states, in order."""
    return tuple(ref for state in states for refs in state.spilled.values() for ref in refs)


class Persisting(Part):
    """What a snapshot refers to and waits for, and what a log keeps."""

    def is_safe(self, serial: int, synced: int) -> bool:
        """Whether a snapshot may be written: its elements are durable once the sync number `serial` is done; `synced`
        is the last that is."""
        return serial <= synced

    def needed_from(self, taken: Sequence[CheckpointId], complete: Complete) -> CheckpointId | None:
        """Of the checkpoints in which the task has `taken` its snapshot, the oldest whose in-flight data may still be
        needed: none is needed that is older than every restorable one.  None: no log may be trimmed."""
        oldest = complete.logs_from
        return min((one for one in taken if oldest is not None and one >= oldest), default=None)

    def read_back(self, states: Iterable[TaskState]) -> tuple[Ref, ...]:
        """The parts of logs that a task restored from these states puts back into its inputs: all to which the states
        refer, in order, since nobody sends these elements again."""
        return referred_to(states)
