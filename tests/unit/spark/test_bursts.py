"""Operators in processing time: PySpark, given when a run took its records, agrees with the quick checker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.subject.run import run
from cutproof.properties.model.workload import Burst, window_of
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.questions import Question, decode, encode, questions_of
from cutproof.properties.spark.tables import Apply, OracleAnswer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 6


def _drawn() -> Iterator[Question]:
    draw, left = scenario_of(Drawing(max_records=40, templates=("S11", "crash-while-waiting"))), RUNS
    for index in range(400):
        drawn = draw(3, index)
        window = window_of(drawn.workload)
        if window is not None and isinstance(window.operator, Burst):
            found = questions_of(run(SimulatedSubject(), drawn).case, str(index))
            mine = [one for one in decode(encode(found)) if one.job.applies and any(one.quick.rows.values())]
            yield from mine
            left -= bool(mine)
        if not left:
            return


@cache
def asked() -> tuple[Question, ...]:
    return tuple(_drawn())


@pytest.fixture(scope="module")
def spark_answers(spark: SparkSession) -> dict[str, list[OracleAnswer]]:
    """PySpark's word on each question: as it is, and with the last record of each taken a while later than it was."""
    late = [_with_last_late(one) for one in asked()]
    questions = [*asked(), *late]
    answers = Oracle().judge_batch([one.job for one in questions], {one.job.id: one.quick for one in questions})
    found = {one.id: one for one in answers}
    return {
        "plain": [found[one.job.id] for one in asked()],
        "late": [found[one.job.id] for one in late],
    }


def test_both_reckonings_agree(spark_answers: dict[str, list[OracleAnswer]]) -> None:
    assert [(one.problem, one.disagreements) for one in spark_answers["plain"]] == [("", ())] * len(asked())
    assert sum(len(rows) for one in asked() for rows in one.quick.rows.values()) > 25
    assert sum(len(one.expected.held) for one in spark_answers["plain"] if one.expected) > 20


def test_a_moment_that_one_judge_has_otherwise_is_a_disagreement(
    spark_answers: dict[str, list[OracleAnswer]],
) -> None:
    assert all(one.disagreements for one in spark_answers["late"])


def _with_last_late(question: Question) -> Question:
    (node,) = question.job.advances
    applies = {**question.job.applies, node: tuple(_shifted(one) for one in question.job.applies[node])}
    job = msgspec.structs.replace(question.job, applies=applies, id=f"{question.job.id}, late")
    return msgspec.structs.replace(question, job=job)


def _shifted(one: Apply) -> Apply:
    """Told to have been taken a moment later."""
    assert one.moment is not None
    return one._replace(moment=one.moment + 1)
