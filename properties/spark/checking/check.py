"""Two tables compared on Spark: the engine of `cutproof check` for tables that one process cannot hold.

By default one pass over both tables sums their rows in hashed buckets, and only
the buckets that differ are compared row by row.  So a reported difference is
always exact.  There is no hashing with `exact`, and with nested columns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ...checking.differing import Compared, counted, judged
from ...checking.errors import CheckInputError
from ...checking.pair import Pair
from ...checking.repeated_keys import repeated_keys
from ...checking.request import (
    COUNT,
    GUARANTEES,
    IS_EXPECTED,
    KINDS,
    OURS,
    CheckRequest,
    CheckResult,
    Sample,
    demand_request,
)
from ...checking.sources.addresses import PostgresTable
from ...checking.sources.postgres import table_bytes
from .differences import BUCKETS, bucket, differences, differing_buckets, quoted
from .inputs import damaged_file, first_line, restored, tables
from .normal import is_nested


def check(spark: SparkSession, request: CheckRequest) -> CheckResult:
    """Compare the two tables; raises CheckInputError if they cannot be compared, TableUnreachable if a server fails."""
    demand_request(request)
    return compare(spark, Pair(request)).result


def compare(spark: SparkSession, pair: Pair) -> Compared:
    """The result, and the table of all that differs: empty if more than `MOST_DIFFERENCES` rows differ."""
    pair.bring()
    with _sized(spark, pair), tempfile.TemporaryDirectory(prefix="cutproof-check-") as folder:
        try:
            return _compare(spark, pair, Path(folder))
        except AnalysisException:
            raise
        except PySparkException as error:  # a value that does not fit its column, a damaged file
            raise CheckInputError(f"the tables cannot be compared: {first_line(error)}") from error
        except Py4JJavaError as error:
            if (damage := damaged_file(error)) is None:
                raise
            raise CheckInputError(f"the tables cannot be compared: {damage}") from error


_KIND, _AMOUNT, _PLACE, _NEAR = (f"{OURS}{name}" for name in ("kind", "amount", "place", "near"))

MOST_DIFFERENCES = 1_000_000
"""rows that are brought into this process to be paired and written; if there are more, Spark only counts them"""


def _compare(spark: SparkSession, pair: Pair, folder: Path) -> Compared:
    request = pair.request
    expected, actual = tables(spark, pair, folder)
    hashed = not request.exact and not any(is_nested(field.dataType) for field in expected.schema)
    if hashed:
        buckets, expected_rows, actual_rows = differing_buckets(expected, actual)
        differing = differences(_only(expected, buckets), _only(actual, buckets)) if buckets else None
    else:
        expected_rows, actual_rows = expected.count(), actual.count()
        differing = differences(expected, actual)
    known: dict[str, Any] = {
        "expected_rows": expected_rows,
        "actual_rows": actual_rows,
        "exact": not hashed,
        "engine": "spark",
        "conversions": pair.conversions,
    }
    if differing is None:
        nothing = counted(_no_rows(pair), request)
        return Compared(judged(nothing, request, **known, warnings=()), nothing)
    if request.tolerated:
        differing = _tolerated(differing, request)
    differing = differing.persist()
    try:
        if differing.count() <= MOST_DIFFERENCES:
            rows = restored(differing.toArrow(), pair.types)
            found = counted(rows, request)
            return Compared(judged(found, request, **known, warnings=_repeated_keys(rows, request)), found)
        return _many(differing, pair, known)
    finally:
        differing.unpersist()


def _many(differing: DataFrame, pair: Pair, known: dict[str, Any]) -> Compared:
    """The verdict if more than `MOST_DIFFERENCES` rows differ."""
    request = pair.request
    counts: dict[str, Any] = _counts(differing, request)
    result = CheckResult(
        held=not any(counts[kind] for kind in GUARANTEES[request.guarantee]),
        samples=tuple(_samples(differing, request, counts)),
        warnings=(
            f"more than {MOST_DIFFERENCES:,} rows differ: they are counted, but neither compared by column nor written",
        ),
        **known,
        **counts,
    )
    return Compared(result, counted(_no_rows(pair), request))


def _no_rows(pair: Pair) -> Any:
    fields = [*pair.types.items(), (COUNT, pa.int64()), (IS_EXPECTED, pa.bool_())]
    return pa.schema(fields).empty_table()


def _repeated_keys(rows: Any, request: CheckRequest) -> tuple[str, ...]:
    """Warnings about repeated keys among the differing rows: a search of both tables would cost a comparison."""
    if not request.key:
        return ()
    sides = (("expected", pc.greater), ("actual", pc.less))
    keys = ((side, rows.filter(than(rows.column(COUNT), 0)).select(list(request.key))) for side, than in sides)
    found = (repeated_keys(table, f"{side}, among the rows that differ") for side, table in keys)
    return tuple(line for line in found if line)


@contextmanager
def _sized(spark: SparkSession, pair: Pair) -> Iterator[None]:
    """Spark's settings for one check.

    The size of the tables decides the number of partitions.  Column names are case-sensitive if columns of one table
    differ in case alone.
    """
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name) or "2"
    size = sum(_bytes(path) for path in (pair.request.expected, pair.request.actual))
    spark.conf.set(name, str(max(int(before), min(size // PARTITION_BYTES, 1_000))))
    alike = any(len({column.casefold() for column in side.own}) < len(side.own) for side in pair.sides)
    spark.conf.set(CASE, "true" if alike else "false")
    try:
        yield
    finally:
        spark.conf.set(name, before)
        spark.conf.set(CASE, "false")


CASE = "spark.sql.caseSensitive"
PARTITION_BYTES = 32 << 20
"""bytes of files; in memory they take several times as much"""


def _bytes(path: Path | PostgresTable) -> int:
    if isinstance(path, PostgresTable):
        return table_bytes(path)
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())


def _only(table: DataFrame, buckets: list[int]) -> DataFrame:
    return table if len(buckets) == BUCKETS else table.where(bucket(table.columns).isin(buckets))


def _data(table: DataFrame) -> list[str]:
    return [name for name in table.columns if name not in (COUNT, IS_EXPECTED)]


def _columns(names: list[str] | tuple[str, ...]) -> list[Column]:
    return [F.col(quoted(name)) for name in names]


def _tolerated(differing: DataFrame, request: CheckRequest) -> DataFrame:
    """The differing rows without the pairs, one row of each side, that are equal within the tolerance.

    Rows that are equal in the other columns are paired in the order of the tolerated columns.
    """
    names = _data(differing)
    tolerated = list(request.tolerated)
    others = [name for name in names if name not in tolerated]
    single = differing.select(
        *_columns(names),
        IS_EXPECTED,
        F.signum(COUNT).cast("long").alias(COUNT),
        F.explode(F.sequence(F.lit(1), F.abs(COUNT))).alias(_AMOUNT),
    ).drop(_AMOUNT)
    place = F.row_number().over(
        Window.partitionBy(*_columns(others), COUNT).orderBy(*(one.asc_nulls_last() for one in _columns(tolerated)))
    )
    sides = Window.partitionBy(*_columns(others), _PLACE).orderBy(COUNT)
    whole = sides.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    near = F.lit(True)
    for name in tolerated:
        most, share = request.tolerance.get(name, 0.0), request.relative_tolerance.get(name, 0.0)
        one, two = F.first(quoted(name)).over(whole), F.last(quoted(name)).over(whole)
        gap = F.abs(F.try_subtract(one, two)).cast("double")
        greater = F.greatest(F.abs(one.cast("double")), F.abs(two.cast("double")))
        close = F.coalesce((gap <= most) | (gap <= greater * share), F.lit(False))
        near = near & (one.eqNullSafe(two) | (close & (greater < float("inf"))))
    paired = single.withColumn(_PLACE, place).withColumn(_NEAR, near & (F.count("*").over(whole) == 2))
    unpaired = paired.where(~F.col(_NEAR)).groupBy(*_columns(names))
    return unpaired.agg(F.sum(COUNT).alias(COUNT), F.max(IS_EXPECTED).alias(IS_EXPECTED))


def _counts(differing: DataFrame, request: CheckRequest) -> dict[str, int]:
    """How many rows of each kind; with a key, a lost and an unexpected row of one key are one changed row."""
    amounts = {kind: f"{OURS}{kind}" for kind in KINDS}
    grouped = _kinds(differing).groupBy(*_columns(request.key))
    by_key = grouped.agg(*(_amount(kind).alias(name) for kind, name in amounts.items()))
    changed = F.least(amounts["lost"], amounts["unexpected"]) if request.key else F.lit(0)
    sums = by_key.agg(*(F.coalesce(F.sum(name), F.lit(0)) for name in amounts.values()), F.sum(changed))
    lost, repeated, unexpected, both = (int(number or 0) for number in sums.collect()[0])
    return {"lost": lost - both, "repeated": repeated, "unexpected": unexpected - both, "changed": both}


def _samples(differing: DataFrame, request: CheckRequest, counts: dict[str, int]) -> Iterator[Sample]:
    """The first rows of each kind, in the order of their values."""
    names = _data(differing)
    rows = _kinds(differing)
    lost, unexpected = (f"{OURS}{kind}" for kind in ("lost", "unexpected"))
    if request.key:
        key = Window.partitionBy(*_columns(request.key))
        rows = rows.select("*", *(_amount(kind).over(key).alias(f"{OURS}{kind}") for kind in ("lost", "unexpected")))
        row = F.struct(*_columns(names))
        sides = [F.min(F.when(F.col(_KIND) == kind, row)).alias(f"{OURS}{kind}") for kind in ("lost", "unexpected")]
        pairs = rows.groupBy(*_columns(request.key)).agg(*sides)
        pairs = pairs.where(F.col(lost).isNotNull() & F.col(unexpected).isNotNull()).orderBy(lost).limit(request.limit)
        for pair in pairs.select(lost, unexpected).collect():
            one, two = pair[lost].asDict(recursive=True), pair[unexpected].asDict(recursive=True)
            yield Sample(kind="changed", row=one, actual=two)
        rows = rows.where(
            ((F.col(_KIND) == "lost") & (F.col(lost) > F.col(unexpected)))
            | ((F.col(_KIND) == "unexpected") & (F.col(unexpected) > F.col(lost)))
            | (F.col(_KIND) == "repeated")
        )
    for kind in KINDS:
        if counts[kind]:
            first = rows.where(F.col(_KIND) == kind).orderBy(*_columns(names)).limit(request.limit)
            for found in first.select(*_columns(names), _AMOUNT).collect():
                values = found.asDict(recursive=True)
                yield Sample(kind=kind, count=values.pop(_AMOUNT), row=values)


def _kinds(differing: DataFrame) -> DataFrame:
    """Each differing row with its kind, one of `KINDS`, and the number of times."""
    kind = F.when(F.col(COUNT) > 0, "lost").when(F.col(IS_EXPECTED), "repeated").otherwise("unexpected")
    return differing.select("*", kind.alias(_KIND), F.abs(COUNT).alias(_AMOUNT))


def _amount(kind: str) -> Column:
    return F.sum(F.when(F.col(_KIND) == kind, F.col(_AMOUNT)).otherwise(0))
