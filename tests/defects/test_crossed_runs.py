"""The judge on scenarios that no template would draw: the correct engine is accused of nothing."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from cutproof.harness.run import Result
from cutproof.harness.scenario import Resume, StopWithSavepoint
from defects.crossed import runs
from defects.drawn import accused, times_held

RUNS = 250


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return list(islice(runs(7), RUNS))


def test_they_cross_what_no_template_puts_together(results: list[Result]) -> None:
    """A job that a fault made restore, and that was then stopped for good, with every sink and guarantee."""
    stopped = Counter(
        (result.scenario.engine.guarantee, result.scenario.engine.sink)
        for result in results
        if result.scenario.faults
        and any(isinstance(one, StopWithSavepoint) for one in result.scenario.commands)
        and not any(isinstance(one, Resume) for one in result.scenario.commands)
    )
    assert len(stopped) > 3
    assert {result.scenario.engine.sink for result in results} == {"transactional", "idempotent", "plain"}


def test_no_run_is_accused(results: list[Result]) -> None:
    assert accused(results) == []
    held = times_held(results)
    assert min(held[name] for name in ("no-data-loss", "progress", "no-leaks")) > RUNS // 2
    assert held["exactly-once"] > RUNS // 3
