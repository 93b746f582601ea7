"""State as parameters: a model that every record changes a little (OPS-1; the course on consistent snapshots)."""

from __future__ import annotations

from collections.abc import Iterable

from ..backends.layouts import PAIR
from ..vocabulary.messages import Record
from .operators import Operator

CAUTION = 4
"""each record moves the level by 1/CAUTION of the way to its value"""


class Model(Operator):
    """A level for each key, a whole number that begins at 0: each value moves it by floor((value - level) / CAUTION).

    Its state holds (level, number of values learnt) by key.  The fold is not
    commutative, so a record lost, repeated or out of order is never forgotten.
    """

    keyed = True
    layout = PAIR

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        level, learnt = self.state.get(record.key, (0, 0))
        if record.value is not None:
            level, learnt = level + (record.value - level) // CAUTION, learnt + 1
        self.state[record.key] = level, learnt
        return (Record(record.key, level, record.tag, record.tag2, record.origin, record.ts),)
