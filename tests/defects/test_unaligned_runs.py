"""The judge on checkpoints that hold data in flight: no run is accused, and every mutation of that data is seen."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.subject.run import Result
from cutproof.properties.mutations.tampering import IN_FLIGHT_MUTATIONS
from defects.drawn import accused, first_runs, times_held
from defects.mutated import mutations_seen

RUNS = 24


def holds_in_flight(result: Result) -> bool:
    return any('"queued"' in one.state or '"unsent"' in one.state for one in result.history.stored)


@pytest.fixture(scope="module")
def results() -> list[Result]:
    draw = scenario_of(Drawing(max_records=40, templates=("S3", "S4")))
    return first_runs((draw(5, index) for index in range(200)), RUNS, showing=holds_in_flight)


def test_both_templates_take_checkpoints_with_data_in_flight_and_restore_it(results: list[Result]) -> None:
    restored = Counter(
        result.scenario.name
        for result in results
        if any(run.loaded and "queued" in run.loaded.state for run in result.history.runs)
    )
    assert len(results) == RUNS
    assert min(restored["S3"], restored["S4"]) >= 2


def test_no_run_is_accused(results: list[Result]) -> None:
    assert accused(results) == []
    held = times_held(results)
    assert min(held[name] for name in ("exactly-once", "consistent-cut", "restored-state")) > RUNS // 4


def test_every_mutation_is_seen(results: list[Result]) -> None:
    seen = Counter(name for result in results for name in mutations_seen(result))
    assert {name for name in IN_FLIGHT_MUTATIONS if seen[name] < 2} == set()
