"""What a task's part of a snapshot holds, and what of it a restored task takes over (ABS-5, ABS-6)."""

from __future__ import annotations

from ...vocabulary.state import TaskState
from ..part import Part


class SnapshotContents(Part):
    """What is stored of a task's state, and what is restored of it: all.

    The state is one value, so both return it as it is.  They are decisions all the same: real engines have left parts
    out at either end.
    """

    def stored(self, state: TaskState) -> TaskState:
        """What the snapshot of a task in this state holds, besides its working state by key: all of it.  A split whose
        position is missing is read from its beginning, and a timer that is missing never fires."""
        return state

    def restored(self, state: TaskState) -> TaskState:
        """What a restored task takes over of its snapshot: all of it.  Nobody sends in-flight data again, or reads
        again the records of a transaction that is sealed."""
        return state
