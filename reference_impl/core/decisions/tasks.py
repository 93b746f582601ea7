"""How a task starts, and takes its part of a snapshot (ABS-1, ABS-2, ABS-8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from ..job.split_log import SplitLog
from ..vocabulary.messages import Record
from .part import Part
from .postponed import Postponed


class StartStep(Enum):
    """One of the two steps in which a deployed task starts."""

    restore = "restore"
    """read its snapshot, and take the state over"""
    open_inputs = "open-inputs"


class Startup(Part):
    """When a task that starts takes input."""

    def steps(self) -> tuple[StartStep, ...]:
        """The steps in order: the state before the input (ABS-6).  A record that is taken before the state is restored
        would be applied to another state, and its effect replaced."""
        return (StartStep.restore, StartStep.open_inputs)


class CutStep(Enum):
    """One of the two steps in which a source takes part in a checkpoint."""

    record_position = "record-position"
    send_barrier = "send-barrier"


class SourceCut(Part):
    """How a source records its position and emits its barrier (ABS-1)."""

    def steps(self) -> tuple[CutStep | Postponed[CutStep], ...]:
        """The steps in order, both at once: the position is that of the first record behind the barrier, so none may be
        read in between."""
        return (CutStep.record_position, CutStep.send_barrier)


class StartPosition(Part):
    """The position at which a restored source reads on."""

    def saved(self, offset: int) -> int:
        """The position that at-most-once saves before it sends the record at this offset: the next one (ABS-7)."""
        return offset + 1

    def position(self, log: SplitLog, restored: Mapping[int, int]) -> int:
        """Where a task reads a split on: at the `restored` position; without one at the beginning."""
        return restored.get(log.split, 0)


class HeldStep(Enum):
    """One of the two steps of a task that holds rows back when its barrier is due, or the end of its data."""

    emit = "emit"
    """emit the rows that are held back"""
    pass_on = "pass-on"
    """take the snapshot and send the barrier on, or end the data"""


class HeldOutput(Part):
    """When rows that an operator holds back are emitted."""

    def steps(self) -> tuple[HeldStep, ...]:
        """The steps in order: rows that follow from records before the barrier go before the barrier (ABS-2), since the
        snapshot does not hold them."""
        return (HeldStep.emit, HeldStep.pass_on)

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
        """A copy that later changes do not reach: lists are copied too, everything else in a state is immutable."""
        return {key: list(value) if isinstance(value, list) else value for key, value in heap.items()}
