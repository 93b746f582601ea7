"""Committed rows, which PySpark itself reads from tables of PostgreSQL.

The engine under test takes no part: none of its clients, file handles or caches is used.
A table is read once, at one moment (a snapshot that the server keeps while the slices
are read).  Spark then keeps the rows, so a pipeline that goes on writing does not change
them during a comparison.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ...checking.errors import CheckInputError, TableUnreachable
from ...checking.sources.addresses import PostgresTable
from ...checking.sources.postgres import opened, plan_of
from ...checking.sources.postgres_link import full_conninfo
from .postgres import FORMAT, Source, spark_type


def read_table(session: SparkSession, where: PostgresTable) -> DataFrame:
    """The table as it is now, read in slices; raises CheckInputError, TableUnreachable."""
    session.dataSource.register(Source)
    with opened(where) as link:
        plan = plan_of(link, where)
        schema = T.StructType([T.StructField(column.name, spark_type(column)) for column in plan.columns])
        frame = session.read.format(FORMAT).schema(schema).options(
            conninfo=full_conninfo(where.parameters),
            password=where.parameters.get("password", ""),
            plan=msgspec.json.encode(plan).decode(),
        )  # fmt: skip
        try:
            return frame.load().localCheckpoint(eager=True)
        except (PySparkException, Py4JJavaError) as error:
            raise _from_worker(error) or error from None


def _from_worker(error: Exception) -> Exception | None:
    """The error that a worker raised, by the name of its class: Spark passes a worker's exception on as the text of its
    traceback."""
    kinds: dict[str, Any] = {kind.__name__: kind for kind in (CheckInputError, TableUnreachable)}
    found = re.search(rf"\b({'|'.join(kinds)}): ([^\n]*)", str(error))
    return kinds[found[1]](found[2]) if found else None
