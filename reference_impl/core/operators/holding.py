"""Operators whose state belongs to no key: rows that wait for a full batch, and counts held as a union (OPS-2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..backends.layouts import UNLISTED
from ..vocabulary.messages import Record
from ..vocabulary.state import Item, TaskState
from .operator_state import texts
from .operators import Count, Operator

ROWS = "rows"
COUNTS = "counts"


class Batch(Operator):
    """All rows, emitted `size` at a time, the rest at the end of the data; the waiting rows are a list.

    After a resume at fewer subtasks more than `size` may wait: they are emitted with the next row.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._waiting: list[Record] = []
        self._restored = 0
        """how many of these were restored; they come first"""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        self._waiting.append(record)
        if len(self._waiting) < self._size:
            return ()
        out, self._waiting, self._restored = self._waiting, [], 0
        return out

    def waiting(self) -> tuple[Sequence[Record], Sequence[Record]]:
        return self._waiting[: self._restored], self._waiting[self._restored :]

    def release(self, count: int) -> None:
        del self._waiting[:count]
        self._restored = max(0, self._restored - count)

    def listed(self) -> list[Item]:
        return texts(ROWS, ((one.key, one.value, one.tag, one.tag2, one.origin, one.ts) for one in self._waiting))

    def resume(self, state: TaskState) -> None:
        self._waiting = [Record(*msgspec.json.decode(text)) for _, text in state.listed]
        self._restored = len(self._waiting)


class Tally(Count):
    """A running count by key, held as a union: each subtask is offered all counts, and keeps those of its own keys."""

    layout = UNLISTED

    def __init__(self) -> None:
        super().__init__(tagged=False)

    def shared(self) -> list[Item]:
        return texts(COUNTS, self.state.items())

    def keeps(self, item: Item) -> bool:
        return self.place.owns(msgspec.json.decode(item[1])[0])

    def resume(self, state: TaskState) -> None:
        self.state.clear()
        self.state.update(msgspec.json.decode(text) for _, text in state.shared)
