"""Two tables compared on Spark: the engine of `cutproof check` for tables that one process cannot hold.

By default one pass over both tables sums their rows in hashed buckets, and only
the buckets that differ are compared row by row.  So a reported difference is
always exact.  There is no hashing with `exact`, and with nested columns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import and_
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
from ...checking.sources.files import Files
from ...checking.sources.sources import Source
from .differences import BUCKETS, bucket, differences, differing_buckets, quoted
from .inputs import damaged_file, first_line, restored, tables
from .normal import is_nested


def check(spark: SparkSession, request: CheckRequest) -> CheckResult:
    """Compare the two tables; raises CheckInputError if they cannot be compared, TableUnreachable if a server fails."""
    demand_request(request)
    return compare(spark, Pair(request)).result


def compare(spark: SparkSession, pair: Pair) -> Compared:
    """The result, and the table of all that differs: empty if more than `MOST_DIFFERENCES` or `MOST_BYTES` differ."""
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
_FIRST = f"{OURS}first_{{}}"

MOST_DIFFERENCES = 1_000_000
"""rows that are brought into this process to be paired and written; if there are more, Spark only counts them"""
MOST_BYTES = 512 << 20
"""bytes that these rows may need, since a million of them may be wide: Spark's `spark.driver.maxResultSize` is 1 GB"""


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
        if too_many := _too_many(differing):
            return _many(differing, pair, known, too_many)
        rows = restored(differing.toArrow(), pair.types)
        found = counted(rows, request)
        return Compared(judged(found, request, **known, warnings=_repeated_keys(rows, request)), found)
    finally:
        differing.unpersist()


def _too_many(differing: DataFrame) -> str:
    """Why the rows are not brought into this process, in one clause; empty if they are.  It computes persisted rows."""
    if differing.count() > MOST_DIFFERENCES:
        return f"more than {MOST_DIFFERENCES:,} rows differ"
    plan: Any = differing.select("*")._jdf.queryExecution().optimizedPlan()
    if int(str(plan.stats().sizeInBytes())) > MOST_BYTES:  # of what has been persisted, without compression
        return f"the rows that differ need more than {MOST_BYTES >> 20:,} MB"
    return ""


def _many(differing: DataFrame, pair: Pair, known: dict[str, Any], too_many: str) -> Compared:
    """The verdict if the differing rows are not brought into this process, because of what `too_many` says."""
    request = pair.request
    counts: dict[str, Any] = _counts(differing, request)
    result = CheckResult(
        held=not any(counts[kind] for kind in GUARANTEES[request.guarantee]),
        samples=tuple(_samples(differing, request, counts)),
        warnings=(f"{too_many}: they are counted, but neither compared by column nor written",),
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
    size = sum(_stored_bytes(side.source) for side in pair.sides)
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


def _stored_bytes(source: Source) -> int:
    return source.place.bytes if isinstance(source, Files) else source.bytes


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
    """The first rows of each kind, in the order of their values.

    No task takes all rows of a key, because half of the rows may have one key.
    """
    names = _data(differing)
    rows = _kinds(differing)
    by_key = _by_key(rows, names, request) if request.key else None
    if by_key is not None:
        lost, unexpected = (_FIRST.format(kind) for kind in ("lost", "unexpected"))
        pairs = by_key.where(F.col(lost).isNotNull() & F.col(unexpected).isNotNull())
        for pair in pairs.orderBy(lost).limit(request.limit).select(lost, unexpected).collect():
            one, two = pair[lost].asDict(recursive=True), pair[unexpected].asDict(recursive=True)
            yield Sample(kind="changed", row=one, actual=two)
    for kind in KINDS:
        if counts[kind]:
            of_kind = rows.where(F.col(_KIND) == kind)
            if by_key is not None and kind != "repeated":
                of_kind = _surplus(of_kind, by_key, kind, request)
            for found in (
                of_kind.orderBy(*_columns(names)).limit(request.limit).select(*_columns(names), _AMOUNT).collect()
            ):
                values = found.asDict(recursive=True)
                yield Sample(kind=kind, count=values.pop(_AMOUNT), row=values)


def _by_key(rows: DataFrame, names: list[str], request: CheckRequest) -> DataFrame:
    """Each key with its number of lost and of unexpected rows, and the first row of either kind."""
    row = F.struct(*_columns(names))
    kinds = ("lost", "unexpected")
    firsts = [F.min(F.when(F.col(_KIND) == kind, row)).alias(_FIRST.format(kind)) for kind in kinds]
    amounts = [_amount(kind).alias(f"{OURS}{kind}") for kind in kinds]
    return rows.groupBy(*_columns(request.key)).agg(*firsts, *amounts)


def _surplus(of_kind: DataFrame, by_key: DataFrame, kind: str, request: CheckRequest) -> DataFrame:
    """The rows that can be among the first `limit` of those whose key has more of this kind than of its opposite.

    Each of these rows is at or behind the first row of its key.  So their keys are among the `limit` keys that have
    the least first rows, and only these keys are broadcast.
    """
    opposite = "unexpected" if kind == "lost" else "lost"
    more = by_key.where(F.col(f"{OURS}{kind}") > F.col(f"{OURS}{opposite}")).orderBy(_FIRST.format(kind))
    called = {name: f"{OURS}key{place}" for place, name in enumerate(request.key)}
    keys = more.limit(request.limit).select(*(F.col(quoted(name)).alias(new) for name, new in called.items()))
    same = reduce(and_, (F.col(quoted(name)).eqNullSafe(F.col(new)) for name, new in called.items()))
    return of_kind.join(F.broadcast(keys), same, "left_semi")


def _kinds(differing: DataFrame) -> DataFrame:
    """Each differing row with its kind, one of `KINDS`, and the number of times."""
    kind = F.when(F.col(COUNT) > 0, "lost").when(F.col(IS_EXPECTED), "repeated").otherwise("unexpected")
    return differing.select("*", kind.alias(_KIND), F.abs(COUNT).alias(_AMOUNT))


def _amount(kind: str) -> Column:
    return F.sum(F.when(F.col(_KIND) == kind, F.col(_AMOUNT)).otherwise(0))
