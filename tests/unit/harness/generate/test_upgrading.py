"""Upgrades are drawn in a modest share; each can be run, and some mappings lack what they need."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.generate.upgrading import moves_to_the_latest
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.scenario.upgrades import is_refused, sums, upgrade_of
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.verdict import Holds

SEED = 6
FULL = SimulatedSubject().capabilities


@pytest.fixture(scope="module")
def upgraded() -> list[Result]:
    """Runs of the template with upgrades."""
    draw = scenario_of(Drawing(capabilities=FULL, max_records=60, templates=("upgraded",)))
    return [run(SimulatedSubject(), draw(SEED, index)) for index in range(80)]


def upgrades(scenario: Scenario) -> list[object]:
    return [upgrade_of(one) for one in scenario.commands if upgrade_of(one) is not None]


def test_every_one_can_be_run_and_none_is_violated(upgraded: list[Result]) -> None:
    assert [problem for one in upgraded for problem in problems_of(one.scenario)] == []
    assert [one.judgement.violated for one in upgraded if one.judgement.violated] == []
    assert all(upgrades(one.scenario) for one in upgraded)


def test_there_are_those_that_rename_and_that_retype_and_that_are_refused(upgraded: list[Result]) -> None:
    found: Counter[str] = Counter()
    for one in upgraded:
        for command in one.scenario.commands:
            upgrade = upgrade_of(command)
            if upgrade is not None:
                found["renamed"] += bool(upgrade.renamed)
                found["retyped"] += bool(upgrade.retyped)
                found["refused"] += is_refused(command, one.scenario.workload)
                assert set(upgrade.retyped) <= set(sums(one.scenario.workload))
    assert min(found[kind] for kind in ("renamed", "retyped", "refused")) >= 8


def test_what_a_retyped_state_restores_is_judged(upgraded: list[Result]) -> None:
    retyped = [
        one for one in upgraded if any(upgrade.retyped for upgrade in map(upgrade_of, one.scenario.commands) if upgrade)
    ]
    held = [one for one in retyped if isinstance(one.judgement.verdicts["restored-state"], Holds)]
    assert len(held) > len(retyped) // 2 > 0


def test_a_share_of_all_scenarios_has_an_upgrade() -> None:
    draw = scenario_of(Drawing(capabilities=FULL, max_records=60))
    some = sum(bool(upgrades(draw(SEED, index))) for index in range(700))
    assert 3 <= some <= 40


def test_a_subject_that_knows_none_gets_none() -> None:
    less = SimulatedSubject().capabilities
    plain = type(less)(**{name: getattr(less, name) for name in less.__struct_fields__ if name != "upgrades"})
    draw = scenario_of(Drawing(capabilities=plain, max_records=60))
    assert not any(upgrades(draw(SEED, index)) for index in range(300))


def test_every_earlier_uid_moves_to_the_latest() -> None:
    assert moves_to_the_latest({"a": ["a", "b", "c"], "x": ["x", "y", "x"]}) == {"a": "c", "b": "c", "y": "x"}
