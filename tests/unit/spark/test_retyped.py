"""Sums that keep their state in hundredths in a later job: PySpark agrees with the quick checker."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.subject.run import run
from cutproof.properties.spark.bounds import problem
from cutproof.properties.spark.operators import MEANINGS
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.questions import Question, decode, encode, questions_of
from cutproof.properties.spark.tables import OracleAnswer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 12


@cache
def asked() -> tuple[Question, ...]:
    """The questions about runs in which the type of a sum changed at some cut."""
    draw, found = scenario_of(Drawing(max_records=40, templates=("upgraded",))), 0
    questions: list[Question] = []
    for index in range(400):
        about = questions_of(run(SimulatedSubject(), draw(9, index)).case, f"run {index}")
        if any(len(set(scales)) > 1 for one in about for scales in one.job.scales.values()):
            questions += about
            found += 1
        if found == RUNS:
            return tuple(questions)
    raise AssertionError("too few upgrades of sums are drawn")


def answers(oracle: Oracle, questions: tuple[Question, ...]) -> list[OracleAnswer]:
    return oracle.judge_batch([one.job for one in questions], {one.job.id: one.quick for one in questions})


def test_both_judges_have_the_same_rows_and_states(spark: SparkSession) -> None:
    found = answers(Oracle(), decode(encode(asked())))
    assert [(one.id, one.problem) for one in found if one.problem] == []
    assert [(one.id, one.disagreements[:2]) for one in found if one.disagreements] == []
    assert sum(len(one.expected.rows) for one in found if one.expected is not None) > 100


def test_a_sum_that_stays_whole_is_told_from_it(spark: SparkSession) -> None:
    whole = msgspec.structs.replace(MEANINGS["sum"], value="sum_value")  # type: ignore[type-var]
    assert any(one.disagreements for one in answers(Oracle(meanings={**MEANINGS, "sum": whole}), asked()))


def test_a_state_that_stays_whole_is_told_from_it(spark: SparkSession) -> None:
    unscaled = tuple(msgspec.structs.replace(one, job=msgspec.structs.replace(one.job, scales={})) for one in asked())
    assert any(one.disagreements for one in answers(Oracle(), unscaled))


def test_hundredths_may_leave_64_bits_where_whole_sums_do_not() -> None:
    job = next(one.job for one in asked() if one.job.scales)
    name = next(iter(job.scales))
    assert problem(job) == ""
    huge = msgspec.structs.replace(job, scales={name: (1 << 60,)})
    assert problem(huge) == f"numbers may leave 64 bits at {name}"
