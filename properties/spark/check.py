"""Two tables judged: the engine of `cutproof check`.

By default the tables are first summed in hashed buckets, one pass over both,
and only the buckets that differ are looked at row by row; what is called
different is always exact.  With `exact`, with nested columns, and where few
rows differ from each other there is no hashing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from .differences import BUCKETS, COUNT, OWED, bucket, differences, differing_buckets, quoted
from .errors import CheckInputError
from .inputs import aligned, damaged_file, first_line, read
from .normal import is_nested
from .sources import PostgresTable, table_bytes

GUARANTEES = {
    "exactly-once": ("lost", "repeated", "unexpected", "changed"),
    "at-least-once": ("lost", "unexpected", "changed"),
    "at-most-once": ("repeated", "unexpected", "changed"),
}
"""What each guarantee rules out."""


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two tables and how they are to be compared; `rename` tells of expected columns how the
    actual table calls them, `limit` how many rows of each kind are shown."""

    expected: Path | PostgresTable
    actual: Path | PostgresTable
    key: tuple[str, ...] = ()
    guarantee: str = "exactly-once"
    ignore: tuple[str, ...] = ()
    where: str | None = None
    rename: dict[str, str] = {}
    tolerance: dict[str, float] = {}
    limit: int = 20
    exact: bool = False


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A row that differs: `count` of it are lost, repeated or unexpected; of a changed row,
    `row` is what was expected and `actual` what is there."""

    kind: str
    row: dict[str, Any]
    count: int = 1
    actual: dict[str, Any] | None = None


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """`held`: what the guarantee rules out did not happen.  The counts are of rows; a `changed`
    one is counted neither as lost nor as unexpected."""

    held: bool
    expected_rows: int
    actual_rows: int
    lost: int = 0
    repeated: int = 0
    unexpected: int = 0
    changed: int = 0
    samples: tuple[Sample, ...] = ()
    exact: bool = True
    """whether no hash took part in finding the tables equal"""

    @property
    def equal(self) -> bool:
        return not (self.lost or self.repeated or self.unexpected or self.changed)


def demand_tables(request: CheckRequest) -> None:
    """That servers answer and have the tables, asked without Spark, which takes seconds to start; raises as `check`."""
    for place in (request.expected, request.actual):
        if isinstance(place, PostgresTable):
            table_bytes(place)


def check(spark: SparkSession, request: CheckRequest) -> CheckResult:
    """Compare the two tables; `CheckInputError` when they cannot be, `TableUnreachable` when one cannot be got at."""
    if request.guarantee not in GUARANTEES:
        raise CheckInputError(f"the guarantee can be {', '.join(GUARANTEES)}, not {request.guarantee}")
    with _sized(spark, request):
        try:
            return _check(spark, request)
        except AnalysisException:
            raise
        except PySparkException as error:  # a value that does not fit its column, a damaged file
            raise CheckInputError(f"the tables cannot be compared: {first_line(error)}") from error
        except Py4JJavaError as error:
            if (damage := damaged_file(error)) is None:
                raise
            raise CheckInputError(f"the tables cannot be compared: {damage}") from error


def _check(spark: SparkSession, request: CheckRequest) -> CheckResult:
    expected, actual = aligned(
        read(spark, request.expected),
        read(spark, request.actual),
        rename=request.rename,
        where=request.where,
        ignore=request.ignore,
    )
    _demand(request, expected)
    hashed = not request.exact and not any(is_nested(field.dataType) for field in expected.schema)
    if hashed:
        buckets, expected_rows, actual_rows = differing_buckets(expected, actual)
        if not buckets:
            return CheckResult(held=True, expected_rows=expected_rows, actual_rows=actual_rows, exact=False)
        differing = differences(_only(expected, buckets), _only(actual, buckets))
    else:
        expected_rows, actual_rows = expected.count(), actual.count()
        differing = differences(expected, actual)
    if request.tolerance:
        differing = _tolerated(differing, request)
    differing = differing.persist()
    try:
        counts = _counts(differing, request)
        samples = tuple(_samples(differing, request, counts)) if any(counts.values()) else ()
    finally:
        differing.unpersist()
    return CheckResult(
        held=not any(counts[kind] for kind in GUARANTEES[request.guarantee]),
        expected_rows=expected_rows,
        actual_rows=actual_rows,
        samples=samples,
        exact=not hashed,
        **counts,
    )


def _demand(request: CheckRequest, table: DataFrame) -> None:
    for name in (*request.key, *request.tolerance):
        if name not in table.columns:
            raise CheckInputError(f"there is no column {name} to compare by; there are {', '.join(table.columns)}")
    if request.tolerance and not request.key:
        raise CheckInputError("a tolerance needs a key: it says which rows are to be compared")
    for name in request.tolerance:
        if name in request.key:
            raise CheckInputError(f"the column {name} cannot be a key and have a tolerance")
        if not isinstance(table.schema[name].dataType, T.NumericType):
            raise CheckInputError(f"the column {name} has a tolerance, but is no number")


@contextmanager
def _sized(spark: SparkSession, request: CheckRequest) -> Iterator[None]:
    """As many partitions as suit the size of the tables, for the time of one check."""
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name) or "2"
    size = sum(_bytes(path) for path in (request.expected, request.actual))
    spark.conf.set(name, str(max(int(before), min(size // PARTITION_BYTES, 1_000))))
    try:
        yield
    finally:
        spark.conf.set(name, before)


PARTITION_BYTES = 32 << 20
"""of files; some times as much in memory"""


def _bytes(path: Path | PostgresTable) -> int:
    if isinstance(path, PostgresTable):
        return table_bytes(path)
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())


def _only(table: DataFrame, buckets: list[int]) -> DataFrame:
    return table if len(buckets) == BUCKETS else table.where(bucket(table.columns).isin(buckets))


def _data(table: DataFrame) -> list[str]:
    return [name for name in table.columns if name not in (COUNT, OWED)]


def _columns(names: list[str] | tuple[str, ...]) -> list[Column]:
    return [F.col(quoted(name)) for name in names]


def _tolerated(differing: DataFrame, request: CheckRequest) -> DataFrame:
    """Without the pairs of rows, one of each side, that are the same but for what is tolerated.

    Rows with the same other columns are paired in the order of the tolerated ones.
    """
    names = _data(differing)
    tolerated = list(request.tolerance)
    others = [name for name in names if name not in tolerated]
    single = differing.select(
        *_columns(names), OWED, F.signum(COUNT).cast("long").alias(COUNT), F.explode(F.sequence(F.lit(1), F.abs(COUNT)))
    ).drop("col")
    place = F.row_number().over(Window.partitionBy(*_columns(others), COUNT).orderBy(*_columns(tolerated)))
    sides = Window.partitionBy(*_columns(others), "__place").orderBy(COUNT)
    whole = sides.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    near = F.lit(True)
    for name, most in request.tolerance.items():
        one, two = F.first(quoted(name)).over(whole), F.last(quoted(name)).over(whole)
        near = near & (one.eqNullSafe(two) | F.coalesce(F.abs(F.try_subtract(one, two)) <= most, F.lit(False)))
    paired = single.withColumn("__place", place).withColumn("__near", near & (F.count("*").over(whole) == 2))
    left = paired.where(~F.col("__near")).groupBy(*_columns(names))
    return left.agg(F.sum(COUNT).alias(COUNT), F.max(OWED).alias(OWED))


def _counts(differing: DataFrame, request: CheckRequest) -> dict[str, int]:
    """How many rows of each kind; by key, as many as are both lost and unexpected have changed."""
    by_key = _kinds(differing).groupBy(*_columns(request.key)).agg(*(_amount(kind).alias(kind) for kind in KINDS))
    changed = F.least("lost", "unexpected") if request.key else F.lit(0)
    sums = by_key.agg(*(F.coalesce(F.sum(kind), F.lit(0)).alias(kind) for kind in KINDS), F.sum(changed))
    lost, repeated, unexpected, both = (int(number or 0) for number in sums.collect()[0])
    return {"lost": lost - both, "repeated": repeated, "unexpected": unexpected - both, "changed": both}


def _samples(differing: DataFrame, request: CheckRequest, counts: dict[str, int]) -> Iterator[Sample]:
    """The first rows of each kind, in the order of their values."""
    names = _data(differing)
    rows = _kinds(differing)
    if request.key:
        key = Window.partitionBy(*_columns(request.key))
        rows = rows.select("*", *(_amount(kind).over(key).alias(f"__{kind}") for kind in ("lost", "unexpected")))
        row = F.struct(*_columns(names))
        sides = [F.min(F.when(F.col("__kind") == kind, row)).alias(kind) for kind in ("lost", "unexpected")]
        pairs = rows.groupBy(*_columns(request.key)).agg(*sides)
        pairs = pairs.where("lost is not null and unexpected is not null").orderBy("lost").limit(request.limit)
        for pair in pairs.select("lost", "unexpected").collect():
            one, two = pair["lost"].asDict(recursive=True), pair["unexpected"].asDict(recursive=True)
            yield Sample(kind="changed", row=one, actual=two)
        more = {"lost": "__lost > __unexpected", "unexpected": "__unexpected > __lost"}
        rows = rows.where(" or ".join(f"__kind = '{kind}' and {rest}" for kind, rest in more.items())
                          + " or __kind = 'repeated'")  # fmt: skip
    for kind in KINDS:
        if counts[kind]:
            first = rows.where(F.col("__kind") == kind).orderBy(*_columns(names)).limit(request.limit)
            for found in first.select(*_columns(names), "__amount").collect():
                values = found.asDict(recursive=True)
                yield Sample(kind=kind, count=values.pop("__amount"), row=values)


KINDS = ("lost", "repeated", "unexpected")


def _kinds(differing: DataFrame) -> DataFrame:
    """Each differing row with its kind, one of `KINDS`, and how often it is so."""
    kind = F.when(F.col(COUNT) > 0, "lost").when(F.col(OWED), "repeated").otherwise("unexpected")
    return differing.select("*", kind.alias("__kind"), F.abs(COUNT).alias("__amount"))


def _amount(kind: str) -> Column:
    return F.sum(F.when(F.col("__kind") == kind, F.col("__amount")).otherwise(0))
