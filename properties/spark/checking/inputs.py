"""The two tables of a check as DataFrames of one schema.

Spark itself reads Parquet and PostgreSQL if it can widen their types to the types
that are compared.  Text, and values for which Spark has no type (such as times in
nanoseconds), are converted by the same rules as on the Arrow engine, and passed to
Spark as Parquet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...checking.arrays import TEXT
from ...checking.conversion import cast, plainly, shown_as, shown_type
from ...checking.errors import CheckInputError
from ...checking.pair import Pair, Side
from ...checking.request import OURS
from ...checking.sources.parquet_source import ParquetSource
from ...checking.sources.postgres_source import PostgresSource
from ...checking.types import plain
from .differences import quoted
from .normal import common_type, is_comparable, normal
from .sources import read_table

A = pa.types


def tables(spark: SparkSession, pair: Pair, folder: Path) -> tuple[DataFrame, DataFrame]:
    """Both tables with the same columns, in one order and of the same types, with values in normal form.

    Files for Spark are written into `folder`, which has to stay while the frames are used.
    """
    expected, actual = (_frame(spark, pair, side, folder) for side in pair.sides)
    types = {name: _common(name, expected, actual) for name in pair.names}
    where = pair.request.where
    return _normal(expected, types, where, "expected"), _normal(actual, types, where, "actual")


def _frame(spark: SparkSession, pair: Pair, side: Side, folder: Path) -> DataFrame:
    """One side's table with the pair's column names; if there is a condition, with all columns."""
    types = {**(pair.other_types(side) if pair.request.where else {}), **pair.types}
    source = side.source
    if pair.request.empty_is_null and TEXT in types.values():
        return _written(spark, pair, side, types, folder / side.name)
    if isinstance(source, ParquetSource) and source.place.files and _is_native(source, side, types):
        return _from_files(spark, pair, side, types, source)
    if isinstance(source, PostgresSource) and all(_widens(source.types[side.own[n]], types[n]) for n in types):
        frame = read_table(spark, source.where)
    else:
        return _written(spark, pair, side, types, folder / side.name)
    return frame.select(*(F.col(quoted(side.own[name])).alias(name) for name in types))


def _from_files(
    spark: SparkSession, pair: Pair, side: Side, types: Mapping[str, Any], source: ParquetSource
) -> DataFrame:
    """The table of Parquet files that Spark itself reads, in tasks for ranges of the files."""
    frame = _parquet(spark, source)
    columns = [F.col(quoted(side.own[name])).alias(name) for name in types]
    frame = frame.select(*columns)
    for name, kind in types.items():
        if side.own[name] in source.folders and kind != TEXT:
            frame = _read_as(spark, pair, side, frame, name, kind)
    return frame


def _read_as(spark: SparkSession, pair: Pair, side: Side, frame: DataFrame, name: str, kind: Any) -> DataFrame:
    """The column with the texts in the names of folders as type `kind`: a broadcast table has a row for each text."""
    if not isinstance(side.source, ParquetSource):
        raise TypeError(f"{side.name} has no files")
    texts = side.source.in_folders([side.own[name]]).column(0).drop_null().unique()
    text, value = f"{OURS}text", f"{OURS}value"
    values = pair.conversion(side, name, kind)(pa.chunked_array([texts]))
    schema = pa.schema([(text, TEXT), (value, shown_type(kind))])
    known = spark.createDataFrame(pa.table([texts, shown_as(values)], schema=schema))
    joined = frame.join(F.broadcast(known), F.col(quoted(name)) == F.col(text), "left")
    kept = (F.col(value).alias(name) if one == name else F.col(quoted(one)) for one in frame.columns)
    return joined.select(*kept)


def _parquet(spark: SparkSession, source: ParquetSource) -> DataFrame:
    """Spark's own table of the files, in which the columns in the names of folders are texts."""
    root = source.place.path
    paths = [str(file.path) for file in source.place.files]
    if source.place.kind == "parquet" and source.place.is_partitioned_as_spark_has_it:
        paths = [str(root)]
    reading = spark.read.option("basePath", str(root)) if source.folders else spark.read
    guesses = spark.conf.get(GUESS) or "true"
    spark.conf.set(GUESS, "false")
    try:
        return reading.parquet(*paths)
    except PySparkException as error:
        raise CheckInputError(f"{root} cannot be read as parquet: {first_line(error)}") from error
    except Py4JJavaError as error:
        if (damage := damaged_file(error)) is None:
            raise
        raise CheckInputError(f"{root} cannot be read as parquet: {damage}") from error
    finally:
        spark.conf.set(GUESS, guesses)


