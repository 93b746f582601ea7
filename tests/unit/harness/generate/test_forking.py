"""Forks, and resumes from older snapshots, are drawn in a modest share; what they restore is judged."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtRest
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Fork, Resume, Scenario
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.verdict import Holds

SEED, MANY = 4, 700
FULL = SimulatedSubject().capabilities


@pytest.fixture(scope="module")
def some() -> list[Scenario]:
    draw = scenario_of(Drawing(capabilities=FULL, max_records=60))
    return [draw(SEED, index) for index in range(MANY)]


@pytest.fixture(scope="module")
def retained() -> list[Result]:
    draw = scenario_of(Drawing(capabilities=FULL, max_records=60, templates=("retained",)))
    return [run(SimulatedSubject(), draw(SEED, index)) for index in range(60)]


def forks(scenario: Scenario) -> list[Fork]:
    return [one for one in scenario.commands if isinstance(one, Fork)]


def resumes(scenario: Scenario) -> list[Resume]:
    return [one for one in scenario.commands if isinstance(one, Resume)]


def test_a_few_scenarios_are_forked_most_of_them_at_rest(some: list[Scenario]) -> None:
    forked = [one for one in some if forks(one)]
    assert MANY // 50 < len(forked) < MANY // 12
    assert all(isinstance(forks(one)[0].trigger, AtRest) for one in forked)
    assert [problem for one in forked for problem in problems_of(one)] == []
    assert not any(one.engine.guarantee == "at-most-once" for one in forked)


def test_some_resumes_name_another_snapshot_than_the_newest(some: list[Scenario]) -> None:
    named = Counter(one.snapshot for scenario in some for one in resumes(scenario))
    assert named["oldest"] > 2
    assert named["newest"] > 5 * (named["oldest"] + named["early"] + named["saved"])


def test_retained_snapshots_are_restored_at_rest(retained: list[Result]) -> None:
    verdicts = [one.judgement.verdicts["restorable"] for one in retained]
    assert sum(isinstance(one, Holds) for one in verdicts) > len(retained) * 3 // 4
    assert max(one.exercised for one in verdicts if isinstance(one, Holds)) >= 3
    assert [one.scenario.seed for one in retained if one.judgement.violated] == []


def test_half_of_these_jobs_are_resumed_from_an_older_snapshot(retained: list[Result]) -> None:
    named = Counter(one.snapshot for result in retained for one in resumes(result.scenario))
    assert set(named) >= {"early", "oldest"}
    assert "newest" not in named
    assert len(retained) // 3 < sum(named.values()) < len(retained) * 2 // 3


def test_an_engine_that_cannot_fork_gets_no_forks(some: list[Scenario]) -> None:
    knows = replace(FULL, commands=FULL.commands - {"fork"}, resumes_older=False)
    draw = scenario_of(Drawing(capabilities=knows, max_records=60))
    drawn = [draw(SEED, index) for index in range(150)]
    assert not any(forks(one) for one in drawn)
    assert {one.snapshot for scenario in drawn for one in resumes(scenario)} == {"newest"}
