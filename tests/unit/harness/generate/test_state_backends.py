"""How often state is in files, and what happens to the files then."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint
from cutproof.faults.points import STATE_POINTS
from cutproof.harness.generate import strategies
from cutproof.harness.generate.choices import Choices
from cutproof.harness.generate.state_backends import tasks_with_state
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import FaultFired, History

MANY = 400
TARGETED = "cells"


def drawn(drawing: Drawing) -> list[Scenario]:
    draw = scenario_of(drawing)
    return [draw(6, index) for index in range(MANY)]


@pytest.fixture(scope="module")
def some() -> list[Scenario]:
    return drawn(Drawing())


@pytest.fixture(scope="module")
def in_files(some: list[Scenario]) -> list[Scenario]:
    return [one for one in some if one.engine.state_backend == "lsm" and one.name != TARGETED]


def test_a_fair_share_of_the_jobs_with_state_by_key_keeps_it_in_files(
    some: list[Scenario], in_files: list[Scenario]
) -> None:
    keyed = [one for one in some if tasks_with_state(one) and one.name != TARGETED]
    assert 0.2 < len(in_files) / len(keyed) < 0.4
    assert {one.engine.memtable_entries for one in in_files} == {1, 2, 3, 5}
    assert {one.engine.compaction_files for one in in_files} == {2, 3, 4}
    assert {one.engine.alignment for one in in_files} >= {"aligned", "unaligned"}
    assert all(tasks_with_state(one) for one in in_files)
    assert [problem for one in in_files for problem in problems_of(one)] == []


def test_nothing_else_of_a_scenario_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_the_heap(choices: Choices, scenario: Scenario, most: int) -> Scenario:
        return scenario

    monkeypatch.setattr(strategies, "with_forgetful_inputs", lambda choices, scenario: scenario)
    before = drawn(Drawing())
    monkeypatch.setattr(strategies, "with_state_in_files", on_the_heap)
    for one, other in zip(before, drawn(Drawing()), strict=True):
        faults, deviations = one.faults[: len(other.faults)], one.deviations[: len(other.deviations)]
        assert replace(one, engine=other.engine, faults=faults, deviations=deviations) == other
        assert len(one.faults) <= max(4, len(other.faults))


def test_what_is_drawn_for_the_files_happens(in_files: list[Scenario]) -> None:
    """Mostly: faults at flushes and compactions fire, and compactions are late."""
    planned, fired, late = Counter[str](), Counter[str](), Counter[bool]()
    for one in in_files:
        history: History = run(SimulatedSubject(), one).history
        struck = {entry.fault for entry in history.journal if isinstance(entry, FaultFired)}
        for number, fault in enumerate(one.faults):
            if isinstance(fault.trigger, AtPoint) and fault.trigger.point in STATE_POINTS:
                planned[fault.trigger.point] += 1
                fired[fault.trigger.point] += number in struck
        late.update(
            f"{each.what}, occurrence {each.occurrence}" not in history.unapplied
            for each in one.deviations
            if each.what.startswith("compaction ")
        )
    assert all(fired[point] > planned[point] / 3 > 1 for point in STATE_POINTS), (planned, fired)
    assert late[True] > late[False] / 2 > 0


def test_a_subject_without_such_state_gets_none() -> None:
    capabilities = replace(SimulatedSubject().capabilities, state_backends=frozenset({"heap"}))
    everything = drawn(Drawing(capabilities=capabilities))
    assert {one.engine.state_backend for one in everything} == {"heap"}
    points = {fault.trigger.point for one in everything for fault in one.faults if isinstance(fault.trigger, AtPoint)}
    assert not points & set(STATE_POINTS)
