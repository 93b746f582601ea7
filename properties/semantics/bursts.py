"""The semantics of bursts, in plain Python: the quick checker's own implementation of `operators.Burst`.

A burst keeps the rows that it took, each with the processing time at which it took the
row.  At every tick the burst checks whether it has ended.
"""

from __future__ import annotations

from ..model.workload import BEGINNING, COPY_BITS, PANE, Burst, Row
from .semantics import Entry, Machine
from .windows import Emitted, Timer

Taken = tuple[int, int | None, int, int]
"""(processing time, value, tag, origin)"""


class BurstMachine(Machine):
    """One subtask's bursts; `time` is the last processing time that it received."""

    def __init__(self, operator: Burst) -> None:
        self.operator = operator
        self.time = BEGINNING
        self.open: dict[int | None, list[Taken]] = {}

    def take_at(self, row: Row, time: int, origin: int) -> list[Emitted]:
        """Put a row into its key's burst; the row's event time `time` is ignored."""
        key, value, tag, _ = row
        self.open.setdefault(key, []).append((self.time, value, tag, origin))
        return []

    def advance(self, time: int) -> list[Emitted]:
        """Receive a processing time; returns the rows of the bursts that it ends, in the order of their ends."""
        self.time = time
        over = [key for key in self.open if self._end(key) <= time]
        over.sort(key=lambda key: (self._end(key), key is not None, key or 0))
        return [self._emitted(key) for key in over]

    def entries(self) -> list[Entry]:
        return [(self.open[key][0][0], key, *self._totals(key)) for key in self.open]

    def timers(self) -> list[Timer]:
        return [(self._end(key), key, self.open[key][0][0]) for key in self.open]

    def keep(self) -> BurstMachine:
        """A copy of the state."""
        copy = BurstMachine(self.operator)
        copy.time = self.time
        copy.open = {key: list(rows) for key, rows in self.open.items()}
        return copy

    def _end(self, key: int | None) -> int:
        return self.open[key][-1][0] + self.operator.gap_us

    def _totals(self, key: int | None) -> tuple[int | None, int]:
        rows = self.open[key]
        tags = sum(tag for _, _, tag, _ in rows)
        if self.operator.of == "count":
            return len(rows), tags
        values = [value for _, value, _, _ in rows if value is not None]
        return (sum(values) if values else None), tags

    def _emitted(self, key: int | None) -> Emitted:
        value, tags = self._totals(key)
        rows = self.open.pop(key)
        greatest = max(origin for _, _, _, origin in rows) >> COPY_BITS << COPY_BITS
        return greatest | PANE, (key, value, tags, rows[0][0])
