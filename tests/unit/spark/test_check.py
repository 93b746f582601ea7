"""`check`: two tables against each other, by hashes and exactly, held against counting by hand."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cutproof.properties.checking.comparison import compare
from cutproof.properties.checking.errors import CheckInputError
from cutproof.properties.checking.pair import Pair
from cutproof.properties.checking.request import CheckRequest, CheckResult, Sample
from cutproof.properties.spark.checking import check as on_spark
from cutproof.properties.spark.checking.check import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOTH_WAYS = pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])


class Tables:
    """Writes two tables and checks them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def check(self, expected: Any, actual: Any, **how: Any) -> CheckResult:
        paths = [self.written(table, name) for name, table in (("expected", expected), ("actual", actual))]
        return check(self.spark, CheckRequest(expected=paths[0], actual=paths[1], **how))

    def pair(self, expected: Any, actual: Any, **how: Any) -> Pair:
        paths = [self.written(table, name) for name, table in (("expected", expected), ("actual", actual))]
        return Pair(CheckRequest(expected=paths[0], actual=paths[1], **how))

    def written(self, table: Any, name: str) -> Path:
        if isinstance(table, Path):
            return table
        if isinstance(table, str):
            path = self.folder / f"{name}.csv"
            path.write_text(table)
            return path
        path = self.folder / f"{name}.parquet"
        pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path)
        return path


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Tables:
    return Tables(spark, tmp_path)


def counts(result: CheckResult) -> tuple[int, int, int, int]:
    return result.lost, result.repeated, result.unexpected, result.changed


@BOTH_WAYS
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_multisets(tables: Tables, seed: int, exact: bool) -> None:
    random = Random(seed)
    rows = [(random.choice(["a", "b", None]), random.choice([None, 1, 2]), random.randrange(3)) for _ in range(60)]
    other = [row for row in rows if random.random() > 0.1] + [random.choice(rows) for _ in range(5)] + [("z", 1, 1)]
    named = [dict(zip("kvw", zip(*table, strict=True), strict=True)) for table in (rows, other)]
    result = tables.check(*named, exact=exact)
    expected, found = Counter(rows), Counter(other)
    extra = found - expected
    repeated = sum(count for row, count in extra.items() if row in expected)
    assert counts(result) == (sum((expected - found).values()), repeated, sum(extra.values()) - repeated, 0)
    assert (result.expected_rows, result.actual_rows) == (len(rows), len(other))
    assert not result.held
    assert not result.equal
    shown = {(sample.kind, tuple(sample.row.values())): sample.count for sample in result.samples}
    assert {row: count for (kind, row), count in shown.items() if kind == "lost"} == expected - found


@BOTH_WAYS
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": pa.array([None], pa.int64()), "b": [5]}, {"a": [5], "b": pa.array([None], pa.int64())}),
        ({"a": [1, 1, 2]}, {"a": [1, 2, 2]}),
        ({"a": [1, 1]}, {"a": [2, 2]}),
        ({"a": [1, 1]}, {"a": [1]}),
        ({"a": [0.1 + 0.2]}, {"a": [0.3]}),
        ({"a": ["x"], "b": [""]}, {"a": [""], "b": ["x"]}),
        ({"a": [[1, 2]]}, {"a": [[2, 1]]}),
    ],
)  # fmt: skip
def test_unequal_tables_are_distinguished(tables: Tables, one: Any, two: Any, exact: bool) -> None:
    assert not tables.check(one, two, exact=exact).equal


