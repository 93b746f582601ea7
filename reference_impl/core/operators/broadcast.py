"""Broadcast state: a map that every subtask keeps as a whole, and joins its input with (OPS-1, OPS-2).

The operator's second input is *broadcast*: each of its records goes to every subtask.
The records come by several channels, and each subtask may take them in another order.
So of two rules for one key the rule with the greater tag counts, not the later one.
That makes the copies equal at every consistent cut, and a new subtask may take any of
them.  (Apache Flink's manual asks the same of its users: "the ordering of elements in
broadcast state may differ across tasks".)
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..vocabulary.messages import Record
from ..vocabulary.state import Item, TaskState
from .operator_state import texts
from .operators import Operator

RULES = "rules"
DATA_GATE = 0


class Rules(Operator):
    """The rows of the first input, each changed by the rule of its key, if there is one: (key, value + the rule's
    value, tag, the rule's tag).  Its state holds (value, tag) by key."""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        rule = self.state.get(record.key)
        if gate != DATA_GATE:
            if rule is None or _rank(record.value, record.tag) > _rank(*rule):
                self.state[record.key] = (record.value, record.tag)
            return ()
        if rule is None:
            return (record,)
        amount, tag = rule
        value = None if record.value is None or amount is None else record.value + amount
        return (Record(record.key, value, record.tag, tag, record.origin, record.ts),)

    def broadcast(self) -> list[Item]:
        return texts(RULES, ((key, value, tag) for key, (value, tag) in self.state.items()))

    def resume(self, state: TaskState) -> None:
        decoded = [msgspec.json.decode(text) for _, text in state.broadcast]
        self.state.clear()
        self.state.update({key: (value, tag) for key, value, tag in decoded})


def _rank(value: int | None, tag: int) -> tuple[int, bool, int]:
    """Of two rules the greater one counts: by tag; for copies of one record by value, where NULL is the least."""
    return tag, value is not None, value or 0
