"""The difference of each value of a key from the previous one.  The state is in a field that the function snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ....properties.semantics.user_functions import ExpectedRow, KeyRecord
from ....reference_impl.core.operators.user_functions import Context, Function, Out, Taken
from .base import UserFunction, in_sql


class Changes(Function):
    """Emits (difference, tag, tag2) for each record but a key's first; the difference is NULL if a value is."""

    owns_state = True

    def __init__(self) -> None:
        self._last: dict[int | None, int | None] = {}

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        if record.key in self._last:
            yield _difference(self._last[record.key], record.value), record.tag, record.tag2
        self._last[record.key] = record.value

    def snapshot(self) -> Mapping[int | None, int | None]:
        return self._last

    def restore(self, state: Mapping[int | None, int | None]) -> None:
        self._last = dict(state)


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[ExpectedRow]:
    for before, after in pairwise(records):
        apart = None if None in (before.value, after.value) else (after.value or 0) - (before.value or 0)
        yield apart, after.tag, after.tag2


SQL = """
select scope, key, change as value, tag, tag2
from (select *, value - lag(value) over (partition by scope, key order by n) as change from {records}) where n > 1
"""

CHANGES = UserFunction(name="cutproof/changes", function=Changes, expected=expected, spark=in_sql(SQL), ordered=True)
