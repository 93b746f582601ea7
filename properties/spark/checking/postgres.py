"""A table of PostgreSQL as a Spark data source; this code runs in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from ...checking.sources.postgres_link import Plan, TableColumn, batches

FORMAT = "cutproof-postgres"

KINDS: dict[str, T.DataType] = {
    "int2": T.ShortType(),
    "int4": T.IntegerType(),
    "int8": T.LongType(),
    "float4": T.FloatType(),
    "float8": T.DoubleType(),
    "text": T.StringType(),
    "varchar": T.StringType(),
    "bool": T.BooleanType(),
    "date": T.DateType(),
    "timestamp": T.TimestampNTZType(),
    "timestamptz": T.TimestampType(),
}
"""By PostgreSQL's type, as its catalogue names it, Spark's type.  `numeric` is a decimal with the column's digits."""


def spark_type(column: TableColumn) -> T.DataType:
    return T.DecimalType(column.precision, column.scale) if column.kind == "numeric" else KINDS[column.kind]


class Source(DataSource):
    """`spark.read.format(FORMAT)` with the options conninfo, password and plan (JSON).

    The password is an option of its own, because Spark hides an option of that name wherever it shows options.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: T.StructType) -> Reader:
        plan = msgspec.json.decode(self.options["plan"], type=Plan)
        return Reader(self.options["conninfo"], self.options.get("password", ""), plan)


class Slice(InputPartition):
    """A range of a table's pages."""

    def __init__(self, first: int, behind: int | None) -> None:
        self.first, self.behind = first, behind


class Reader(DataSourceReader):
    """Reads the slices of a plan, each over a connection of its own."""

    def __init__(self, conninfo: str, password: str, plan: Plan) -> None:
        self._conninfo, self._password, self._plan = conninfo, password, plan

    def partitions(self) -> list[InputPartition]:
        return [Slice(*pages) for pages in self._plan.slices]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a slice as Arrow batches; raises the same errors as `batches`."""
        if not isinstance(partition, Slice):
            raise TypeError(f"no slice of a table: {partition!r}")
        return batches(self._conninfo, self._password, self._plan, (partition.first, partition.behind))