def test_a_delta_table_is_read_through_its_log(tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "table"
    (folder / "_delta_log").mkdir(parents=True)
    for name, values in (("live", [1, 2]), ("removed", [3])):
        pq.write_table(pa.table({"a": values}), folder / f"{name}.parquet")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(CheckInputError, match="is a Delta table: reading it needs `pip install deltalake`"):
        tables.check({"a": [2, 1]}, folder)
    log = SimpleNamespace(
        file_uris=lambda: [str(folder / "live.parquet")],
        protocol=lambda: SimpleNamespace(reader_features=None),
        metadata=lambda: SimpleNamespace(configuration={}, partition_columns=[]),
    )
    monkeypatch.setitem(sys.modules, "deltalake", SimpleNamespace(DeltaTable=lambda path: log))
    assert tables.check({"a": [2, 1]}, folder).equal


MAPS = pa.map_(pa.string(), pa.float64())


@BOTH_WAYS
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": [0.0, float("nan")]}, {"a": [float("nan"), -0.0]}),
        ({"a": pa.array([1, 2], pa.int32())}, {"a": pa.array([2, 1], pa.int64())}),
        ({"a": pa.array([1], pa.decimal128(5, 1))}, {"a": pa.array([1], pa.decimal128(9, 4))}),
        ({"a": pa.array([7], pa.timestamp("us"))}, {"a": pa.array([7], pa.timestamp("us", "UTC"))}),
        ({"a": pa.array([[("x", 1.0), ("y", 0.0)]], MAPS)}, {"a": pa.array([[("y", -0.0), ("x", 1.0)]], MAPS)}),
        ({"a": [1], "b": [2]}, {"b": [2], "a": [1]}),
        ("a,b\n1,x\n,y\n", {"a": pa.array([None, 1], pa.int64()), "b": ["y", "x"]}),
    ],
)  # fmt: skip
def test_equal_tables_are_equal(tables: Tables, one: Any, two: Any, exact: bool) -> None:
    result = tables.check(one, two, exact=exact)
    assert result.equal
    assert result.held
    assert result.samples == ()


@pytest.mark.parametrize(
    ("guarantee", "lost", "repeated", "unexpected"),
    [
        ("exactly-once", False, False, False),
        ("at-least-once", False, True, False),
        ("at-most-once", True, False, False),
    ],
)
def test_a_guarantee_allows_what_it_does_not_rule_out(
    tables: Tables, guarantee: str, lost: bool, repeated: bool, unexpected: bool
) -> None:
    expected = {"a": [1, 2, 3]}
    assert tables.check(expected, {"a": [1, 2]}, guarantee=guarantee).held is lost
    assert tables.check(expected, {"a": [1, 2, 3, 3]}, guarantee=guarantee).held is repeated
    assert tables.check(expected, {"a": [1, 2, 3, 4]}, guarantee=guarantee).held is unexpected
    assert tables.check(expected, {"a": [3, 2, 1]}, guarantee=guarantee).held


@BOTH_WAYS
def test_a_key_reports_changed_rows(tables: Tables, exact: bool) -> None:
    expected = {"id": [1, 2, 3, None], "v": [10, 20, 30, 40]}
    actual = {"id": [1, 2, 4, None], "v": [10, 21, 30, 41]}
    result = tables.check(expected, actual, key=("id",), exact=exact)
    assert counts(result) == (1, 0, 1, 2)
    assert result.samples == (
        Sample(kind="changed", row={"id": None, "v": 40}, actual={"id": None, "v": 41}),
        Sample(kind="changed", row={"id": 2, "v": 20}, actual={"id": 2, "v": 21}),
        Sample(kind="lost", row={"id": 3, "v": 30}),
        Sample(kind="unexpected", row={"id": 4, "v": 30}),
    )


@BOTH_WAYS
def test_a_tolerance_is_kept_to(tables: Tables, exact: bool) -> None:
    expected = {"id": [1, 2, 2, 3, 4], "v": [1.0, 2.0, 5.0, 3.0, None]}
    actual = {"id": [1, 2, 2, 3, 4], "v": [1.01, 5.01, 2.01, 3.2, None]}
    result = tables.check(expected, actual, key=("id",), tolerance={"v": 0.1}, exact=exact)
    assert counts(result) == (0, 0, 0, 1)
    assert result.samples[0].row == {"id": 3, "v": 3.0}


def test_rename_ignore_and_where(tables: Tables) -> None:
    expected = {"id": [1, 2], "customer": ["a", "b"], "loaded": [5, 6]}
    actual = {"cust": ["a", "x"], "id": [1, 2], "loaded": [7, 8]}
    how: dict[str, Any] = {"rename": {"customer": "cust"}, "ignore": ("loaded",)}
    assert tables.check(expected, actual, where="id < 2", **how).equal
    assert counts(tables.check(expected, actual, **how)) == (1, 0, 1, 0)
    assert tables.check(expected, actual, where="loaded in (5, 7) and customer = 'a'", **how).expected_rows == 1


def test_limit_bounds_what_is_shown(tables: Tables) -> None:
    result = tables.check({"a": list(range(50))}, {"a": list(range(50, 90))}, limit=3)
    assert counts(result) == (50, 0, 40, 0)
    assert [sample.row["a"] for sample in result.samples] == [0, 1, 2, 50, 51, 52]


