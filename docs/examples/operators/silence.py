"""An alert for each key that has been silent for a while: an operator of one's own, with a timer.

    cutproof verify --workload ... --function silence:SILENCE

A key is silent at time t if it had a record then, and none in the `GAP` after it.
That is known once the watermark has reached t + GAP: a timer waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from cutproof import Context, Function, KeyRecord, Taken, UserFunction, map_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GAP = 30

Row = tuple[int | None, int, int]


class Silence(Function):
    """What the engine runs: the row is (key, when it was last heard, the tags of that moment, 0)."""

    timed = True
    states: ClassVar = {"received": map_of(int)}
    """event time: sum of the tags of the records that have it"""

    def on_record(self, record: Taken, context: Context) -> Iterator[Row]:
        received = context.get("received")
        at = str(record.time)
        received[at] = received.get(at, 0) + record.tag
        context.put("received", received)
        context.set_timer(record.time + GAP)
        yield from ()

    def on_timer(self, time: int, context: Context) -> Iterator[Row]:
        received = {int(at): tags for at, tags in context.get("received").items()}
        last = time - GAP
        if not any(last < at <= time for at in received):
            yield last, received[last], 0
        context.put("received", {str(at): tags for at, tags in received.items() if at > last})


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[Row]:
    """What the quick checker expects: the same, from all records of a key at once."""
    tags: Counter[int] = Counter()
    for record in records:
        tags[record.time] += record.tag
    for at in sorted(tags):
        if at + GAP <= watermark and not any(at < other <= at + GAP for other in tags):
            yield at, tags[at], 0


def spark(records: DataFrame) -> DataFrame:
    """What PySpark expects."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    moments = records.groupBy("scope", "key", "time", "watermark").agg(F.sum("tag").alias("tag"))
    following = F.lead("time").over(Window.partitionBy("scope", "key").orderBy("time"))
    silent = moments.withColumn("following", following).where(
        f"time + {GAP} <= watermark and (following is null or following > time + {GAP})"
    )
    return silent.select("scope", "key", F.col("time").alias("value"), "tag", F.lit(0).alias("tag2"))


SILENCE = UserFunction(name="silence", function=Silence, expected=expected, spark=spark)
