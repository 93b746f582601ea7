"""The judge on broadcast state: no drawn run is accused, and every mutation of it is seen."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.model import Resume
from cutproof.harness.subject.run import Result
from cutproof.properties.mutations.tampering import RULE_MUTATIONS
from cutproof.properties.semantics.broadcast import with_rules
from defects.drawn import accused, first_runs, times_held
from defects.mutated import mutations_seen

RUNS = 40


@pytest.fixture(scope="module")
def results() -> list[Result]:
    draw = scenario_of(Drawing(max_records=60, templates=("laid-out-anew",)))
    return first_runs((draw(6, index) for index in range(900)), RUNS, of=lambda scenario: with_rules(scenario.workload))


def test_they_are_drawn_and_rescaled(results: list[Result]) -> None:
    rescaled = [
        one for one in results if any(isinstance(each, Resume) and each.parallelism for each in one.scenario.commands)
    ]
    assert len(results) == RUNS
    assert len(rescaled) > RUNS // 2


def test_no_run_is_accused(results: list[Result]) -> None:
    assert accused(results) == []
    held = times_held(results)
    assert min(held[name] for name in ("exactly-once", "consistent-cut", "restored-state", "order")) > RUNS // 5


def test_every_mutation_is_seen(results: list[Result]) -> None:
    seen = Counter(name for result in results for name in mutations_seen(result))
    assert {name for name in RULE_MUTATIONS if not seen[name]} == set()
    assert min(seen["drop a committed row"], seen["skip a record"], seen["move a cut"]) > RUNS // 5
