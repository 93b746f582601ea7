"""Windows in event time: tumbling, sliding and session windows by key (OPS-1).

A window from `start` to before `end` ends when the watermark reaches `end - 1`.  Its
*pane*, what it has gathered for a key, is then emitted as (key, aggregate, sum of tags,
start).  With `lateness` the pane is kept until the watermark is that much further, and
each late record until then emits the pane again.  Later records are dropped.

A row's origin is the origin of the greatest record of its pane with `PANE` set, so that
rows of one origin have one key.  Its event time is the last of the window.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from ..backends.layouts import PANES
from ..vocabulary.messages import Record
from ..vocabulary.state import TaskState, Timer
from .operators import Operator
from .timers import Timers

PANE = 1 << 60
"""the bit of an origin that stands for a pane, not for one record"""
_COPY_MASK = (1 << 8) - 1

Pane = tuple[int, int | None, int, int]
"""(end, aggregate, sum of tags, origin)"""


class Window(Operator):
    """Base; its state holds panes by (key, start)."""

    keyed = True
    layout = PANES

    def __init__(self, of: str, lateness: int) -> None:
        """`of`: the aggregate, "count" or "sum"."""
        super().__init__()
        self._sums = of == "sum"
        self._lateness = lateness
        self.time = _NOTHING.watermark
        """the task's watermark"""

    @abstractmethod
    def spans(self, time: int) -> Iterable[tuple[int, int]]:
        """(start, end) of the windows to which an event time belongs, in order."""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        rows: list[Record] = []
        for start, end in self.spans(record.ts):
            if not self.is_late(end):
                rows.extend(self.put(record.key, start, self._with(record, self._empty(record.key, start, end))))
        return rows

    def is_late(self, end: int) -> bool:
        """Whether a window with this end is past its lateness."""
        return end - 1 + self._lateness <= self.time

    def put(self, key: int | None, start: int, pane: Pane) -> list[Record]:
        """Keep a pane until its window's end; returns its row if that has come already."""
        self.state[(key, start)] = pane
        if pane[0] - 1 <= self.time:
            self.timers.set((pane[0] - 1 + self._lateness, key, start))
            return [self.row(key, start, pane)]
        for timer in self._timers_of(key, start, pane[0]):
            self.timers.set(timer)
        return []

    def take(self, key: int | None, start: int) -> Pane:
        """Remove a pane and its timers."""
        pane: Pane = self.state.pop((key, start))
        for timer in self._timers_of(key, start, pane[0]):
            self.timers.drop(timer)
        return pane

    def _timers_of(self, key: int | None, start: int, end: int) -> tuple[Timer, ...]:
        """The timers at which a pane is emitted and dropped."""
        last = end - 1
        return ((last, key, start), (last + self._lateness, key, start))

    def _empty(self, key: int | None, start: int, end: int) -> Pane:
        pane: Pane = self.state.get((key, start), (end, None if self._sums else 0, 0, 0))
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
        """The panes of windows that have ended; panes past their lateness are dropped."""
        self.time = time
        rows: list[Record] = []
        for at, key, start in due:
            pane = self.state.get((key, start))
            if pane is None:
                continue
            if at == pane[0] - 1:
                rows.append(self.row(key, start, pane))
            if at == pane[0] - 1 + self._lateness:
                del self.state[(key, start)]
        return rows

    # -- snapshots -----------------------------------------------------------------

    def resume(self, state: TaskState) -> None:
        self.time = state.watermark
        self.timers = Timers(state.timers)
        self.state.restore(state)


class Tumbling(Window):
    """Windows of one size, one after the other, in both directions from 0."""

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
    """Windows that end when no record of the key comes for `gap`."""

    def __init__(self, gap: int, of: str, lateness: int) -> None:
        super().__init__(of, lateness)
        self._gap = gap

    def spans(self, time: int) -> Iterable[tuple[int, int]]:
        return ((time, time + self._gap),)

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        """A session of one record, merged with the sessions that it overlaps; sessions that only touch stay apart."""
        ((start, end),) = self.spans(record.ts)
        near = [
            begun
            for (key, begun), (until, _, _, _) in self.state.items()
            if key == record.key and begun < end and start < until
        ]
        start = min(start, *near) if near else start
        end = max([end, *(self.state[(record.key, begun)][0] for begun in near)])
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
