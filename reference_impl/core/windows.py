"""Windows in event time: tumbling, sliding and session windows by key (OPS-1).

A window from `start` to before `end` is finished when the watermark reaches
`end - 1`: its *pane*, what it has gathered for a key, is then emitted as (key,
aggregate, sum of tags, start).  With `lateness` it is kept until the watermark
is that much further, and each late record that it takes until then emits it
again.  A record that comes later still is dropped.

A row's origin is that of the greatest record of its pane with `PANE` set, so
that rows of one origin are of one key; its event time is the window's last.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from .messages import Record
from .operators import Operator
from .state import Entry, TaskState
from .timers import Timer, Timers

PANE = 1 << 60
"""the mark of an origin that stands for a pane, not for a record alone"""
_COPY_MASK = (1 << 8) - 1

Pane = tuple[int, int | None, int, int]
"""(end, aggregate, sum of tags, origin)"""


class Window(Operator):
    """Base; `heap` holds panes by (key, start)."""

    keyed = True

    def __init__(self, of: str, lateness: int) -> None:
        """`of`: what is gathered, "count" or "sum"."""
        super().__init__()
        self._sums = of == "sum"
        self._lateness = lateness
        self.time = _NOTHING.watermark
        """the task's watermark"""

    @abstractmethod
    def spans(self, time: int) -> Iterable[tuple[int, int]]:
        """(start, end) of the windows that an event time belongs to, the first first."""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        rows: list[Record] = []
        for start, end in self.spans(record.ts):
            if not self.is_late(end):
                rows.extend(self.put(record.key, start, self._with(record, self._empty(record.key, start, end))))
        return rows

    def is_late(self, end: int) -> bool:
        """Whether the window has been dropped."""
        return end - 1 + self._lateness <= self.time

    def put(self, key: int | None, start: int, pane: Pane) -> list[Record]:
        """Keep a pane and wait for its end; its row, if that has come already."""
        self.heap[(key, start)] = pane
        if pane[0] - 1 <= self.time:
            self.timers.set((pane[0] - 1 + self._lateness, key, start))
            return [self.row(key, start, pane)]
        for timer in self._timers_of(key, start, pane[0]):
            self.timers.set(timer)
        return []

    def take(self, key: int | None, start: int) -> Pane:
        """Take a pane out, with its timers."""
        pane: Pane = self.heap.pop((key, start))
        for timer in self._timers_of(key, start, pane[0]):
            self.timers.drop(timer)
        return pane

    def _timers_of(self, key: int | None, start: int, end: int) -> tuple[Timer, ...]:
        """When it is emitted, and when it is dropped."""
        last = end - 1
        return ((last, key, start), (last + self._lateness, key, start))

    def _empty(self, key: int | None, start: int, end: int) -> Pane:
        pane: Pane = self.heap.get((key, start), (end, None if self._sums else 0, 0, 0))
        return pane

    def _with(self, record: Record, pane: Pane) -> Pane:
        end, value, tags, origin = pane
        if not self._sums:
            value = (value or 0) + 1
        elif record.value is not None:
            value = record.value + (value or 0)
        return end, value, tags + record.tag, max(origin, record.origin & ~_COPY_MASK | PANE)

    def row(self, key: int | None, start: int, pane: Pane) -> Record:
        end, value, tags, origin = pane
        return Record(key, value, tags, start, origin, end - 1)

    def on_watermark(self, time: int, due: Iterable[Timer]) -> Iterable[Record]:
        """The panes of the windows that are finished; those that are past their lateness go."""
        self.time = time
        rows: list[Record] = []
        for at, key, start in due:
            pane = self.heap.get((key, start))
            if pane is None:
                continue
            if at == pane[0] - 1:
                rows.append(self.row(key, start, pane))
            if at == pane[0] - 1 + self._lateness:
                del self.heap[(key, start)]
        return rows

    # -- snapshots -----------------------------------------------------------------

    def describe(self, heap: dict[Any, Any]) -> list[Entry]:
        return [(start, key, value, tags) for (key, start), (_, value, tags, _) in heap.items()]

    def lineage(self) -> list[tuple[int, int]]:
        return [(end, origin) for end, _, _, origin in self.heap.values()]

    def restore(self, entries: list[Entry]) -> None:
        """Begin again with nothing: entries alone do not tell a window's state, see `resume`."""
        self.resume(TaskState())

    def resume(self, state: TaskState) -> None:
        self.time = state.watermark
        self.timers = Timers(state.timers)
        self.heap = {
            (key, start): (end, value, tags, origin)
            for (start, key, value, tags), (end, origin) in zip(state.entries, state.panes, strict=False)
        }


class Tumbling(Window):
    """Windows of one size, one after the other, from 0 on to both sides."""

    def __init__(self, size: int, of: str, lateness: int) -> None:
        super().__init__(of, lateness)
        self._size = size

    def spans(self, time: int) -> Iterable[tuple[int, int]]:
        start = time - time % self._size
        return ((start, start + self._size),)


class Sliding(Window):
    """Windows of one size, one beginning every `slide`."""

    def __init__(self, size: int, slide: int, of: str, lateness: int) -> None:
        super().__init__(of, lateness)
        self._size = size
        self._slide = slide

    def spans(self, time: int) -> Iterable[tuple[int, int]]:
        last = time - time % self._slide
        return [(start, start + self._size) for start in range(last, time - self._size, -self._slide)][::-1]


class Session(Window):
    """Windows that go on for as long as no gap between two records of a key is as long as `gap`."""

    def __init__(self, gap: int, of: str, lateness: int) -> None:
        super().__init__(of, lateness)
        self._gap = gap

    def spans(self, time: int) -> Iterable[tuple[int, int]]:
        return ((time, time + self._gap),)

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        """A session of one record, merged with those that it overlaps; touching ones stay apart."""
        ((start, end),) = self.spans(record.ts)
        near = [
            begun
            for (key, begun), (until, _, _, _) in self.heap.items()
            if key == record.key and begun < end and start < until
        ]
        start = min(start, *near) if near else start
        end = max([end, *(self.heap[(record.key, begun)][0] for begun in near)])
        if self.is_late(end):
            return ()
        merged: Pane = (end, None if self._sums else 0, 0, 0)
        for begun in near:
            merged = self._joined(merged, self.take(record.key, begun))
        return self.put(record.key, start, self._with(record, merged))

    def _joined(self, one: Pane, other: Pane) -> Pane:
        end, value, tags, origin = one
        if other[1] is not None:
            value = other[1] + (value or 0)
        return end, value, tags + other[2], max(origin, other[3])


_NOTHING = TaskState()
