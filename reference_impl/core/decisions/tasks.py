"""How a task starts, and takes its part of a snapshot (ABS-1, ABS-2, ABS-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from ..job.split_log import SplitLog
from ..vocabulary.effects import Effect
from ..vocabulary.messages import Record
from ..vocabulary.state import TaskState
from .part import Part
from .postponed import Postponed


class Startup(Part):
    """When a task that starts takes input."""

    def begins_with(self, restoring: list[Effect]) -> list[Effect]:
        """What a deployed task does first: it restores its state.  Its inputs are opened when that is done, and not
        before (ABS-6)."""
        return restoring


class CutStep(Enum):
    """One of the two steps in which a source takes part in a checkpoint."""

    record_position = "record-position"
    send_barrier = "send-barrier"


class SourceCut(Part):
    """How a source records its position and emits its barrier (ABS-1)."""

    def steps(self) -> tuple[CutStep | Postponed[CutStep], ...]:
        """The steps in order, both at once: no record slips in between."""
        return (CutStep.record_position, CutStep.send_barrier)

    def positions(self, state: TaskState) -> dict[int, int]:
        """The positions that a snapshot of this state of a source holds: those of all its splits."""
        return dict(state.positions)


class StartPosition(Part):
    """The position at which a restored source reads on."""

    def saved(self, offset: int) -> int:
        """The position that at-most-once saves before it sends the record at this offset: the next one (ABS-7)."""
        return offset + 1

    def position(self, log: SplitLog, restored: Mapping[int, int]) -> int:
        """Where a task reads a split on: at the `restored` position; without one at the beginning."""
        return restored.get(log.split, 0)


class HeldOutput(Part):
    """When rows that an operator holds back are emitted (ABS-2: before the barrier)."""

    def before_barrier(self, held: Sequence[Record]) -> Sequence[Record]:
        """The rows that are emitted before the barrier: all that are held."""
        return held

    def needs_mail(self, held: Sequence[Record]) -> bool:
        """Whether the task sends itself a mail, so that held rows are emitted even if nothing else happens."""
        return bool(held)

    def at_end(self, restored: Sequence[Record], arrived: Sequence[Record]) -> Sequence[Record]:
        """The rows that are emitted at the end of the data, of those that wait in the operator's list: all, those from
        a snapshot as well as those that have `arrived` since."""
        return (*restored, *arrived)


class Copying(Part):
    """How working state on the heap is copied for a snapshot that is written later (ABS-8)."""

    def copy(self, heap: dict[Any, Any]) -> dict[Any, Any]:
        return {key: list(value) if isinstance(value, list) else value for key, value in heap.items()}
