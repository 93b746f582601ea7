"""The sum of a key's tags by period of event time, and at the end of all input its number of records.  The function
has declared keyed state, and one timer for each key, which sets the next timer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

from ....properties.model.workload import END_OF_TIME
from ....properties.semantics.user_functions import ExpectedRow, KeyRecord
from ....reference_impl.core.operators.user_functions import Context, Function, Out, Taken, map_of, value_of
from .base import UserFunction, in_sql

PERIOD = 50


class Periods(Function):
    """Emits (end of the period, sum, 0), and at the end (number of records, 0, 1)."""

    timed = True
    states: ClassVar = {"sums": map_of(int), "records": value_of(int)}
    """sums by the end of the period, for periods that are not over"""

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        sums = Counter({int(end): total for end, total in context.get("sums").items()})
        if sums:
            context.drop_timer(min(sums))
        sums[(record.time // PERIOD + 1) * PERIOD] += record.tag
        context.set_timer(min(sums))
        context.put("sums", {str(end): total for end, total in sums.items()})
        context.put("records", (context.get("records") or 0) + 1)
        yield from ()

    def on_timer(self, time: int, context: Context) -> Iterator[Out]:
        sums = context.get("sums")
        yield time, sums.pop(str(time)), 0
        if sums:
            context.set_timer(min(map(int, sums)))
        context.put("sums", sums)

    def on_end(self, context: Context) -> Iterator[Out]:
        yield context.get("records"), 0, 1


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[ExpectedRow]:
    periods = sorted({record.time // PERIOD for record in records})
    for period in periods:
        if (period + 1) * PERIOD <= watermark:
            yield (period + 1) * PERIOD, sum(one.tag for one in records if one.time // PERIOD == period), 0
    if watermark >= END_OF_TIME:
        yield len(records), 0, 1


SQL = """
with ended as (
  select *, time - pmod(time, {period}) + {period} as over from {records}
)
select scope, key, over as value, sum(tag) as tag, 0 as tag2
from ended where over <= watermark group by scope, key, over
union all
select scope, key, count(*), 0, 1 from ended where watermark >= {end} group by scope, key
"""

PERIODS = UserFunction(
    name="cutproof/periods", function=Periods, expected=expected, spark=in_sql(SQL, period=PERIOD, end=END_OF_TIME)
)
