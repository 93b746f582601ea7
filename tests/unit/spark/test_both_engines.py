"""The same verdict without Spark and on it: generated pairs of tables, many in one table, told apart by a column."""

from __future__ import annotations

import json
import math
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from cutproof.properties.checking import comparison
from cutproof.properties.checking.pair import Pair
from cutproof.properties.checking.request import CheckRequest
from cutproof.properties.spark.checking import check as on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS = 60
EPOCH = datetime(2020, 1, 1)
TYPES = {
    "pair": pa.int64(),
    "k": pa.int32(),
    "x": pa.float64(),
    "d": pa.decimal128(10, 2),
    "t": pa.timestamp("us"),
    "s": pa.string(),
    "b": pa.bool_(),
    "w": pa.decimal128(38, 25),
    "c": pa.string(),
}
Row = tuple[Any, ...]


def drawn_row(random: Random) -> Row:
    return (
        random.choice([None, 0, 1, 2]),
        random.choice([None, 0.0, -0.0, 1.0, 1.04, float("nan"), float("inf"), -1e300]),
        random.choice([None, Decimal("1.10"), Decimal("-2.00")]),
        random.choice([None, EPOCH, EPOCH + timedelta(microseconds=1)]),
        random.choice([None, "", "a", 'q"u,o\nte']),
        random.choice([None, True, False]),
        random.choice([None, Decimal("1.1"), Decimal("1.1000000000000000000000001"), Decimal("-123456789012.5")]),
        random.choice([None, "12:30:00", "12:30:00.000000", "23:59:59.5"]),
    )


def drawn_pair(random: Random) -> tuple[list[Row], list[Row]]:
    """Rows, and the same ones shuffled, with some lost, repeated, changed or new."""
    rows = [drawn_row(random) for _ in range(random.randrange(12))]
    rows += random.choices(rows, k=random.randrange(3)) if rows else []
    other = [row for row in rows if random.random() > 0.15]
    other += [random.choice(rows)] if rows and random.random() < 0.3 else []
    other += [drawn_row(random)] if random.random() < 0.3 else []
    for place in range(len(other)):
        if random.random() < 0.15:
            changed = list(other[place])
            column = random.randrange(1, 8)
            changed[column] = drawn_row(random)[column]
            other[place] = tuple(changed)
    if random.random() < 0.5:
        random.shuffle(other)
    return rows, other


def tables(seed: int) -> tuple[pa.Table, pa.Table]:
    random = Random(seed)
    sides: tuple[list[Row], list[Row]] = ([], [])
    for pair in range(PAIRS):
        for side, rows in zip(sides, drawn_pair(random), strict=True):
            side.extend((pair, *row) for row in rows)
    schema = pa.schema(list(TYPES.items()))
    one, other = (
        pa.table([pa.array(values, kind) for values, kind in zip(zip(*side, strict=True), TYPES.values(), strict=True)],
                 schema=schema)
        for side in sides
    )  # fmt: skip
    return one, other