def test_folders_and_json_lines(tables: Tables, tmp_path: Path) -> None:
    folder = tmp_path / "committed"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    for part in range(2):
        lines = (json.dumps({"a": part, "b": str(number)}) for number in range(3))
        (folder / f"part-{part}.jsonl").write_text("\n".join(lines))
    expected = {"a": [0, 0, 0, 1, 1, 1], "b": ["0", "1", "2"] * 2}
    assert tables.check(expected, folder).equal


def test_text_that_does_not_fit_is_a_difference_between_texts(tables: Tables) -> None:
    assert counts(tables.check("a\n1\n007\n", "a\nx\n007\n")) == (1, 0, 1, 0)


@pytest.mark.parametrize(
    ("expected", "actual", "how", "message"),
    [
        ({"a": [1]}, Path("nowhere.parquet"), {}, "there is no nowhere.parquet"),
        ({"a": [1]}, {"b": [1]}, {}, "the expected table has no column b; it has a"),
        ({"a": [1], "b": [1]}, {"a": [1]}, {}, "the actual table has no column b; it has a"),
        ({"a": [1]}, {"a": ["1"]}, {}, "the column a is of unlike types: bigint expected, text actual"),
        ({"a": [1]}, {"a": [1]}, {"key": ("k",)}, "there is no column k to compare by; there are a"),
        ({"a": [1]}, {"a": [1]}, {"ignore": ("k",)}, "neither table has a column k to be ignored"),
        ({"a": [1]}, {"a": [1]}, {"ignore": ("a",)}, "no column is left to compare"),
        ({"a": [1]}, {"a": [1]}, {"tolerance": {"a": 1.0}}, "a tolerance needs a key"),
        ({"a": [1]}, {"a": [1]}, {"where": "nothing > 1"}, "the condition does not fit the expected table"),
        ({"a": [1]}, {"a": [1]}, {"rename": {"a": "b"}}, "the actual table has no column b"),
        (
            {"a": [1]},
            "a\nx\n",
            {},
            (
                "the column a is of unlike types: bigint expected, text actual (actual has 'x', "
                "which is not a whole number)"
            ),
        ),
    ],
)
def test_bad_input_is_one_clear_line(tables: Tables, expected: Any, actual: Any, how: Any, message: str) -> None:
    with pytest.raises(CheckInputError) as raised:
        tables.check(expected, actual, **how)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@BOTH_WAYS
def test_columns_may_have_any_name(tables: Tables, exact: bool) -> None:
    names = ["__count", "__owed", "__sign", "__kind", "__amount", "__place", "col", "lost", "unexpected", "A", "a"]
    one = {name: [1, 2] for name in names}
    result = tables.check(one, one | {"A": [1, 3]}, key=("lost", "__kind"), tolerance={"A": 0.5}, exact=exact)
    assert counts(result) == (0, 0, 0, 1)
    assert result.samples[0].actual == dict.fromkeys(names, 2) | {"A": 3}
    assert compare(tables.pair(one, one | {"A": [1, 3]}, key=("lost", "__kind"))).result.changed == 1
    assert tables.spark.conf.get("spark.sql.caseSensitive") == "false"


def test_many_rows_that_differ_may_have_columns_of_any_name(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark, "MOST_DIFFERENCES", 0)
    names = ["lost", "unexpected", "__kind", "__amount"]
    one, other = (
        {name: [place, 7] for name in names[:2]} | {name: [1, place] for name in names[2:]} for place in (2, 3)
    )
    assert counts(tables.check(one, other, key=("lost",))) == (1, 0, 1, 1)


def test_a_condition_that_does_not_fit_is_reported_once_and_in_a_line(
    tables: Tables, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CheckInputError, match="the condition does not fit the expected table") as raised:
        tables.check({"a": [1]}, {"a": [1]}, where="nope = 3")
    assert "pos 0" not in str(raised.value)
    assert not str(raised.value).endswith(";")
    assert capfd.readouterr().err == ""


def test_fields_of_json_objects_have_no_order_on_spark_either(tables: Tables) -> None:
    (tables.folder / "a.jsonl").write_text('{"s": {"a": 1, "b": 2}, "f": "0.5"}\n{"s": {"b": 4}, "f": "0.1"}\n')
    floats = pa.array([0.5, 0.1], pa.float32())
    other = pa.table(
        {"s": pa.array([{"b": 2, "a": 1}, {"b": 4}], pa.struct({"b": pa.int64(), "a": pa.int64()})), "f": floats}
    )
    assert tables.check(tables.folder / "a.jsonl", other).equal
