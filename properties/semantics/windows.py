"""The semantics of windows, in plain Python: the quick checker's own implementation of `operators.Window`.

A pane keeps the rows that it took, and is aggregated whenever its value is needed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..model.workload import BEGINNING, COPY_BITS, PANE, Row, Session, Sliding, Tumbling, Window
from .semantics import Entry, Machine

Timer = tuple[int, int | None, int]
"""(event time, key, start of the window)"""
Emitted = tuple[int, Row]
"""(origin, row)"""


class Pane(msgspec.Struct, kw_only=True):
    """The rows that a window has taken for a key: (value, tag, origin) of each."""

    key: int | None
    start: int
    end: int
    rows: list[tuple[int | None, int, int]] = []
    emitted: bool = False
    """before the job was rescaled, the old subtask emitted the pane after its last row: see `WindowMachine.adopt`"""

    @property
    def last(self) -> int:
        """The last event time that belongs to the window: a watermark of this time ends the window."""
        return self.end - 1


class WindowMachine(Machine):
    """One subtask's windows; `time` is its watermark."""

    def __init__(self, operator: Window) -> None:
        self.operator = operator
        self.time = BEGINNING
        self.panes: list[Pane] = []

    def take_at(self, row: Row, time: int, origin: int) -> list[Emitted]:
        """Put a row into its windows; returns a row for each of them that had already ended."""
        key, value, tag, _ = row
        out: list[Emitted] = []
        for start, end in self._windows(time):
            pane = self._pane(key, start, end)
            if pane is not None:
                pane.rows.append((value, tag, origin))
                pane.emitted = False
                if pane.last <= self.time:
                    out.append(self._emitted(pane))
        return out

    def advance(self, time: int) -> list[Emitted]:
        """Advance the watermark; returns the rows of the windows that it ends, in the order of their ends."""
        done = sorted(
            (pane for pane in self.panes if self.time < pane.last <= time and not pane.emitted),
            key=lambda pane: (pane.end, pane.key is not None, pane.key or 0, pane.start),
        )
        self.time = max(self.time, time)
        self.panes = [pane for pane in self.panes if not self._is_over(pane.end)]
        return [self._emitted(pane) for pane in done]

    def entries(self) -> list[Entry]:
        return [(pane.start, pane.key, *self._totals(pane)) for pane in self.panes]

    def timers(self) -> list[Timer]:
        """The pending timers: the end of each open window, and that of its lateness."""
        found: dict[Timer, None] = {}
        for pane in self.panes:
            for time in (*(() if pane.emitted else (pane.last,)), pane.last + self.operator.lateness):
                if time > self.time:
                    found[time, pane.key, pane.start] = None
        return list(found)

    def keep(self) -> WindowMachine:
        """A copy of the state."""
        copy = WindowMachine(self.operator)
        copy.time = self.time
        copy.panes = [msgspec.structs.replace(pane, rows=list(pane.rows)) for pane in self.panes]
        return copy

    def adopt(self, panes: Iterable[Pane], time: int) -> None:
        """Take over windows of an old subtask whose watermark was `time`.

        This machine's watermark may be lower: in an unaligned snapshot the old subtasks need not have received the
        same watermark.  A window that the old subtask emitted is not emitted again.
        """
        for pane in panes:
            self.panes.append(msgspec.structs.replace(pane, emitted=pane.emitted or pane.last <= time))

    def _windows(self, time: int) -> list[tuple[int, int]]:
        match self.operator:
            case Tumbling(size=size):
                return [(time // size * size, (time // size + 1) * size)]
            case Sliding(size=size, slide=slide):
                first = -(-(time - size + 1) // slide)
                return [(at * slide, at * slide + size) for at in range(first, time // slide + 1)]
            case Session(gap=gap):
                return [(time, time + gap)]
        raise TypeError(self.operator)

    def _is_over(self, end: int) -> bool:
        return end - 1 + self.operator.lateness <= self.time

    def _pane(self, key: int | None, start: int, end: int) -> Pane | None:
        """The pane of a window, created if it does not exist; None when the window has expired."""
        same = [pane for pane in self.panes if pane.key == key]
        if isinstance(self.operator, Session):
            same = [pane for pane in same if pane.start < end and start < pane.end]
            start, end = min([start, *(pane.start for pane in same)]), max([end, *(pane.end for pane in same)])
        else:
            same = [pane for pane in same if pane.start == start]
        if self._is_over(end):
            return None
        whole = Pane(key=key, start=start, end=end, rows=[row for pane in same for row in pane.rows])
        if same:
            replaced = {id(pane) for pane in same}
            self.panes = [pane for pane in self.panes if id(pane) not in replaced]
        self.panes.append(whole)
        return whole

    def _totals(self, pane: Pane) -> tuple[int | None, int]:
        tags = sum(tag for _, tag, _ in pane.rows)
        if self.operator.of == "count":
            return len(pane.rows), tags
        values = [value for value, _, _ in pane.rows if value is not None]
        return (sum(values) if values else None), tags

    def _emitted(self, pane: Pane) -> Emitted:
        value, tags = self._totals(pane)
        greatest = max(origin for _, _, origin in pane.rows) >> COPY_BITS << COPY_BITS
        return greatest | PANE, (pane.key, value, tags, pane.start)
