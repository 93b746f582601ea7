"""PySpark's expected rows and states, held against brute force; planted errors must show."""

from __future__ import annotations

import threading
import time
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pytest

from cutproof.properties.model.workload import AnyOperator, Batch, Input, Join, Map, Node, Sum, Union, Workload
from cutproof.properties.spark import cache, oracle
from cutproof.properties.spark.cache import Cache
from cutproof.properties.spark.operators import MEANINGS, kind_of
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.tables import Apply, Cut, Difference, Expected, OracleJob, QuickResult
from unit.spark.expected_rows import KEYED, STATELESS, brute_force, drawn_job, is_order_free

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")


def drawn_jobs(count: int, last: AnyOperator | None = None) -> list[OracleJob]:
    jobs = [drawn_job(Random(seed), f"job-{seed}", last) for seed in range(count)]
    return [job for job in jobs if is_order_free(job)]


def test_rows_and_states_are_those_of_brute_force() -> None:
    jobs = drawn_jobs(400)
    assert len(jobs) > 300
    answers = Oracle().judge_batch(jobs, {job.id: brute_force(job) for job in jobs})
    assert [(answer.id, answer.problem, answer.disagreements) for answer in answers] == [
        (job.id, "", ()) for job in jobs
    ]
    assert sum(len(answer.expected.rows) for answer in answers if answer.expected) > 2_000
    assert sum(len(answer.expected.held) for answer in answers if answer.expected) > 1_000


ERRORS = {
    "map": {"value": "row.value * step.p1 - step.p2"},
    "filter": {"copies": "if(pmod(row.value, step.p1) = step.p2, 1, 0)"},
    "flat-map": {"value": "row.value"},
    "union": {"copies": "2"},
    "count": {"value": "n - 1"},
    "count-tagged": {"tag": "0L"},
    "sum": {"value": "value"},
    "greater": {"emits": "before is null or value >= before"},
    "dedup": {"emits": "n <= 2"},
    "dedup-row": {"value": "0L"},
    "batch": {"copies": "2"},
    "tally": {"value": "n - 1"},
    "model": {"value": "value"},
    "join": {"tag2": "tag"},
    "count-signed": {"value": "n"},
    "sum-signed": {"old_value": "net_value"},
    "join-signed": {"tag": "tag"},
}


@pytest.mark.parametrize(
    "operator", [*STATELESS[1:], Map(add=5), *KEYED, Batch(), Union(), Join(), Join(signed=True)], ids=kind_of
)
def test_an_error_in_one_operator_disagrees(operator: AnyOperator) -> None:
    kind = kind_of(operator)
    wrong = msgspec.structs.replace(MEANINGS[kind], **ERRORS[kind])
    if operator == Map(rekey=3):
        wrong = msgspec.structs.replace(MEANINGS[kind], key="row.key % step.p3")
    jobs = drawn_jobs(40, operator)
    quick = {job.id: brute_force(job) for job in jobs}
    answers = Oracle(meanings={**MEANINGS, kind: wrong}).judge_batch(jobs, quick)
    assert any(answer.disagreements for answer in answers)
    assert not any(answer.problem for answer in answers)


@pytest.mark.parametrize("operator", [*KEYED, Join(), Join(signed=True)], ids=kind_of)
def test_an_error_in_the_state_of_one_operator_disagrees(operator: AnyOperator) -> None:
    kind = kind_of(operator)
    wrong = msgspec.structs.replace(MEANINGS[kind], b="1L")
    jobs = drawn_jobs(40, operator)
    quick = {job.id: brute_force(job) for job in jobs}
    answers = Oracle(meanings={**MEANINGS, kind: wrong}).judge_batch(jobs, quick)
    assert any(difference.node for answer in answers for difference in answer.disagreements)


def small_job(value: int = 5, **replaced: object) -> OracleJob:
    workload = Workload(
        name="small",
        inputs=(Input(name="source", splits=(((1, value, 11), (1, 7, 12)),)),),
        nodes=(Node(name="total", operator=Sum(), inputs=("source",)),),
    )
    job = OracleJob(id="small", workload=workload, cuts=(Cut(name=1, positions=(1,)), Cut(name=2, positions=(2,))))
    return msgspec.structs.replace(job, **replaced)


def test_rows_have_the_epoch_of_the_first_cut_above_them() -> None:
    (answer,) = Oracle().judge_batch([small_job()])
    assert answer.expected is not None
    assert answer.expected.rows_of(1) == {(1, 5, 11, 0): 1}
    assert answer.expected.rows_up_to(2) == {(1, 5, 11, 0): 1, (1, 12, 23, 0): 1}
    assert answer.expected.state(1) == {"total": {(0, 1, 5, 11): 1}}
    assert answer.expected.state(2) == {"total": {(0, 1, 12, 23): 1}}


def test_records_beyond_the_last_cut_are_not_expected() -> None:
    (answer,) = Oracle().judge_batch([small_job(cuts=(Cut(name=1, positions=(0,)), Cut(name=2, positions=(1,))))])
    assert answer.expected is not None
    assert answer.expected.rows == ((1, (1, 5, 11, 0)),)
    assert answer.expected.state(1) == {}


