"""What `check` brings to the driver, or to one task: counts and the rows that are shown, however large the tables are.

The plans that Spark has executed are read, with the rows that went through their nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cluster.executed_plans import Gathered, Node, Plans, gathered
from cutproof.properties.checking.comparison import compare
from cutproof.properties.checking.pair import Pair
from cutproof.properties.checking.request import COUNT, CheckRequest, CheckResult
from cutproof.properties.spark.checking import check as on_spark
from cutproof.properties.spark.checking.differences import BUCKETS
from cutproof.properties.spark.session.session import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 6_000
LIMIT = 3
SMALL = 60
"""rows that may come to one task, or be broadcast: partial sums of each task, and `LIMIT` keys"""

PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture(scope="module")
def request_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Half of the rows have one key.  Of each table a third has other values in the other one, or no row."""
    folder = tmp_path_factory.mktemp("skewed")
    keys = [place if place % 2 else 0 for place in range(ROWS)]
    third = ROWS // 3
    tables = {
        "expected": {"id": keys, "v": [*range(ROWS)]},
        "actual": {"id": keys[third:], "v": [-one if one < 2 * third else one for one in range(third, ROWS)]},
    }
    for name, table in tables.items():
        (folder / name).mkdir()
        for day, part in enumerate(pa.table(table).to_batches(max_chunksize=third)):
            (folder / name / f"day={day}").mkdir()
            pq.write_table(pa.table(part), folder / name / f"day={day}" / "part.parquet")

    def request(**how: Any) -> CheckRequest:
        return CheckRequest(expected=folder / "expected", actual=folder / "actual", limit=LIMIT, **how)

    return request


class Checks:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.plans: list[Node] = []

    def run(self, request: CheckRequest) -> CheckResult:
        plans = Plans(self._spark)
        result = on_spark.check(self._spark, request)
        self.plans = plans.roots()
        return result

    def too_much(self, most: int = BUCKETS) -> list[Gathered]:
        """What came to one place, if it is more than `most` rows at the driver, or `SMALL` rows elsewhere."""
        return [one for one in gathered(self.plans) if one.rows > (most if one.place == "driver" else SMALL)]

    def windows(self) -> list[str]:
        return [node.text for root in self.plans for node in root if node.name == "Window"]


@pytest.fixture
def checks(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checks]:
    """On the tests' session, which is one for small batches, with the partitions that `check` gives its own."""
    monkeypatch.setattr(on_spark, "MOST_DIFFERENCES", 100)
    small = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, str(TABLES[PARTITIONS]))
    yield Checks(spark)
    spark.conf.set(PARTITIONS, str(small))


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_counts_and_shown_rows_alone_come_to_one_place(checks: Checks, request_of: Any, exact: bool) -> None:
    request = request_of(key=("id",), ignore=("day",), exact=exact)
    result = checks.run(request)
    assert {one.place for one in gathered(checks.plans)} == {"driver", "task", "broadcast"}
    assert checks.too_much() == []
    assert checks.windows() == []  # one task would sort all rows of a key
    quickly = compare(Pair(request)).result
    for kind in ("lost", "repeated", "unexpected", "changed"):
        assert getattr(result, kind) == getattr(quickly, kind)
    # The first of the lost rows whose key is lost more often than it is unexpected.
    lost = [sample.row for sample in result.samples if sample.kind == "lost"]
    assert lost == _first_lost(request)


def _first_lost(request: CheckRequest) -> list[dict[str, int]]:
    expected, actual = (
        Counter(tuple(row.values()) for row in pq.read_table(path, columns=["id", "v"]).to_pylist())
        for path in (request.expected, request.actual)
    )
    lost, unexpected = expected - actual, actual - expected
    balance = Counter(key for key, _ in lost.elements())
    balance.subtract(key for key, _ in unexpected.elements())
    rows = sorted(row for row in lost if balance[row[0]] > 0)
    return [{"id": key, "v": value} for key, value in rows[:LIMIT]]


def test_differences_are_brought_up_to_a_number_of_rows_and_of_bytes(
    checks: Checks, request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 4 * ROWS
    monkeypatch.setattr(on_spark, "MOST_DIFFERENCES", most)
    request = request_of(key=("id",), ignore=("day",))
    whole = checks.run(request)
    differing = ROWS // 3 * 3
    assert [one.rows for one in checks.too_much()] == [differing]
    assert whole.warnings[0].startswith("the key id is not unique")
    monkeypatch.setattr(on_spark, "MOST_BYTES", 16 * differing)
    counted = checks.run(request)
    assert checks.too_much() == []
    assert counted.warnings[0].startswith("the rows that differ need more than 0 MB: they are counted")
    assert (counted.lost, counted.unexpected, counted.changed) == (whole.lost, whole.unexpected, whole.changed)


def test_a_window_over_all_rows_and_a_collected_table_would_be_found(
    checks: Checks, request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = on_spark._kinds

    def in_one_task(differing: DataFrame) -> DataFrame:
        return sound(differing.withColumn("n", F.row_number().over(Window.orderBy(COUNT))).where("n > 0").drop("n"))

    def collected(differing: DataFrame) -> DataFrame:
        differing.collect()
        return sound(differing)

    for planted, place in ((in_one_task, "task"), (collected, "driver")):
        monkeypatch.setattr(on_spark, "_kinds", planted)
        checks.run(request_of(key=("id",), exact=True))
        assert {one.place for one in checks.too_much()} == {place}
