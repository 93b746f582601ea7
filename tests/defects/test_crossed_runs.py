"""Jobs, troubles and users' wishes that no template puts together: the correct engine is accused of nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.faults.plan import KillTask
from cutproof.harness.run import Result
from cutproof.harness.scenario import Cancel, Resume, Scenario, StopWithSavepoint
from cutproof.harness.strategies import Drawing, scenario_of
from cutproof.harness.strategies.crossing import CROSSED
from defects.drawn import accused, first_runs, times_held

RUNS = 250


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    draw = scenario_of(Drawing(templates=(CROSSED,)))
    return [draw(7, number) for number in range(RUNS)]


@pytest.fixture(scope="module")
def results(drawn: list[Scenario]) -> list[Result]:
    return first_runs(drawn, RUNS)


def test_nearly_all_fit_together(drawn: list[Scenario]) -> None:
    """What does not stays as it was drawn, under its own name."""
    assert RUNS * 9 // 10 < sum(one.name == CROSSED for one in drawn) < RUNS


def test_they_cross_what_no_template_puts_together(drawn: list[Scenario]) -> None:
    """A job that a kill made restore, and that was then stopped for good, with nearly every promise and sink."""
    stopped = Counter(
        (one.engine.guarantee, one.engine.sink)
        for one in drawn
        if any(isinstance(fault, KillTask) for fault in one.faults)
        and any(isinstance(command, StopWithSavepoint | Cancel) for command in one.commands)
        and not any(isinstance(command, Resume) for command in one.commands)
    )
    assert len(stopped) > 3
    assert {one.engine.sink for one in drawn} == {"transactional", "idempotent", "plain"}


def test_no_run_is_accused(results: list[Result]) -> None:
    assert accused(results) == []
    held = times_held(results)
    assert min(held[name] for name in ("no-data-loss", "progress", "no-leaks")) > RUNS // 2
    assert held["exactly-once"] > RUNS // 3
