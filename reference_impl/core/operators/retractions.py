"""Operators that accept retractions (OPS-6): count, sum and join.

A record with a tag below 0 retracts the record that is equal but for the sign of its
tag.  A count and a sum emit a changelog: a retraction of the key's last row, then its new
row.  A join keeps retractions like other rows, and each pair has the product of the two
signs.  So the order does not matter in which a row, its retraction and the row that it
is joined with arrive.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from ..backends.layouts import PAIR
from ..vocabulary.messages import Record
from .operators import Join, Operator

EMPTY = (0, 0)
"""a key of which everything is retracted: no state is held for it"""


class Changelog(Operator):
    """Base; its state holds (amount, sum of tags) by key."""

    keyed = True
    layout = PAIR

    @abstractmethod
    def amount(self, record: Record) -> int:
        """What a record adds; its retraction takes as much away."""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        before = self.state.pop(record.key, EMPTY)
        amount = -self.amount(record) if record.tag < 0 else self.amount(record)
        after = before[0] + amount, before[1] + record.tag
        if after != EMPTY:
            self.state[record.key] = after
        changes = ((before[0], -before[1], before), (*after, after))
        return [
            Record(record.key, total, tags, 0, record.origin, record.ts)
            for total, tags, state in changes
            if state != EMPTY
        ]


class SignedCount(Changelog):
    """The number of records of a key that have not been retracted."""

    def amount(self, record: Record) -> int:
        return 1


class SignedSum(Changelog):
    """The sum of the values that have not been retracted; NULL counts as 0."""

    def amount(self, record: Record) -> int:
        return record.value or 0


class SignedJoin(Join):
    """Every pair of a left and a right row; the sign of the pair is that of its left tag."""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        return [_with_sign(pair) for pair in super().apply(record, gate)]


def _with_sign(pair: Record) -> Record:
    sign = -1 if (pair.tag < 0) != (pair.tag2 < 0) else 1
    return Record(pair.key, pair.value, sign * abs(pair.tag), abs(pair.tag2), pair.origin, pair.ts)