def named(value: Any) -> Any:
    """A value in which NaN is equal to itself, and -0.0 to 0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def by_hand(expected: pa.Table, actual: pa.Table) -> tuple[int, int, int]:
    """Lost, repeated, unexpected, by counting."""
    expected, found = (
        Counter(tuple(map(named, row.values())) for row in table.to_pylist()) for table in (expected, actual)
    )
    extra = found - expected
    repeated = sum(count for row, count in extra.items() if row in expected)
    return sum((expected - found).values()), repeated, sum(extra.values()) - repeated


def written(folder: Path, seed: int, kind: str) -> tuple[Path, Path]:
    """Both tables in files that Spark reads itself (`plain`), or has to be handed (`ns`, `csv`, `json`).

    `mixed` is JSON beside Parquet that Spark reads itself.
    """
    paths = []
    for side, table in zip(("expected", "actual"), tables(seed), strict=True):
        if kind == "ns":
            place = table.column_names.index("t")
            table = table.set_column(place, "t", table.column("t").cast(pa.timestamp("ns")))
        name = f"{side}-{seed}-{kind}"
        if kind == "csv":
            pyarrow.csv.write_csv(table, path := folder / f"{name}.csv")
        elif kind == "json" or (kind == "mixed" and side == "expected"):
            path = folder / f"{name}.jsonl"
            path.write_text("".join(map(json_line, table.to_pylist())))
        else:
            pq.write_table(table, path := folder / f"{name}.parquet")
        paths.append(path)
    return paths[0], paths[1]


def json_line(row: dict[str, Any]) -> str:
    """As DuckDB writes it: decimals are numbers with all their digits."""
    values = {name: repr(value) if isinstance(value, float) else str(value) for name, value in row.items()}
    for name, value in row.items():
        if not isinstance(value, (float, int, Decimal)) or isinstance(value, bool):
            values[name] = json.dumps(str(value) if isinstance(value, datetime) else value)
    words = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return "{" + ",".join(f'"{name}":{words.get(value, value)}' for name, value in values.items()) + "}\n"


WAYS: dict[str, dict[str, Any]] = {
    "all columns": {},
    "by key": {"key": ("pair", "k")},
    "tolerance": {"key": ("pair", "k"), "tolerance": {"x": 0.05}},
    "relative": {"key": ("pair", "k"), "relative_tolerance": {"x": 0.05, "d": 0.01}},
}


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        *((way, "plain") for way in WAYS),
        *((way, kind) for way in ("all columns", "by key") for kind in ("ns", "csv")),
        *((way, kind) for way in ("tolerance", "relative") for kind in ("json", "mixed")),
    ],
)
def test_both_engines_find_the_same(spark: SparkSession, tmp_path: Path, way: str, kind: str) -> None:
    seed = 100 * list(WAYS).index(way) + 7
    expected, actual = written(tmp_path, seed, kind)
    for exact in (False, True) if kind == "plain" else (False,):
        request = CheckRequest(expected=expected, actual=actual, exact=exact, **WAYS[way])
        here = comparison.compare(Pair(request))
        there = on_spark.compare(spark, Pair(request))
        assert (here.result.engine, there.result.engine) == ("arrow", "spark")
        assert _plainly(here.differences) == _plainly(there.differences)
        for field in ("held", "lost", "repeated", "unexpected", "changed", "expected_rows", "actual_rows", "columns"):
            assert getattr(here.result, field) == getattr(there.result, field), field
        assert here.result.conversions == there.result.conversions


@pytest.mark.parametrize("kind", ["plain", "mixed"])
@pytest.mark.parametrize("seed", range(40))
def test_the_arrow_engine_counts_as_one_does_by_hand(tmp_path: Path, seed: int, kind: str) -> None:
    paths = written(tmp_path, seed, kind)
    result = comparison.compare(Pair(CheckRequest(expected=paths[0], actual=paths[1]))).result
    assert (result.lost, result.repeated, result.unexpected) == by_hand(*tables(seed))


def test_spark_counts_where_they_are_what_is_too_much_to_bring(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, actual = written(tmp_path, 3, "plain")
    request = CheckRequest(expected=expected, actual=actual, key=("pair", "k"))
    brought = on_spark.check(spark, request)
    monkeypatch.setattr(on_spark, "MOST_DIFFERENCES", 5)
    counted = on_spark.check(spark, request)
    for field in ("held", "lost", "repeated", "unexpected", "changed"):
        assert getattr(counted, field) == getattr(brought, field)
    assert "more than 5 rows differ" in counted.warnings[0]


def test_plain_parquet_is_read_by_spark_itself(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("converted, to be written for Spark")

    expected, actual = written(tmp_path, 5, "plain")
    monkeypatch.setattr(Pair, "converted", refuse)
    assert on_spark.check(spark, CheckRequest(expected=expected, actual=actual)).engine == "spark"


def _plainly(differences: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(named, row.values())) for row in differences.to_pylist()), key=repr)
