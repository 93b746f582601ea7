"""Jobs, troubles and users' wishes that no template puts together: the correct engine is accused of nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.harness.generate.faults.crossing import CROSSED
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.model import Cancel, StopWithSavepoint
from cutproof.harness.subject.run import Result
from cutproof.properties.model.history import CommandIssued, FaultFired
from cutproof.properties.model.verdict import Reason, Unknown
from defects.drawn import accused, first_runs, times_held

RUNS = 160


@pytest.fixture(scope="module")
def results() -> list[Result]:
    draw = scenario_of(Drawing(templates=(CROSSED,)))
    return first_runs((draw(7, number) for number in range(RUNS)), RUNS)


def test_they_cross_what_no_template_puts_together(results: list[Result]) -> None:
    """A job that lost a task and was then stopped for good, with nearly every promise and sink."""
    stopped = Counter(
        (result.scenario.engine.guarantee, result.scenario.engine.sink) for result in results if _killed_first(result)
    )
    assert len(stopped) > 3
    assert {result.scenario.engine.sink for result in results} == {"transactional", "idempotent", "plain"}


def _killed_first(result: Result) -> bool:
    """Whether a kill had fired when the last stop was asked, from which nobody resumes."""
    commands = result.scenario.commands
    if not commands or not isinstance(commands[-1], StopWithSavepoint | Cancel):
        return False
    journal = result.history.journal
    asked = [one.order for one in journal if isinstance(one, CommandIssued) and one.command == len(commands) - 1]
    killed = [one.order for one in journal if isinstance(one, FaultFired) and one.kind == "kill-task"]
    return bool(asked and killed) and killed[0] < asked[0]


def test_no_run_is_accused(results: list[Result]) -> None:
    assert accused(results) == []
    held = times_held(results)
    assert min(held[name] for name in ("no-data-loss", "progress", "no-leaks")) > RUNS // 2
    verdicts = [result.judgement.verdicts["exactly-once"] for result in results]
    promised = sum(not (isinstance(one, Unknown) and one.reason is Reason.NOT_PROMISED) for one in verdicts)
    assert promised > RUNS // 3
    assert held["exactly-once"] > promised * 2 // 3
