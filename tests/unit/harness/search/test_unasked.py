"""What PySpark is not asked about a case is read from the questions, and each gap has a reason of a closed list."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario import topologies
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.oracle import put
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.verdict import Holds, Reason, Unknown, Verdict, Violated
from cutproof.properties.model.workload import Input, Node, Sum, Workload
from cutproof.properties.semantics.user_functions import user_nodes
from cutproof.properties.spark import unasked
from cutproof.properties.spark.questions import decode
from cutproof.properties.spark.unasked import (
    ASKED,
    NEITHER,
    NO_STATE,
    OUT_OF_ORDER,
    REASONS,
    TOO_LARGE,
    Unasked,
    by_both,
    one_judge,
)

FEW = 14
TEMPLATES = ("S1", "S3", "S4", "S5", "S9", "local", "user-function", "laid-out-anew")


@cache
def results(template: str) -> tuple[Result, ...]:
    subject = SimulatedSubject()
    drawing = Drawing(max_records=40, templates=(template,), capabilities=subject.capabilities)
    draw = scenario_of(drawing)
    return tuple(run(subject, draw(7, index)) for index in range(FEW))


def state_left_out(result: Result) -> Iterator[tuple[int, str]]:
    """(checkpoint, node) of keyed state that is expected, and in no question."""
    asked = {
        (cut, node)
        for question in decode(put(result).question)
        for cut, nodes in question.quick.states.items()
        for node in nodes
    }
    users = user_nodes(result.case.workload)
    for checkpoint in result.case.lineages.completed:
        for node, entries in result.case.expected.states(checkpoint).items():
            if entries and node not in users and (checkpoint, node) not in asked:
                yield checkpoint, node


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_is_counted_as_asked_is_in_a_question_and_what_is_not_has_a_reason(template: str) -> None:
    for result in results(template):
        why = put(result).unasked
        cuts = {cut for question in decode(put(result).question) for cut in question.quick.rows}
        through = result.case.closing.epoch in cuts or result.case.closing.epoch < 0
        assert bool(cuts and through) is (why.rows == "")
        if why.rows != unasked.CLOCKED:
            assert bool(list(state_left_out(result))) is (why.state not in ("", NO_STATE))
        assert {why.rows, why.state} <= {"", *REASONS}


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("S5", unasked.RESCALED),
        ("S5", unasked.BATCHES),
        ("S9", unasked.DRAINED),
        ("local", unasked.LOCAL_RECOVERY),
        ("user-function", unasked.USERS),
        ("user-function", unasked.CLOCKED),
    ],
)
def test_templates_reach_the_gaps_that_are_known(template: str, reason: str) -> None:
    subject = SimulatedSubject()
    draw = scenario_of(Drawing(max_records=40, templates=(template,), capabilities=subject.capabilities))
    assert any(put(run(subject, draw(7, index))).unasked.rows == reason for index in range(60))


def violated(difference: str) -> Verdict:
    return Violated(difference=difference, message="it is so")


CORPUS = Path(__file__).parents[3] / "corpus"

GAP = Unasked(rows=unasked.LOCAL_RECOVERY, state=unasked.OFF_LINEAGE)


@pytest.mark.parametrize(
    ("invariant", "verdict", "why", "one_judge_because"),
    [
        ("exactly-once", violated("repeated row"), ASKED, ""),
        ("exactly-once", violated("repeated row"), GAP, unasked.LOCAL_RECOVERY),
        ("exactly-once", violated("applied twice"), ASKED, NEITHER),
        ("exactly-once", Holds(exercised=1), ASKED, ""),
        ("exactly-once", Holds(exercised=1), GAP, unasked.LOCAL_RECOVERY),
        ("no-data-loss", violated("lost row"), ASKED, ""),
        ("visibility", violated("rows seen too early"), GAP, unasked.LOCAL_RECOVERY),
        ("visibility", violated("commit before completion"), ASKED, NEITHER),
        ("at-least-once", violated("lost row"), ASKED, ""),
        ("at-least-once", violated("unexpected row"), ASKED, NEITHER),
        ("at-most-once", violated("repeated row"), ASKED, NEITHER),
        ("consistent-cut", violated("state differs"), ASKED, ""),
        ("consistent-cut", violated("state differs"), Unasked(rows=unasked.LOCAL_RECOVERY), ""),
        ("consistent-cut", violated("state differs"), GAP, unasked.OFF_LINEAGE),
        ("consistent-cut", violated("state differs"), Unasked(state=NO_STATE), ""),
        ("consistent-cut", violated("sent after, applied before"), ASKED, NEITHER),
        ("consistent-cut", Holds(exercised=1), Unasked(rows=unasked.LOCAL_RECOVERY), unasked.LOCAL_RECOVERY),
        (
            "consistent-cut",
            Holds(exercised=1),
            Unasked(rows=unasked.LOCAL_RECOVERY, state=NO_STATE),
            unasked.LOCAL_RECOVERY,
        ),
        ("consistent-cut", Holds(exercised=1), Unasked(state=NO_STATE), ""),
        ("progress", Holds(exercised=1), ASKED, NEITHER),
        ("no-leaks", violated("file left"), ASKED, NEITHER),
    ],
)
def test_a_verdict_is_that_of_both_judges_where_pyspark_computed_what_it_compares_with(
    invariant: str, verdict: Verdict, why: Unasked, one_judge_because: str
) -> None:
    assert one_judge(invariant, verdict, why) == one_judge_because


def test_what_is_unknown_is_nobodys_verdict() -> None:
    verdicts: dict[str, Verdict] = {
        "exactly-once": Holds(exercised=1),
        "order": Holds(exercised=1),
        "visibility": Unknown(reason=Reason.NOT_EXERCISED),
        "no-data-loss": violated("lost row"),
    }
    assert by_both(verdicts, ASKED) == ("exactly-once", "no-data-loss")
    assert by_both(verdicts, GAP) == ()


def test_the_reasons_are_a_closed_list_of_short_sentences() -> None:
    named = {value for name, value in vars(unasked).items() if name.isupper() and isinstance(value, str)}
    assert named == set(REASONS)
    assert len(set(REASONS)) == len(REASONS)
    assert all(len(reason) <= 75 and reason[-1].isalpha() for reason in REASONS)


def test_a_job_whose_numbers_may_leave_64_bits_is_kept_from_pyspark_and_counted() -> None:
    large = tuple((0, 1 << 60, tag) for tag in range(1, 21))
    workload = Workload(
        name="large",
        inputs=(Input(name="source", splits=(large,)),),
        nodes=(Node(name="sum", operator=Sum(), inputs=("source",)),),
    )
    topology = topologies.lay_out(workload, {"source": 1, "sum": 1, "sink": 1})
    reason_of = put(run(SimulatedSubject(), Scenario(workload=workload, topology=topology)))
    assert decode(reason_of.question) == ()
    assert reason_of.unasked == Unasked(rows=TOO_LARGE, state=TOO_LARGE)


@pytest.mark.parametrize(("defect", "why"), [("B07", OUT_OF_ORDER), (None, "")])
def test_pyspark_is_not_asked_where_a_broken_engine_takes_snapshots_out_of_order(defect: str | None, why: str) -> None:
    """It is given one epoch for each record, and no such epoch can say what is in the older cut alone."""
    scenario = replace(read_scenario(CORPUS / "B07.json"), defect=defect or "")
    reason_of = put(run(subject_called("simulated", defect), scenario))
    assert (decode(reason_of.question) == ()) is bool(why)
    assert (reason_of.unasked.rows, reason_of.unasked.state == why) == (why, True)