def test_disagreements_name_the_row_the_cut_and_the_count() -> None:
    quick = QuickResult(rows={1: [(1, 5, 11, 0)] * 2, 2: []}, states={2: {"total": [(0, 1, 13, 23)]}})
    (answer,) = Oracle().judge_batch([small_job()], {"small": quick})
    assert answer.disagreements == (
        Difference(cut=1, row=(1, 5, 11, 0), count=1),
        Difference(cut=2, row=(1, 12, 23, 0), count=-1),
        Difference(cut=2, row=(0, 1, 12, 23), count=-1, node="total"),
        Difference(cut=2, row=(0, 1, 13, 23), count=1, node="total"),
    )


def test_a_job_that_could_overflow_leaves_its_batch_alone() -> None:
    big = small_job(value=(1 << 63) - 1, id="big")
    answers = Oracle().judge_batch([big, small_job()])
    assert answers[0].expected is None
    assert "64 bits" in answers[0].problem
    assert answers[1].expected is not None


def test_a_question_is_put_once() -> None:
    oracle = Oracle()
    first = oracle.judge_batch([small_job()])
    asked = oracle.queries
    assert asked > 0
    second = oracle.judge_batch([small_job(id="other name")])
    assert oracle.queries == asked
    assert second[0].expected == first[0].expected
    oracle.judge_batch([small_job(value=6)])
    assert oracle.queries > asked


@pytest.mark.parametrize("changed", ["oracle.py", "session/session.py"])
def test_an_answer_is_kept_for_as_long_as_the_oracles_source_is_the_same(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / changed
    file.parent.mkdir(exist_ok=True)
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    file.write_text("ANSI = True", encoding="utf-8")
    before = cache.version.__wrapped__()
    assert cache.version.__wrapped__() == before
    file.write_text("ANSI = False", encoding="utf-8")
    assert cache.version.__wrapped__() != before


def test_a_folder_keeps_answers_for_the_next_process(tmp_path: Path) -> None:
    (first,) = Oracle(Cache(tmp_path)).judge_batch([small_job()])
    later = Oracle(Cache(tmp_path))
    (second,) = later.judge_batch([small_job()])
    assert later.queries == 0
    assert second.expected == first.expected
    for file in tmp_path.iterdir():
        file.write_bytes(b"torn")
    again = Oracle(Cache(tmp_path))
    assert again.judge_batch([small_job()])[0].expected == first.expected
    assert again.computed == 1


def followed_job() -> OracleJob:
    """One that follows apply events, so that it gets queries of the other kind."""
    return small_job(id="followed", applies={"total": (Apply(origin=0, epoch=0), Apply(origin=1 << 8, epoch=1))})


def test_both_kinds_of_queries_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    true = oracle._Asked._query

    def query(self: oracle._Asked, spark: SparkSession, text: str) -> pa.Table:
        if not self.queries:
            both.wait(60)
        return true(self, spark, text)

    monkeypatch.setattr(oracle._Asked, "_query", query)
    asking = Oracle()
    alone, followed = asking.judge_batch([small_job(), followed_job()])
    assert alone.expected is not None
    assert followed.expected is not None
    assert sorted(alone.expected.rows) == sorted(followed.expected.rows) == [(0, (1, 5, 11, 0)), (1, (1, 12, 23, 0))]
    assert asking.queries == 5


def test_a_failure_is_raised_once_the_other_kind_of_queries_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    true = oracle._Asked.expected

    def expected(self: oracle._Asked, spark: SparkSession) -> list[Expected]:
        if not self._plan.traced:
            raise ValueError("planted")
        time.sleep(0.5)
        found = true(self, spark)
        done.append(len(found))
        return found

    monkeypatch.setattr(oracle._Asked, "expected", expected)
    with pytest.raises(ValueError, match="planted"):
        Oracle().judge_batch([small_job(), followed_job()])
    assert done == [1]


def test_a_table_of_many_pieces_is_one_partition(spark: SparkSession) -> None:
    table = pa.concat_tables([pa.table({"key": [number]}) for number in range(20)])
    made = oracle._on_spark(spark, table)
    assert made.rdd.getNumPartitions() == 1
    assert sorted(row.key for row in made.collect()) == list(range(20))
    assert oracle._on_spark(spark, table.slice(0, 0)).count() == 0


def test_tables_of_one_partition_are_joined_and_counted_without_an_exchange(spark: SparkSession) -> None:
    for name in ("left_rows", "right_rows"):
        oracle._view(spark, name, pa.table({"key": [1, 2, 2], "value": [3, 4, 5]}))
    joined = spark.sql("select key, count(*) as n from left_rows join right_rows using (key) group by key")
    assert sorted(joined.toArrow().to_pylist(), key=lambda row: row["key"]) == [{"key": 1, "n": 1}, {"key": 2, "n": 4}]
    length = "spark.sql.maxPlanStringLength"
    kept = spark.conf.get(length)
    spark.conf.set(length, 10_000)
    plan = joined._jdf.queryExecution().executedPlan().treeString()
    spark.conf.set(length, str(kept))
    assert "SortMergeJoin" in plan
    assert "Exchange" not in plan


def test_a_table_without_rows_keeps_its_lists(spark: SparkSession) -> None:
    lists = pa.schema([("keys", pa.list_(pa.int64()))])
    assert oracle._on_spark(spark, pa.Table.from_batches([], lists)).count() == 0
