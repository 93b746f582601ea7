"""Spark Structured Streaming writes each micro-batch of JSON files into an Iceberg table.

Arguments: the folder of the input, that of the tables, that of the checkpoints, and that of the jars.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

TABLE = "local.db.rows"


def main(records: str, tables: str, checkpoints: str, jars: str) -> None:
    settings = {
        "spark.driver.extraClassPath": f"{jars}/*",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.local.type": "hadoop",
        "spark.sql.catalog.local.warehouse": tables,
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sys.stdin.readline() or sys.exit()  # a spare waits here until the process before it was killed
    begun = sorted(int(one.name) for one in Path(checkpoints, "offsets").glob("[0-9]*"))
    spark.sql(f"CREATE TABLE IF NOT EXISTS {TABLE} (key BIGINT, value BIGINT, tag BIGINT) USING iceberg")
    if begun:
        print(f"resumed at batch {begun[-1]}", flush=True)
    stream = (
        spark.readStream.schema("key BIGINT, value BIGINT, tag BIGINT").option("maxFilesPerTrigger", 1).json(records)
    )
    query = (
        stream.writeStream.format("iceberg")
        .outputMode("append")
        .option("checkpointLocation", checkpoints)
        .trigger(availableNow=True)
        .toTable(TABLE)
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
