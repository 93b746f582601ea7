"""How many records of a key came within a while of its first: an operator of one's own that goes by processing time.

    cutproof verify --workload ... --function headcount:HEADCOUNT

The first record of a key opens its count, which is emitted `WHILE_US` later; the next record opens another.  Which
records a count covers depends on when a run took them, so PySpark is not asked: the run's history says when.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from cutproof import Context, Function, KeyRecord, Taken, UserFunction, value_of

WHILE_US = 1_500

Row = tuple[int | None, int, int]


class Headcount(Function):
    """What the engine runs: the row is (key, how many, sum of their tags, 0)."""

    clocked = True
    states: ClassVar = {"count": value_of(int), "tags": value_of(int)}

    def on_record(self, record: Taken, context: Context) -> Iterator[Row]:
        count = context.get("count")
        if count is None:
            context.wake_at(context.now + WHILE_US)
        context.put("count", (count or 0) + 1)
        context.put("tags", (context.get("tags") or 0) + record.tag)
        yield from ()

    def on_clock(self, time: int, context: Context) -> Iterator[Row]:
        yield context.get("count"), context.get("tags"), 0
        context.clear("count")
        context.clear("tags")


def expected(records: Sequence[KeyRecord], now: int) -> Iterator[Row]:
    """What the quick checker expects: the same, from all records of a key at once; `time` is when each
    was taken."""
    rest = list(records)
    while rest and rest[0].time + WHILE_US <= now:
        fires_at = rest[0].time + WHILE_US
        covered = [record for record in rest if record.time < fires_at]
        yield len(covered), sum(record.tag for record in covered), 0
        rest = rest[len(covered) :]


HEADCOUNT = UserFunction(name="headcount", function=Headcount, expected=expected)
