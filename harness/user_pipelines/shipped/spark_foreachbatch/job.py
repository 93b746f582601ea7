"""Spark Structured Streaming writes each micro-batch of JSON files with foreachBatch: appended, or by its number.

Arguments: the folder of the input, that of the output, that of the checkpoints, and `append` or
`idempotent`.  Spark repeats a micro-batch whose commit is missing.  An appended one is then there
twice: foreachBatch promises at-least-once.  Written into a folder of its number, which is replaced
as a whole, it is there once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

MORE_TO_DO_S = 0.2
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


def tell(batch: int) -> None:
    """Say that a micro-batch is written, and take as long as a sink that has more to do before Spark may commit."""
    print(f"batch {batch} is written", flush=True)
    time.sleep(MORE_TO_DO_S)


def appending(output: str) -> Write:
    def write(rows: DataFrame, batch: int) -> None:
        rows.coalesce(1).write.mode("append").json(f"{output}/rows")
        tell(batch)

    return write


def replacing(output: str) -> Write:
    def write(rows: DataFrame, batch: int) -> None:
        rows.coalesce(1).write.mode("overwrite").json(f"{output}/rows/batch-{batch}")
        tell(batch)

    return write


def telling(write: Write, checkpoints: Path) -> Write:
    """The same; the first micro-batch of this process is told if an earlier process had begun one."""
    pending = (checkpoints / "offsets" / "0").exists()

    def first(rows: DataFrame, batch: int) -> None:
        nonlocal pending
        if pending:
            print(f"resumed at batch {batch}", flush=True)
            pending = False
        write(rows, batch)

    return first


def main(records: str, output: str, checkpoints: str, how: str) -> None:
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.streams.addListener(Progress())
    stream = (
        spark.readStream.schema("key BIGINT, value BIGINT, tag BIGINT").option("maxFilesPerTrigger", 1).json(records)
    )
    write = telling(appending(output) if how == "append" else replacing(output), Path(checkpoints))
    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", checkpoints)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
