"""The two tables of a check, read and brought to one schema."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from .differences import quoted
from .errors import CheckInputError
from .normal import common_type, is_comparable, normal
from .sources import PostgresTable, read_table

FORMATS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table as read, and the types of its columns.

    A CSV is read as text, its types are inferred from all of it; so a value that
    does not fit the other table's type is still there as it was written.
    """

    frame: DataFrame
    types: dict[str, T.DataType]
    is_text: bool = False


def read(spark: SparkSession, path: Path | PostgresTable) -> Table:
    """A file, a folder of files of one format, or a table in PostgreSQL."""
    if isinstance(path, PostgresTable):
        frame = read_table(spark, path)
        return _table(frame, frame.schema)
    if not path.exists():
        raise CheckInputError(f"there is no {path}")
    kind = _format(path)
    try:
        if kind == "csv":
            inferred = spark.read.csv(str(path), header=True, inferSchema=True)
            return _table(spark.read.csv(str(path), header=True), inferred.schema, is_text=True)
        frame = {"delta": _delta, "json": _json, "parquet": _parquet}[kind](spark, path)
    except PySparkException as error:
        raise CheckInputError(f"{path} cannot be read as {kind}: {first_line(error)}") from error
    except Py4JJavaError as error:
        if (damage := damaged_file(error)) is None:
            raise
        raise CheckInputError(f"{path} cannot be read as {kind}: {damage}") from error
    return _table(frame, frame.schema)


def _table(frame: DataFrame, schema: T.StructType, *, is_text: bool = False) -> Table:
    names = [field.name for field in schema]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise CheckInputError(f"a table has two columns {twice[0]}")
    return Table(frame=frame, types={field.name: field.dataType for field in schema}, is_text=is_text)


def _json(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.json(str(path), mode="FAILFAST")


def _parquet(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.parquet(str(path))


def first_line(error: PySparkException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def damaged_file(error: Py4JJavaError) -> str | None:
    """What a failure of Java's says of a file that is not what its name says; None when it failed otherwise."""
    found = re.search(r"\[FAILED_READ_FILE[^\]]*\] ([^\n]*)", str(error))
    return found[1] if found else None


def _format(path: Path) -> str:
    if path.is_file():
        if path.suffix.lower() not in FORMATS:
            raise CheckInputError(f"{path} is of no known kind: it can be {', '.join(FORMATS)}, or a folder of them")
        return FORMATS[path.suffix.lower()]
    if (path / "_delta_log").is_dir():
        return "delta"
    files = [file for file in path.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(path))]
    kinds = sorted({FORMATS.get(file.suffix.lower(), "another kind") for file in files})
    if kinds and kinds[0] in FORMATS.values() and len(kinds) == 1:
        return kinds[0]
    raise CheckInputError(f"{path} holds {' and '.join(kinds) or 'no'} files; it has to hold those of one kind")


def _is_hidden(path: Path) -> bool:
    """As Spark has it: a committer's own files, and partial ones."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _delta(spark: SparkSession, path: Path) -> DataFrame:
    try:
        deltalake = importlib.import_module("deltalake")
    except ImportError as error:
        raise CheckInputError(f"{path} is a Delta table: reading it needs `pip install deltalake`") from error
    table = deltalake.DeltaTable(str(path))
    files = table.file_uris()
    if not files:
        return spark.createDataFrame(table.to_pyarrow_table())
    return spark.read.option("basePath", str(path)).parquet(*files)


def aligned(
    expected: Table, actual: Table, *, rename: Mapping[str, str], where: str | None, ignore: Sequence[str]
) -> tuple[DataFrame, DataFrame]:
    """Both tables with the same columns, in one order, of the same types, values in normal form.

    `rename` tells of expected columns how the actual table calls them.
    """
    for own, theirs in rename.items():
        _demand([own], expected, "expected")
        _demand([theirs], actual, "actual")
    actual = _renamed(actual, {theirs: own for own, theirs in rename.items()})
    for name in ignore:
        if name not in expected.types and name not in actual.types:
            raise CheckInputError(f"neither table has a column {name} to be ignored")
    names = [name for name in expected.types if name not in ignore]
    _demand([name for name in actual.types if name not in ignore], expected, "expected")
    _demand(names, actual, "actual")
    if not names:
        raise CheckInputError("no column is left to compare")
    types = {name: _common(name, expected, actual) for name in names}
    return _normal(expected, types, where, "expected"), _normal(actual, types, where, "actual")


def _renamed(table: Table, names: Mapping[str, str]) -> Table:
    called = [names.get(name, name) for name in table.types]
    for name in names.values():
        if called.count(name) > 1:
            raise CheckInputError(f"the actual table has a column {name} already; no other can be called so")
    types = dict(zip(called, table.types.values(), strict=True))
    return Table(frame=table.frame.toDF(*called), types=types, is_text=table.is_text)


def _demand(names: Sequence[str], table: Table, side: str) -> None:
    missing = [name for name in names if name not in table.types]
    if missing:
        raise CheckInputError(f"the {side} table has no column {', '.join(missing)}; it has {', '.join(table.types)}")


def _common(name: str, expected: Table, actual: Table) -> T.DataType:
    """The type a column is compared in; what is inferred from text gives way."""
    one, two = expected.types[name], actual.types[name]
    kind = common_type(one, two)
    if kind is None and expected.is_text and actual.is_text:
        kind = T.DoubleType() if isinstance(one, _NUMBERS) and isinstance(two, _NUMBERS) else T.StringType()
    elif kind is None and (expected.is_text or actual.is_text):
        kind = two if expected.is_text else one
    if kind is None:
        raise CheckInputError(
            f"the column {name} is of unlike types: {one.simpleString()} expected, {two.simpleString()} actual"
        )
    if not is_comparable(kind):
        raise CheckInputError(f"the column {name} is of a type that cannot be compared: {kind.simpleString()}")
    return kind


_NUMBERS = (T.IntegerType, T.LongType, T.DoubleType)


def _normal(table: Table, types: Mapping[str, T.DataType], where: str | None, side: str) -> DataFrame:
    """The columns of `types`, of the rows that `where` selects; it reads all columns, ignored ones too."""
    frame = table.frame
    if table.is_text:
        inferred = {name: types.get(name, kind) for name, kind in table.types.items()}
        frame = frame.select(*(F.col(quoted(name)).cast(kind).alias(name) for name, kind in inferred.items()))
    if where:
        try:
            frame = frame.where(where)
        except PySparkException as error:
            raise CheckInputError(f"the condition does not fit the {side} table: {first_line(error)}") from error
    columns = [normal(F.col(quoted(name)).cast(kind), kind).alias(name) for name, kind in types.items()]
    return frame.select(*columns)
