"""Every record waits for the end of all input: an operator of one's own, whose state is a list that may be dealt anew.

    cutproof verify --workload ... --function last_call:LAST_CALL

What waits belongs to no key: after a resume at another parallelism it may wait at
any subtask, so the rows that come of it name their key themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from cutproof import END_OF_TIME, Context, Function, KeyRecord, Taken, UserFunction, items_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = tuple[int | None, int, int]


class LastCall(Function):
    """What the engine runs."""

    timed = True
    states: ClassVar = {"waiting": items_of(str)}

    def on_record(self, record: Taken, context: Context) -> Iterator[Row]:
        one = json.dumps([record.key, record.value, record.tag, record.tag2])
        context.put("waiting", [*context.get("waiting"), one])
        yield from ()

    def on_close(self, context: Context) -> Iterator[tuple[int | None, int | None, int, int]]:
        for one in context.get("waiting"):
            key, value, tag, tag2 = json.loads(one)
            yield key, value, tag, tag2
        context.clear("waiting")


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[Row]:
    """What the quick checker expects: nothing before the end, then everything."""
    if watermark >= END_OF_TIME:
        yield from ((record.value, record.tag, record.tag2) for record in records)


def spark(records: DataFrame) -> DataFrame:
    """What PySpark expects."""
    ended = records.where(records["watermark"] >= END_OF_TIME)
    return ended.select("scope", "key", "value", "tag", "tag2")


LAST_CALL = UserFunction(name="last-call", function=LastCall, expected=expected, spark=spark)
