"""Rows that were in flight at a checkpoint: PySpark, given the attempts that made them, agrees with the quick
checker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import Passing
from cutproof.properties.model.workload import SINK, Join, Row
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.reconstruct import replay
from cutproof.properties.reconstruct.in_flight import records
from cutproof.properties.reconstruct.replay import is_determined
from cutproof.properties.spark.operators import MEANINGS
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.questions import Question, decode, encode, questions_of
from cutproof.properties.spark.tables import Apply, OracleAnswer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 6
"""in which rows were taken that lay in flight behind a join, or over several failures"""


AT_EVERY_CHECKPOINT = tuple(
    KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=number), task="sink-0") for number in range(2, 7)
)
"""each restart is followed by another, with what was put back in channels still in them"""


def _drawn() -> Iterator[Result]:
    """Runs of joins with small channels and slow receivers, whose barriers may overtake what waits in front of them."""
    draw, left, blows = scenario_of(Drawing(max_records=40)), RUNS, False
    for index in range(2_000):
        drawn = draw(11, index)
        engine, workload = drawn.engine, drawn.workload
        joins = any(isinstance(node.operator, Join) for node in workload.nodes)
        if not (joins and drawn.faults) or engine.guarantee != "exactly-once":
            continue
        if not is_determined(workload, drawn.topology, every_attempt=True):
            continue
        engine = msgspec.structs.replace(
            engine,
            alignment=("unaligned", "in-turn")[index % 2],
            channel_capacity=2,
            apply_cost_us=engine.read_interval_us,
        )
        faults = (*drawn.faults, *AT_EVERY_CHECKPOINT) if index % 3 == 0 else drawn.faults
        result = run(SimulatedSubject(), msgspec.structs.replace(drawn, engine=engine, faults=faults))
        questions = _asked(result.case)
        several = any(over_several(one) for one in questions)
        if several or (any(at_sink(one) for one in questions) and (left > 1 or blows)):
            left, blows = left - 1, blows or several
            yield result
        if not left:
            return


@cache
def results() -> tuple[Result, ...]:
    return tuple(_drawn())


def _asked(case: Case, name: str = "") -> list[Question]:
    return [one for one in decode(encode(questions_of(case, name))) if one.job.applies]


def asked(cases: Iterable[Case], name: str) -> list[Question]:
    return [one for number, case in enumerate(cases) for one in _asked(case, f"{name} {number}")]


def in_flight(question: Question) -> list[Apply]:
    """The applications, on the run's lineage, of rows that an earlier attempt had made."""
    every = [one for applied in question.job.applies.values() for one in applied]
    return [one for one in every if one.lineage == question.job.tip and one.made_by is not None]


def at_sink(question: Question) -> list[Apply]:
    """Those of rows that a join had made."""
    return [one for one in in_flight(question) if one in question.job.applies[SINK]]


def over_several(question: Question) -> list[Apply]:
    """Those of rows that lay in flight at several checkpoints."""
    return [one for one in in_flight(question) if one.made_by is not None and one.attempt - one.made_by > 1]


def answers(questions: list[Question], oracle: Oracle | None = None) -> list[OracleAnswer]:
    quick = {one.job.id: one.quick for one in questions}
    return (oracle or Oracle()).judge_batch([one.job for one in questions], quick)


def _forgetful(question: Question) -> Question:
    """As if the attempt that took a row had made it."""
    applies = {
        node: tuple(one._replace(made_by=None) for one in applied) for node, applied in question.job.applies.items()
    }
    return msgspec.structs.replace(question, job=msgspec.structs.replace(question.job, applies=applies))


def _one_more(passing: Iterable[Passing]) -> list[tuple[int, Row]]:
    """A mistake of the quick checker: it takes the rows in a snapshot for others than they were."""
    return [(origin, (key, (value or 0) + 1, tag + 1, tag2)) for origin, (key, value, tag, tag2) in records(passing)]


def _with_others_in_flight(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    with monkeypatch.context() as patched:
        patched.setattr(replay, "records", _one_more)
        cases = [Case(one.case.workload, one.case.submitted, one.case.history) for one in results()]
        return asked(cases, "others")


@pytest.fixture(scope="module")
def spark_answers(spark: SparkSession) -> dict[str, list[OracleAnswer]]:
    """In one batch, PySpark's word on the questions: as they are, without who made the rows, and where the quick
    checker had the rows in flight otherwise than they were sent."""
    variants = {
        "plain": asked([one.case for one in results()], "plain"),
        "forgetful": [_forgetful(one) for one in asked([one.case for one in results()], "forgetful")],
        "others": _with_others_in_flight(pytest.MonkeyPatch()),
    }
    found = {one.id: one for one in answers([one for questions in variants.values() for one in questions])}
    return {name: [found[one.job.id] for one in questions] for name, questions in variants.items()}


def test_rows_are_reported_with_the_attempt_that_made_them() -> None:
    questions = asked([one.case for one in results()], "")
    every = [one for question in questions for one in in_flight(question)]
    assert len(every) > 20
    assert all(one.made_by < one.attempt for one in every if one.made_by is not None)
    assert any(at_sink(one) for one in questions)
    assert any(over_several(one) for one in questions)


def test_both_reckonings_agree(spark_answers: dict[str, list[OracleAnswer]]) -> None:
    assert len(spark_answers["plain"]) == RUNS
    assert [(one.problem, one.disagreements) for one in spark_answers["plain"]] == [("", ())] * RUNS
    assert sum(len(one.expected.rows) for one in spark_answers["plain"] if one.expected) > 100
    assert sum(len(one.expected.held) for one in spark_answers["plain"] if one.expected) > 50


def test_a_row_that_is_looked_for_in_the_wrong_attempt_is_a_disagreement(
    spark_answers: dict[str, list[OracleAnswer]],
) -> None:
    """Rows of sources are the same in every attempt; those that a join makes are not found."""
    differing = [bool(one.disagreements) for one in spark_answers["forgetful"]]
    assert differing == [bool(at_sink(one)) for one in asked([one.case for one in results()], "")]


def test_rows_in_flight_that_one_judge_has_otherwise_are_a_disagreement(
    spark_answers: dict[str, list[OracleAnswer]],
) -> None:
    assert sum(bool(one.disagreements) for one in spark_answers["others"]) > RUNS // 2


@pytest.mark.usefixtures("spark")
def test_an_error_in_the_oracle_is_a_disagreement() -> None:
    questions = asked([one.case for one in results()], "wrong")[:2]
    wrong = {kind: msgspec.structs.replace(MEANINGS[kind], b="tag + 1") for kind in ("join", "join-signed")}
    found = answers(questions, Oracle(meanings={**MEANINGS, **wrong}))
    assert [(one.problem, bool(one.disagreements)) for one in found] == [("", True)] * 2