GUESS = "spark.sql.sources.partitionColumnTypeInference.enabled"
"""whether Spark reads the names of folders as numbers and dates, by rules other than those of CSV"""


def _is_native(source: ParquetSource, side: Side, types: Mapping[str, Any]) -> bool:
    """Whether Spark can read the files itself, as the types in which they are compared."""
    stored = source.stored[0]
    if not source.as_stored or any(schema != stored for schema in source.stored):
        return False
    if source.folders and not source.place.is_partitioned_as_spark_has_it:
        return False
    return all(
        side.own[name] in source.folders
        or (
            side.own[name] in stored.names
            and _is_sparks(stored.field(side.own[name]).type)
            and _widens(source.types[side.own[name]], kind)
        )
        for name, kind in types.items()
    )


def _is_sparks(kind: Any) -> bool:
    """Whether Spark reads a stored type as the same values."""
    if A.is_dictionary(kind):
        return _is_sparks(kind.value_type)
    if A.is_timestamp(kind):
        return bool(kind.unit != "ns")
    if A.is_nested(kind):
        return all(_is_sparks(kind.field(place).type) for place in range(kind.num_fields))
    odd = (A.is_null, A.is_time, A.is_duration, A.is_uint64, A.is_float16, A.is_date64)
    return not isinstance(kind, pa.BaseExtensionType) and not any(is_one(kind) for is_one in odd)


def _widens(one: Any, kind: Any) -> bool:
    """Whether Spark's own widening (`normal.common_type`) makes type `kind` of type `one`."""
    if one == kind:
        return True
    families = (A.is_floating, A.is_timestamp, A.is_decimal)
    return any(is_one(one) and is_one(kind) for is_one in families) and "ns" not in (_unit(one), _unit(kind))


def _unit(kind: Any) -> str:
    return str(kind.unit) if A.is_timestamp(kind) else ""


def _written(spark: SparkSession, pair: Pair, side: Side, types: Mapping[str, Any], folder: Path) -> DataFrame:
    """One side's table, converted in this process and written as Parquet for Spark."""
    folder.mkdir()
    schema = pa.schema([pa.field(name, shown_type(kind)) for name, kind in types.items()])
    with pq.ParquetWriter(folder / "table.parquet", schema) as writer:
        for table in pair.converted(side, types):
            writer.write_table(pa.table([shown_as(column) for column in table.columns], schema=schema))
    return spark.read.parquet(str(folder))


def restored(table: Any, types: Mapping[str, Any]) -> Any:
    """Rows that Spark returned, in the types in which they were compared."""
    for place, name in enumerate(table.column_names):
        column, kind = table.column(name), types.get(name)
        if kind is not None and not A.is_nested(kind):
            column = cast(plainly(column), kind)
        elif kind is not None:
            column = column.cast(plain(column.type))
        table = table.set_column(place, name, column)
    return table


def first_line(error: PySparkException) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"(; line \d+,? pos \d+)?[;.]?$", "", line)


def damaged_file(error: Py4JJavaError) -> str | None:
    """The message of a Java failure about a damaged file; None for any other failure.

    FAILED_READ_FILE is the name of an error condition of Spark, which stays when the message is reworded.
    """
    found = re.search(r"\[FAILED_READ_FILE[^\]]*\] ([^\n]*)", str(error))
    return found[1] if found else None


def _common(name: str, expected: DataFrame, actual: DataFrame) -> T.DataType:
    one, two = expected.schema[name].dataType, actual.schema[name].dataType
    kind = common_type(one, two)
    if kind is None:
        raise CheckInputError(
            f"the column {name} is of unlike types: {one.simpleString()} expected, {two.simpleString()} actual;"
            f" --cast {name}=string compares texts"
        )
    if not is_comparable(kind):
        raise CheckInputError(f"the column {name} is of a type that cannot be compared: {kind.simpleString()}")
    return kind


def _normal(frame: DataFrame, types: Mapping[str, T.DataType], where: str | None, side: str) -> DataFrame:
    """The columns of `types`, of the rows that `where` selects.  `where` may use all columns, ignored ones too."""
    if where:
        try:
            frame = frame.where(where)
        except PySparkException as error:
            raise CheckInputError(f"the condition does not fit the {side} table: {first_line(error)}") from error
    columns = [normal(F.col(quoted(name)).cast(kind), kind).alias(name) for name, kind in types.items()]
    return frame.select(*columns)
