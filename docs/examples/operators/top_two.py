"""Each record that enters the two greatest of its key: an operator of one's own, with state of its own.

    cutproof verify --workload ... --function top_two:TOP_TWO

It keeps its state in a field, as code from elsewhere would, and hands it over by
key when a snapshot is taken.  What enters depends on what was there before, so the
function is `ordered`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cutproof import Context, Function, KeyRecord, Taken, UserFunction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = tuple[int | None, int, int]


class TopTwo(Function):
    """What the engine runs: the row is the record itself."""

    owns_state = True

    def __init__(self) -> None:
        self.best: dict[int | None, list[int]] = {}

    def on_record(self, record: Taken, context: Context) -> Iterator[Row]:
        best = self.best.get(record.key, [])
        if record.value is not None and (len(best) < 2 or record.value > best[-1]):
            self.best[record.key] = sorted([*best, record.value], reverse=True)[:2]
            yield record.value, record.tag, record.tag2

    def snapshot(self) -> Mapping[int | None, Any]:
        return self.best

    def restore(self, state: Mapping[int | None, Any]) -> None:
        self.best = {key: list(best) for key, best in state.items()}


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[Row]:
    """What the quick checker expects: a record that fewer than two before it reach or exceed."""
    for place, record in enumerate(records):
        if record.value is not None:
            before = [other.value for other in records[:place] if other.value is not None]
            if sum(value >= record.value for value in before) < 2:
                yield record.value, record.tag, record.tag2


def spark(records: DataFrame) -> DataFrame:
    """What PySpark expects."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = Window.partitionBy("scope", "key").orderBy("n").rowsBetween(Window.unboundedPreceding, -1)
    values = records.withColumn("before", F.collect_list("value").over(before))
    entering = values.where("value is not null and size(filter(before, other -> other >= value)) < 2")
    return entering.select("scope", "key", "value", "tag", "tag2")


TOP_TWO = UserFunction(name="top-two", function=TopTwo, expected=expected, spark=spark, ordered=True)
