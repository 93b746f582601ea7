"""Each value of a key once.  The state is a union, of which each subtask keeps the items of its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

from ....properties.semantics.user_functions import ExpectedRow, KeyRecord
from ....reference_impl.core.operators.user_functions import Context, Function, Out, Place, Taken, union_of
from .base import UserFunction, in_sql


class Distinct(Function):
    """Emits (value, 0, 0).  No row shows which record had the value first, so the order of records does not matter."""

    states: ClassVar = {"seen": union_of(str)}
    """[key, value] as JSON"""

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        seen, one = context.get("seen"), json.dumps([record.key, record.value])
        if one not in seen:
            context.put("seen", [*seen, one])
            yield record.value, 0, 0

    def keeps(self, name: str, item: str, place: Place) -> bool:
        return place.owns(json.loads(item)[0])


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[ExpectedRow]:
    yield from ((value, 0, 0) for value in dict.fromkeys(record.value for record in records))


SQL = "select distinct scope, key, value, 0 as tag, 0 as tag2 from {records}"

DISTINCT = UserFunction(name="cutproof/distinct", function=Distinct, expected=expected, spark=in_sql(SQL))
