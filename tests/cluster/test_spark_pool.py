"""The pool of a search whose work is tasks of Spark jobs, on the session of the tests."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pytest
from py4j import java_gateway

from cutproof.harness.cli.compare_tables import compared
from cutproof.harness.generate.strategies import Drawing
from cutproof.harness.runtime.exit_codes import HarnessFailed, UsageError
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.search.pool import Here, chunk_of
from cutproof.harness.search.worker import Chunk, Plan
from cutproof.harness.spread.pool import ROWS, SparkPool, demand_spreadable
from cutproof.properties.checking.request import CheckRequest
from cutproof.properties.spark.cluster import tasks
from cutproof.properties.spark.cluster.on_executor import _answer
from cutproof.properties.spark.session.errors import SparkUnavailable
from cutproof.properties.spark.session.masters import demand_answering, is_master
from cutproof.properties.spark.session.session import LOCAL
from unit.harness.subjects import InRealTime, Lossy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = Path(__file__).parents[2] / "docs" / "examples" / "orders"
PLAN = Plan(seed=3, defect="I06", drawing=Drawing(max_records=30))


def without_times(chunk: Chunk) -> list[object]:
    times = ("draw_s", "run_s", "judge_s")
    found: list[object] = []
    for one in chunk.ran:
        known = {name: 0.0 for name in times if hasattr(one.outcome, name)}
        found.append((msgspec.structs.replace(one.outcome, **known), one.question))
    return found


def test_executors_run_and_shrink_as_this_process_does(spark: SparkSession) -> None:
    pool, here = SparkPool(PLAN, LOCAL), Here(PLAN)
    try:
        parts = [pool.chunk(first, first + 8) for first in (0, 8, 16)]
        done = [chunk_of(one.result(120)) for one in parts]
        assert [len(one.ran) for one in done] == [8, 8, 8]
        expected = [chunk_of(here.chunk(first, first + 8).result()) for first in (0, 8, 16)]
        assert list(map(without_times, done)) == list(map(without_times, expected))
        failing = next(one.outcome for chunk in done for one in chunk.ran if one.outcome.violations)
        name, verdict = failing.violations[0]
        shrunk = pool.shrink(failing.scenario, name, verdict.difference)
        assert shrunk.result(120) == here.shrink(failing.scenario, name, verdict.difference).result()
        sound = next(one.outcome for chunk in done for one in chunk.ran if not one.outcome.violations)
        assert pool.shrink(sound.scenario, name, verdict.difference).result(120).scenario == sound.scenario
    finally:
        pool.close()
    assert pool.chunk(0, 1).cancelled()


def test_each_row_is_a_task_of_its_own(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SparkPool(PLAN, LOCAL)
    try:
        pool.chunk(0, 1).result(120)
        rows = pa.Table.from_pylist([{"first": 0, "end": 0, "shrink": None}] * 7, ROWS)
        assert pool._tasks._spark.createDataFrame(rows).rdd.getNumPartitions() == 7
    finally:
        pool.close()


def test_an_error_of_the_subject_on_executors_ends_the_search(spark: SparkSession) -> None:
    pool = SparkPool(Plan(subject="json:nothing"), LOCAL)
    try:
        assert "json has no 'nothing'" in chunk_of(pool.chunk(0, 1).result(120)).ended
        with pytest.raises(HarnessFailed, match="json has no 'nothing'"):
            pool.shrink(Here(PLAN)._worker._drawn(0).scenario, "exactly-once", "lost").result(120)
    finally:
        pool.close()


@pytest.mark.parametrize(("master", "engine"), [(LOCAL, "spark"), (None, "arrow")])
def test_a_check_with_a_master_is_on_spark(spark: SparkSession, master: str | None, engine: str) -> None:
    request = CheckRequest(expected=ORDERS / "expected.csv", actual=ORDERS / "committed.csv", key=("order_id",))
    result = compared(request, "auto", Silent(), master).result
    assert (result.engine, result.lost) == (engine, 1)


def test_what_executors_lack_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.SparkFiles.get", lambda name: f"/nowhere/{name}")
    monkeypatch.setattr("sys.path", [])
    answer, problem = _answer("a.zip", ("no_such_module", "work"), b"", {})
    assert answer is None
    assert problem is not None
    assert problem.endswith("lacks a dependency of cutproof: No module named 'no_such_module'")


def test_subjects_that_cannot_go_to_executors_are_refused() -> None:
    demand_spreadable(Lossy(), "unit.harness.subjects:Lossy")
    with pytest.raises(UsageError, match="lossy is an object of this process"):
        demand_spreadable(Lossy(), None)
    with pytest.raises(UsageError, match="real time, on processes of this machine; leave out --master"):
        demand_spreadable(InRealTime(), "unit.harness.subjects:InRealTime")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("local[2]", True),
        ("local[*]", True),
        ("spark://a:7077,b:7077", True),
        ("yarn", True),
        ("k8s://https://host:443", True),
        ("local[0]", False),
        ("spark://host", False),
        ("http://host:80", False),
        ("spark", False),
    ],
)
def test_masters(text: str, is_one: bool) -> None:
    assert is_master(text) is is_one


def test_a_master_that_does_not_answer_is_told_at_once() -> None:
    with pytest.raises(SparkUnavailable, match="no Spark master answers at spark://127"):
        demand_answering("spark://127.0.0.1:1,127.0.0.1:2")


def test_an_error_of_the_connection_to_java_is_only_raised(spark: SparkSession) -> None:
    def is_logged(path: str) -> bool:
        return bool(logging.getLogger().filter(logging.LogRecord("root", logging.ERROR, path, 1, "lost", (), None)))

    assert is_logged(__file__)
    assert not is_logged(java_gateway.__file__)


TRACEBACK = """
An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
ModuleNotFoundError: No module named 'pandas'

org.apache.spark.SparkException: Job aborted
"""


def test_the_telling_line_of_an_error() -> None:
    assert tasks.reason_of(Exception(TRACEBACK)) == "ModuleNotFoundError: No module named 'pandas'"
    assert tasks.reason_of(Exception("Job 3 cancelled\nmore")) == "Job 3 cancelled"
    assert tasks.reason_of(Exception()) == "Exception"
