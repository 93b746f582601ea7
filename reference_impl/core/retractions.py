"""Operators that know retractions (OPS-6): count, sum and join.

A record with a tag below 0 takes back the one that is the same but for the sign
of its tag.  A count and a sum let out a changelog: the key's row as it was, taken
back, then the row as it is.  A join keeps what it is given, retractions too, and
its pairs have the product of both signs: so it does not matter which of three
comes first, a row, its retraction or what it is joined with.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from .messages import Record
from .operators import Join, Operator
from .state import Entry

EMPTY = (0, 0)
"""a key of which everything was taken back: nothing is held of it"""


class Changelog(Operator):
    """Base; its heap holds (amount, sum of tags) by key."""

    keyed = True

    @abstractmethod
    def amount(self, record: Record) -> int:
        """What a record adds, or takes away if it is a retraction."""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        before = self.heap.pop(record.key, EMPTY)
        amount = -self.amount(record) if record.tag < 0 else self.amount(record)
        after = before[0] + amount, before[1] + record.tag
        if after != EMPTY:
            self.heap[record.key] = after
        changes = ((before[0], -before[1], before), (*after, after))
        return [
            Record(record.key, total, tags, 0, record.origin, record.ts)
            for total, tags, state in changes
            if state != EMPTY
        ]

    def describe(self, heap: dict[Any, Any]) -> list[Entry]:
        return [(0, key, total, tags) for key, (total, tags) in heap.items()]

    def restore(self, entries: list[Entry]) -> None:
        self.heap = {key: (total, tags) for _, key, total, tags in entries}


class SignedCount(Changelog):
    """How many records of a key have not been taken back."""

    def amount(self, record: Record) -> int:
        return 1


class SignedSum(Changelog):
    """The sum of the values that have not been taken back; NULL is 0."""

    def amount(self, record: Record) -> int:
        return record.value or 0


class SignedJoin(Join):
    """Every pair of a left and a right row, its sign in the left tag."""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        return [_with_sign(pair) for pair in super().apply(record, gate)]


def _with_sign(pair: Record) -> Record:
    sign = -1 if (pair.tag < 0) != (pair.tag2 < 0) else 1
    return Record(pair.key, pair.value, sign * abs(pair.tag), abs(pair.tag2), pair.origin, pair.ts)
