"""The judge on windows, in event time and processing time: no run is accused, late data or not; every mutation is
seen."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.subject.run import Result
from cutproof.properties.model.workload import Burst, Session, Sliding, Tumbling, window_of
from cutproof.properties.mutations.tampering import EVENT_TIME_MUTATIONS, PROCESSING_TIME_MUTATIONS
from defects.drawn import accused, first_runs, times_held
from defects.mutated import mutations_seen

RUNS = 60


@pytest.fixture(scope="module")
def results() -> list[Result]:
    draw = scenario_of(Drawing(max_records=60, templates=("S11",)))
    return first_runs((draw(6, index) for index in range(400)), RUNS, of=lambda scenario: window_of(scenario.workload))


def test_every_kind_of_window_is_drawn_with_and_without_late_data(results: list[Result]) -> None:
    windows = [window_of(result.scenario.workload) for result in results]
    assert {type(node.operator) for node in windows if node} == {Tumbling, Sliding, Session, Burst}
    assert {result.case.classes[node.name] for result, node in zip(results, windows, strict=True) if node} == {"M", "W"}


def test_no_run_is_accused(results: list[Result]) -> None:
    assert accused(results) == []
    held = times_held(results)
    assert min(held[name] for name in ("exactly-once", "consistent-cut", "drain", "restored-state")) > RUNS // 4


def test_every_mutation_is_seen(results: list[Result]) -> None:
    seen = Counter(name for result in results for name in mutations_seen(result))
    assert {name for name in EVENT_TIME_MUTATIONS | PROCESSING_TIME_MUTATIONS if not seen[name]} == set()
    assert min(seen["drop a committed row"], seen["edit a stored state"], seen["move a cut"]) > RUNS // 4
