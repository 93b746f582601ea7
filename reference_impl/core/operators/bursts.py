"""Bursts: session windows by key in processing time, the clock of the process that runs the subtask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..vocabulary.messages import Record
from ..vocabulary.state import Entry, TaskState
from .operators import Operator
from .timers import Timer, Timers
from .windows import PANE

_COPY_MASK = (1 << 8) - 1

Gathered = tuple[int, int, int | None, int, int]
"""(start, end, aggregate, sum of tags, origin); the burst is emitted at its end"""


class Burst(Operator):
    """One subtask; `heap` holds the open burst of each key.

    A burst ends `gap_us` after its last record, so each record moves its timer.
    """

    keyed = True
    clocked = True

    def __init__(self, gap_us: int, of: str) -> None:
        """`of`: the aggregate, "count" or "sum"."""
        super().__init__()
        self._gap_us = gap_us
        self._sums = of == "sum"
        self._now = 0

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        key, end = record.key, self._now + self._gap_us
        start, before, value, tags, origin = self.heap.get(key) or (self._now, end, None if self._sums else 0, 0, 0)
        if not self._sums:
            value = (value or 0) + 1
        elif record.value is not None:
            value = record.value + (value or 0)
        self.heap[key] = (start, end, value, tags + record.tag, max(origin, record.origin & ~_COPY_MASK | PANE))
        self.alarms.drop((before, key, start))
        self.alarms.set((end, key, start))
        return ()

    def on_clock(self, now: int, due: Iterable[Timer]) -> Iterable[Record]:
        """The rows of the bursts that have ended."""
        self._now = now
        rows: list[Record] = []
        for end, key, start in due:
            burst: Gathered | None = self.heap.get(key)
            if burst is not None and burst[:2] == (start, end):
                del self.heap[key]
                rows.append(Record(key, burst[2], burst[3], start, burst[4], end))
        return rows

    # -- snapshots -----------------------------------------------------------------

    def describe(self, heap: dict[Any, Any]) -> list[Entry]:
        return [(start, key, value, tags) for key, (start, _, value, tags, _) in heap.items()]

    def lineage(self) -> list[tuple[int, int]]:
        return [(end, origin) for _, end, _, _, origin in self.heap.values()]

    def restore(self, entries: list[Entry]) -> None:
        """Begin empty: `entries` do not hold the ends of bursts, which `resume` restores."""
        self.resume(TaskState())

    def resume(self, state: TaskState) -> None:
        self.alarms = Timers(state.alarms)
        self.heap = {
            key: (start, end, value, tags, origin)
            for (start, key, value, tags), (end, origin) in zip(state.entries, state.panes, strict=False)
        }
