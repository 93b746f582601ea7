"""What one attempt of a task did, worked through again."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..model.workload import Row
from ..semantics.semantics import Entry
from ..semantics.timed import TimedMachine
from ..semantics.windows import Emitted


class RunReplay(msgspec.Struct, kw_only=True):
    """One run, replayed.

    `taken[i]` is the row of the i-th applied record (None when nobody emitted
    it), `emitted` the rows it sent on as (number of records read or applied by
    then, origin, row), `states` the entries at the marks of completed
    checkpoints.
    """

    taken: list[Row | None] = []
    emitted: list[tuple[int, int, Row]] = []
    states: dict[int, list[Entry]] = {}
    fired: list[tuple[int, int, Row]] = []
    """the rows that advances of its watermark, or of its clock, yielded, as (how many advances by then, origin, row)"""
    kept: dict[int, TimedMachine] = {}
    """the windows at the marks of completed checkpoints"""
    by_origin: dict[int, list[Row]] = {}
    """the emitted rows by origin, each list in order"""
    dealt: dict[int, int] = {}
    """by origin, how many of them receivers behind a rebalance have taken"""

    def fire(self, advances: int, out: Iterable[Emitted]) -> None:
        for origin, row in out:
            self.fired.append((advances, origin, row))
            self.by_origin.setdefault(origin, []).append(row)

    def emit(self, taken: int, origin: int, row: Row) -> None:
        self.emitted.append((taken, origin, row))
        self.by_origin.setdefault(origin, []).append(row)
