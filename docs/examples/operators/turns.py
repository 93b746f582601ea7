"""Each record's turn among those of its key: an operator of one's own, whose state is a union.

    cutproof verify --workload ... --function turns:TURNS

At each restore every subtask is offered the turns of all keys, and keeps those of
the keys whose records come to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from cutproof import Context, Function, KeyRecord, Place, Taken, UserFunction, union_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = tuple[int | None, int, int]
NO_KEY = "none"


class Turns(Function):
    """What the engine runs: the row's value is the turn."""

    states: ClassVar = {"turns": union_of(str)}

    def on_record(self, record: Taken, context: Context) -> Iterator[Row]:
        turns = dict(item.split() for item in context.get("turns"))
        key = NO_KEY if record.key is None else str(record.key)
        turn = int(turns.get(key, 0)) + 1
        turns[key] = str(turn)
        context.put("turns", [f"{one} {last}" for one, last in turns.items()])
        yield turn, 0, 0

    def keeps(self, name: str, item: str, place: Place) -> bool:
        key = item.split()[0]
        return place.owns(None if key == NO_KEY else int(key))


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[Row]:
    """What the quick checker expects."""
    yield from ((turn, 0, 0) for turn in range(1, len(records) + 1))


def spark(records: DataFrame) -> DataFrame:
    """What PySpark expects."""
    return records.selectExpr("scope", "key", "n as value", "0L as tag", "0L as tag2")


TURNS = UserFunction(name="turns", function=Turns, expected=expected, spark=spark)
