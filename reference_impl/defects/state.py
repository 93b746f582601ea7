"""Group H: state that is still changed while it is written, or forgotten once it is restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.decisions.tasks import Copying, HeldOutput
from ..core.vocabulary.messages import Record
from .registry import Defect


class NoCopy(Copying):
    """H01: the asynchronous part of a snapshot reads structures that the task goes on changing."""

    def copy(self, heap: dict[Any, Any]) -> dict[Any, Any]:
        self.reached = True
        return heap


class ShallowCopy(Copying):
    """H04: the map is copied, and the lists in it are not: a row added later gets into the snapshot."""

    def copy(self, heap: dict[Any, Any]) -> dict[Any, Any]:
        self.reached = self.reached or any(isinstance(value, list) for value in heap.values())
        return dict(heap)


class StuckAsRestored(HeldOutput):
    """H06: only the arrival of a row makes sure that a list is flushed at the end; a restored list is never flushed."""

    def at_end(self, restored: Sequence[Record], arrived: Sequence[Record]) -> Sequence[Record]:
        self.reached = self.reached or (bool(restored) and not arrived)
        return super().at_end(restored, arrived) if arrived else ()


DEFECTS = (
    Defect(
        id="H01",
        upstream="FLINK-9263 / 8699 / 9269",
        title="a snapshot shares mutable structures with the live state",
        invariant="consistent-cut",
        replacements=lambda: {"copying": NoCopy()},
    ),
    Defect(
        id="H04",
        upstream="FLINK-17918 / FLINK-12351",
        title="a value is changed after it was stored",
        invariant="consistent-cut",
        replacements=lambda: {"copying": ShallowCopy()},
    ),
    Defect(
        id="H06",
        upstream="FLINK-29827",
        title="a restored buffer has no flush timer",
        invariant="no-data-loss",
        replacements=lambda: {"held_output": StuckAsRestored()},
    ),
)
