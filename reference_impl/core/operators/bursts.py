"""Bursts: session windows by key in processing time, the clock of the process that runs the subtask."""

from __future__ import annotations

from collections.abc import Iterable

from ..backends.layouts import BURSTS
from ..vocabulary.messages import Record
from ..vocabulary.state import TaskState, Timer
from .operators import Operator
from .timers import Timers
from .windows import PANE

_COPY_MASK = (1 << 8) - 1

Gathered = tuple[int, int, int | None, int, int]
"""(start, end, aggregate, sum of tags, origin); the burst is emitted at its end"""


class Burst(Operator):
    """One subtask; its state holds the open burst of each key.

    A burst ends `gap_us` after its last record, so each record moves its timer.
    """

    keyed = True
    layout = BURSTS
    clocked = True

    def __init__(self, gap_us: int, of: str) -> None:
        """`of`: the aggregate, "count" or "sum"."""
        super().__init__()
        self._gap_us = gap_us
        self._sums = of == "sum"
        self._now = 0

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        key, end = record.key, self._now + self._gap_us
        start, before, value, tags, origin = self.state.get(key) or (self._now, end, None if self._sums else 0, 0, 0)
        if not self._sums:
            value = (value or 0) + 1
        elif record.value is not None:
            value = record.value + (value or 0)
        self.state[key] = (start, end, value, tags + record.tag, max(origin, record.origin & ~_COPY_MASK | PANE))
        self.alarms.drop((before, key, start))
        self.alarms.set((end, key, start))
        return ()

    def on_clock(self, now: int, due: Iterable[Timer]) -> Iterable[Record]:
        """The rows of the bursts that have ended."""
        self._now = now
        rows: list[Record] = []
        for end, key, start in due:
            burst: Gathered | None = self.state.get(key)
            if burst is not None and burst[:2] == (start, end):
                del self.state[key]
                rows.append(Record(key, burst[2], burst[3], start, burst[4], end))
        return rows

    # -- snapshots -----------------------------------------------------------------

    def resume(self, state: TaskState) -> None:
        self.alarms = Timers(state.alarms)
        self.state.restore(state)
