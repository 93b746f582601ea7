"""Broadcast state: a map that every subtask keeps as a whole, and joins what it takes with (OPS-1, OPS-2).

Its second input is *broadcast*: each record of it goes to every subtask.  Those
come by several channels, and each subtask may merge them in another order; so
of two rules for a key not the later one holds, but the one of the greater tag.
That is what makes the copies equal at every consistent cut, hence a new subtask
may take anybody's (Apache Flink's manual asks the same of its users: "the
ordering of elements in broadcast state may differ across tasks").
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .messages import Record
from .operator_state import Item, texts
from .operators import Operator
from .state import Entry, TaskState

RULES = "rules"
DATA_GATE = 0


class Rules(Operator):
    """The rows of the first input, each changed by the rule of its key, if there is one: (key, value + the rule's
    value, tag, the rule's tag).  Its heap holds (value, tag) by key."""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        rule = self.heap.get(record.key)
        if gate != DATA_GATE:
            if rule is None or _rank(record.value, record.tag) > _rank(*rule):
                self.heap[record.key] = (record.value, record.tag)
            return ()
        if rule is None:
            return (record,)
        amount, tag = rule
        value = None if record.value is None or amount is None else record.value + amount
        return (Record(record.key, value, record.tag, tag, record.origin, record.ts),)

    def broadcast(self) -> list[Item]:
        return texts(RULES, ((key, value, tag) for key, (value, tag) in self.heap.items()))

    def resume(self, state: TaskState) -> None:
        decoded = [msgspec.json.decode(text) for _, text in state.broadcast]
        self.heap = {key: (value, tag) for key, value, tag in decoded}

    def restore(self, entries: list[Entry]) -> None:
        self.heap = {}


def _rank(value: int | None, tag: int) -> tuple[int, bool, int]:
    """The greater one holds: by tag; of copies of one record by value, NULL being the least."""
    return tag, value is not None, value or 0
