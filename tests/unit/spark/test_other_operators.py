"""Jobs with other operators than the one before: PySpark agrees with the quick checker on their rows and state."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.subject.run import run
from cutproof.properties.model.workload import Count, Input, Node, Sum, Workload
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.questions import Question, decode, encode, questions_of
from cutproof.properties.spark.tables import Cut, Expected, OracleAnswer, OracleJob, Period

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 40


@cache
def asked() -> tuple[Question, ...]:
    """The questions about runs in which operators were added or removed at some cut."""
    draw, found = scenario_of(Drawing(max_records=40, templates=("other-operators",))), 0
    questions: list[Question] = []
    for index in range(400):
        about = questions_of(run(SimulatedSubject(), draw(9, index)).case, f"run {index}")
        if any(len(one.job.periods) > 1 for one in about):
            questions += about
            found += 1
        if found == RUNS:
            return tuple(questions)
    raise AssertionError("too few changes of operators are drawn")


def answers(questions: tuple[Question, ...]) -> list[OracleAnswer]:
    return Oracle().judge_batch([one.job for one in questions], {one.job.id: one.quick for one in questions})


def test_both_judges_have_the_same_rows_and_states(spark: SparkSession) -> None:
    found = answers(decode(encode(asked())))
    assert [(one.id, one.problem) for one in found if one.problem] == []
    assert [(one.id, one.disagreements[:2]) for one in found if one.disagreements] == []
    assert sum(len(one.expected.rows) for one in found if one.expected is not None) > 500
    assert any(one.job.applies for one in asked())
    assert any(not one.job.applies for one in asked())


def test_a_job_that_never_changes_is_told_from_it(spark: SparkSession) -> None:
    whole = (Period(first=0, absent=()),)
    unchanged = tuple(
        msgspec.structs.replace(one, job=msgspec.structs.replace(one.job, periods=whole)) for one in asked()
    )
    assert any(one.disagreements for one in answers(unchanged))


def of_three_periods(*absent: tuple[str, ...]) -> Expected:
    """What a sum behind a count makes of nine records with the value 10, three in each period."""
    records = tuple((0, 10, number + 1) for number in range(9))
    nodes = (
        Node(name="count", operator=Count(), inputs=("source",)),
        Node(name="sum", operator=Sum(), inputs=("count",)),
    )
    job = OracleJob(
        id="periods",
        workload=Workload(name="periods", inputs=(Input(name="source", splits=(records,)),), nodes=nodes),
        cuts=tuple(Cut(name=number, positions=(3 * (number + 1),)) for number in range(3)),
        periods=tuple(Period(first=number, absent=names) for number, names in enumerate(absent)),
    )
    (found,) = Oracle().judge_batch([job])
    assert found.expected is not None
    return found.expected


def values(expected: Expected) -> list[list[int | None]]:
    return [sorted(row[1] or 0 for row in expected.rows_of(cut).elements()) for cut in range(3)]  # type: ignore[misc]


def state(expected: Expected, node: str) -> list[list[int | None]]:
    return [[entry[2] for entry in expected.state(cut).get(node, {})] for cut in range(3)]


def test_a_node_that_comes_back_begins_empty_and_one_that_stays_goes_on(spark: SparkSession) -> None:
    found = of_three_periods((), ("count",), ())
    assert values(found) == [[1, 3, 6], [16, 26, 36], [37, 39, 42]]
    assert state(found, "count") == [[3], [], [3]]
    assert state(found, "sum") == [[6], [36], [42]]


def test_a_node_that_comes_later_has_not_taken_what_came_before(spark: SparkSession) -> None:
    found = of_three_periods(("count", "sum"), ("sum",), ())
    assert values(found) == [[10, 10, 10], [1, 2, 3], [4, 9, 15]]
    assert state(found, "count") == [[], [3], [6]]
    assert state(found, "sum") == [[], [], [15]]
