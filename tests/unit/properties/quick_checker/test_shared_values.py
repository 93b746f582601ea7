"""A case computes its values once for all checkers: none of them, and no question to PySpark, changes them."""

from __future__ import annotations

import copy
from typing import Any, cast

from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.search.worker import Plan, drawer
from cutproof.harness.subject.run import run
from cutproof.properties.invariants.judge import judge_case
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.spark.questions import questions_of

SEED, SCENARIOS = 5, 60
SUBJECT = SimulatedSubject()
DRAW = drawer(Plan(seed=SEED), SUBJECT)
LISTS = ("classes", "channels", "ends", "drained", "closing", "committed", "pending", "settled")
"""values of a case that are shared as a whole"""


def values_of(case: Case) -> dict[str, Any]:
    """The shared values that can be compared by their content, computed if they have not been."""
    expected, lineages = case.expected, case.lineages
    segments = [one for of_task in case.lineage.segments.values() for one in of_task]
    found: dict[str, Any] = {name: getattr(case, name) for name in LISTS} | {"layouts": case.jobs.layouts}
    found |= {f"lineages.{name}": getattr(lineages, name) for name in ("runs", "completed", "starts", "operators")}
    for checkpoint in (None, *lineages.completed):
        found[f"positions {checkpoint}"] = case.positions(checkpoint)
    for checkpoint in lineages.completed:
        found[f"states {checkpoint}"] = case.states(checkpoint)
        found[f"stored {checkpoint}"] = lineages.snapshots.stored(checkpoint)
        found[f"in flight {checkpoint}"] = lineages.snapshots.in_flight(checkpoint)
        if case.rows_are_known:
            found[f"expected state {checkpoint}"] = expected.states(checkpoint)
    if case.rows_are_known:
        found["rows"] = expected.rows()
    for run_ in case.history.runs:
        found[f"transactions of {run_.task}, {run_.attempt}"] = case.transactions_of(run_.task, run_.attempt)
        for channel in run_.inputs:
            found[f"barriers of {channel}, {run_.attempt}"] = case.barriers(channel, run_)
    for segment in segments:
        found[f"taken by {segment.run.task}, {segment.run.attempt}"] = case.taken(segment)
    return found


def case_of(number: int) -> Case:
    scenario = DRAW(SEED, number)
    return Case(scenario.workload, scenario.topology, run(SUBJECT, scenario).history)


def test_judging_and_asking_change_no_shared_value() -> None:
    compared = 0
    for number in range(SCENARIOS):
        case = case_of(number)
        if case.is_black_box:
            continue
        before = copy.deepcopy(values_of(case))
        judge_case(case)
        questions_of(case, "case")
        after = values_of(case)
        assert [name for name in before if before[name] != after[name]] == []
        compared += len(before)
    assert compared > 50 * SCENARIOS


def test_a_change_would_show() -> None:
    case = case_of(0)
    before = copy.deepcopy(values_of(case))
    cast(dict[int, int], case.positions(None))[-1] = 7
    after = values_of(case)
    assert [name for name in before if before[name] != after[name]] == ["positions None"]
