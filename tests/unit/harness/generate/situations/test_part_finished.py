"""Jobs are drawn of which part has finished while the rest goes on; what breaks then is restored so (FIN-1, FIN-2)."""

from __future__ import annotations

import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, JobEnded

DRAWN = 80


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Scenario, Result]]:
    draw = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities, templates=("part-finished",)))
    return [(one, run(SimulatedSubject(), one)) for one in (draw(11, index) for index in range(DRAWN))]


def finished_operators(one: Scenario, result: Result) -> set[str]:
    """Those beside the sources that some attempt was restored without, others going on."""
    restored = {entry.restores for entry in result.history.journal if isinstance(entry, AttemptStarted)}
    sources = {source.name for source in one.workload.inputs}
    found: set[str] = set()
    for completed in result.history.completed:
        if completed.checkpoint in restored and completed.handles:
            alive = {task.rpartition("-")[0] for task in completed.handles}
            found |= {task.rpartition("-")[0] for task in completed.finished} - sources - alive
    return found


def test_what_is_drawn_is_valid_and_nobody_is_accused(drawn: list[tuple[Scenario, Result]]) -> None:
    assert [problem for one, _ in drawn for problem in problems_of(one)] == []
    assert [one.seed for one, result in drawn if result.judgement.violated] == []


def test_many_are_restored_without_an_operator_that_had_finished(drawn: list[tuple[Scenario, Result]]) -> None:
    found = [finished_operators(one, result) for one, result in drawn]
    assert sum(map(bool, found)) > DRAWN // 8
    kinds = {name.rstrip("0123456789") for names in found for name in names}
    assert kinds & {"map", "filter", "flatmap"}
    assert kinds & {"count", "tally", "sum", "dedup", "greater", "model"}


def test_some_come_back_as_another_job_and_are_refused_for_what_had_finished(
    drawn: list[tuple[Scenario, Result]],
) -> None:
    reasons = [entry.reason for _, result in drawn for entry in result.history.journal if isinstance(entry, JobEnded)]
    assert sum("as finished, but not all that sends to it: rows of fresh" in reason for reason in reasons) > 1
    assert sum("holds no state of fresh" in reason for reason in reasons) > 3
