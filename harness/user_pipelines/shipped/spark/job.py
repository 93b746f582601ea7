"""Spark Structured Streaming reads JSON files, one a micro-batch, and writes rows in one of several ways.

Arguments: the folder of the input, that of the output, that of the checkpoints, the way, and for Delta
the folder of its jars.  Spark repeats a micro-batch whose commit is missing.  What is there then
depends on the sink:

- `append`: foreachBatch appends.  It promises at-least-once, and the rows are there twice.
- `idempotent`: foreachBatch replaces a folder of the micro-batch's number.
- `file`: the file sink logs the files of each micro-batch in `_spark_metadata`.  So do the ways `count`,
  which counts by key in a state of its own, `dedup`, which drops records of keys that it has had, and
  `windows`, which sums by key in windows of event time.
- `delta`: Delta's own sink, which keeps the micro-batch's number in the table's transactions.
- `delta-transactions`: foreachBatch appends to a Delta table, and hands in the micro-batch's number.
- `delta-append`: foreachBatch appends to a Delta table, without it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.streaming.state import GroupState

MORE_TO_DO_S = 0.2
WINDOW = "10 seconds"
LONGEST = "1 hour"
"""how long after its first record a key is remembered: longer than the input lasts"""
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
Write = Callable[[DataFrame, int], None]


class Progress(StreamingQueryListener):
    """Says what Spark's own progress of a micro-batch says: how many rows it read."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        print(f"batch {event.progress.batchId} had {event.progress.numInputRows} input rows", flush=True)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def started(jars: str) -> SparkSession:
    """Spark, with what suits micro-batches of some records on one core; `log4j2.properties` is beside this file."""
    os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # for what runs in Python: the counts
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    if jars:
        settings |= {"spark.driver.extraClassPath": f"{jars}/*", **DELTA}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.streams.addListener(Progress())
    return spark


def then_tell(write: Write) -> Write:
    """The same; it says that a micro-batch is written, and takes as long as a sink that has more to do before Spark
    may commit."""

    def told(rows: DataFrame, batch: int) -> None:
        write(rows, batch)
        print(f"batch {batch} is written", flush=True)
        time.sleep(MORE_TO_DO_S)

    return told


def append(rows: DataFrame, output: str) -> DataStreamWriter:
    def write(batch_rows: DataFrame, batch: int) -> None:
        batch_rows.coalesce(1).write.mode("append").json(output)

    return rows.writeStream.foreachBatch(then_tell(write))


def idempotent(rows: DataFrame, output: str) -> DataStreamWriter:
    def write(batch_rows: DataFrame, batch: int) -> None:
        batch_rows.coalesce(1).write.mode("overwrite").json(f"{output}/batch-{batch}")

    return rows.writeStream.foreachBatch(then_tell(write))


def file(rows: DataFrame, output: str) -> DataStreamWriter:
    return rows.writeStream.format("parquet").option("path", output)


def counted(key: tuple[Any, ...], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The records of a key in a micro-batch, each with how many of the key have come."""
    import pandas as pd

    tags = sorted(int(tag) for part in parts for tag in part["tag"])
    before = int(state.get[0]) if state.exists else 0
    state.update((before + len(tags),))
    yield pd.DataFrame({"key": key[0], "value": range(before + 1, before + len(tags) + 1), "tag": tags})


def count(rows: DataFrame, output: str) -> DataStreamWriter:
    columns = "key BIGINT, value BIGINT, tag BIGINT"
    return file(rows.groupBy("key").applyInPandasWithState(counted, columns, "n BIGINT", "append", "NoTimeout"), output)


def dedup(rows: DataFrame, output: str) -> DataStreamWriter:
    timed = rows.withColumn("time", fn.timestamp_seconds("tag")).withWatermark("time", LONGEST)
    return file(timed.dropDuplicatesWithinWatermark(["key"]).select("key"), output)


def windows(rows: DataFrame, output: str) -> DataStreamWriter:
    timed = rows.withColumn("time", fn.timestamp_seconds("tag")).withWatermark("time", "0 seconds")
    sums = timed.groupBy("key", fn.window("time", WINDOW)).agg(
        fn.sum("value").alias("value"), fn.sum("tag").alias("tag")
    )
    return file(sums.select("key", "value", "tag", fn.unix_seconds("window.start").alias("tag2")), output)


def delta(rows: DataFrame, output: str) -> DataStreamWriter:
    return rows.writeStream.format("delta").option("path", output)


def delta_transactions(rows: DataFrame, output: str) -> DataStreamWriter:
    def write(batch_rows: DataFrame, batch: int) -> None:
        numbered = batch_rows.write.format("delta").option("txnAppId", "rows").option("txnVersion", batch)
        numbered.mode("append").save(output)

    return rows.writeStream.foreachBatch(then_tell(write))


def delta_append(rows: DataFrame, output: str) -> DataStreamWriter:
    def write(batch_rows: DataFrame, batch: int) -> None:
        batch_rows.write.format("delta").mode("append").save(output)

    return rows.writeStream.foreachBatch(then_tell(write))


WAYS: dict[str, Callable[[DataFrame, str], DataStreamWriter]] = {
    "append": append,
    "idempotent": idempotent,
    "file": file,
    "count": count,
    "dedup": dedup,
    "windows": windows,
    "delta": delta,
    "delta-transactions": delta_transactions,
    "delta-append": delta_append,
}


def main(records: str, output: str, checkpoints: str, way: str, jars: str = "") -> None:
    if way not in WAYS:
        sys.exit(f"{way} is none of {', '.join(WAYS)}")
    spark = started(jars)
    sys.stdin.readline() or sys.exit()  # a spare waits here until the process before it was killed
    rows = spark.readStream.schema("key BIGINT, value BIGINT, tag BIGINT").option("maxFilesPerTrigger", 1).json(records)
    query = WAYS[way](rows, f"{output}/rows").option("checkpointLocation", checkpoints).trigger(availableNow=True)
    query.start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
