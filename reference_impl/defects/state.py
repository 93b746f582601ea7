"""Group H: state that is still changed while it is written, or forgotten once it is restored."""

from __future__ import annotations

from typing import Any

from ..core.parts import Copying, HeldOutput
from .registry import Defect


class NoCopy(Copying):
    """H01: the asynchronous part reads what the task goes on working with."""

    def copy(self, heap: dict[Any, Any]) -> dict[Any, Any]:
        self.reached = True
        return heap


class ShallowCopy(Copying):
    """H04: the map is copied, the lists in it are not; a row added later is in the snapshot."""

    def copy(self, heap: dict[Any, Any]) -> dict[Any, Any]:
        self.reached = self.reached or any(isinstance(value, list) for value in heap.values())
        return dict(heap)


class StuckAsRestored(HeldOutput):
    """H06: only a row that comes sees to it that a list is emptied at the end; what was restored has nobody to."""

    def at_end(self, restored: bool) -> bool:
        self.reached = self.reached or restored
        return not restored


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
        title="restored buffer has no flush timer",
        invariant="no-data-loss",
        replacements=lambda: {"held_output": StuckAsRestored()},
    ),
)
