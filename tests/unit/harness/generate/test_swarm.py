"""Swarm testing: batches leave features out, something always stays, and targets that were hit least come first."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import kind_of
from cutproof.harness.generate.coverage.target_scenarios import TARGETS
from cutproof.harness.generate.situations.templates import SHARES
from cutproof.harness.generate.strategies import Drawing
from cutproof.harness.generate.swarm import Batches, Swarm, drawn_again, features_in, features_of, without
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.coverage import every_target, in_words
from cutproof.harness.subject.needs import lacks
from cutproof.harness.subject.port import Capabilities
from unit.harness.narrow_engine import ALL, NARROW
from unit.harness.scenarios import chain

FULL = SimulatedSubject().capabilities
DRAWING = Drawing(max_records=40, capabilities=FULL)
AIMED = replace(DRAWING, templates=(*SHARES, *[TARGETS] * 12))
"""most scenarios aim at targets, as in the profile `nightly`"""
SEED = 3


def drawn(batches: Batches, number: int, scenarios: int) -> list[Scenario]:
    first = number * batches.size
    return [batches(SEED, index) for index in range(first, first + scenarios)]


def test_a_batch_has_none_of_what_it_leaves_out() -> None:
    batches = Batches(DRAWING, Swarm())
    left = [batches.left_out(SEED, number) for number in range(8)]
    assert any(len(out) > 20 for out in left)
    assert () in left, "some batches have everything"
    assert len(set(left)) > 4
    for number in range(4):
        for scenario in drawn(batches, number, 12):
            assert set(left[number]).isdisjoint(features_in(scenario))
            assert next(problems_of(scenario), None) is None


def test_something_of_each_kind_stays_and_every_feature_is_left_out_at_times() -> None:
    batches = Batches(DRAWING, Swarm())
    out = [batches.left_out(SEED, number) for number in range(150)]
    assert set(features_of(DRAWING)) == {one for left in out for one in left}
    for left in out[:40]:
        can = without(DRAWING, left).capabilities
        assert can is not None
        assert can.sinks
        assert can.guarantees
        assert can.alignments
        assert len(can.faults) >= 3


@pytest.mark.parametrize("capabilities", [FULL, NARROW, ALL], ids=["full", "narrow", "all"])
def test_what_is_drawn_can_be_run(capabilities: Capabilities) -> None:
    drawing = replace(DRAWING, capabilities=capabilities)
    batches = Batches(drawing, Swarm(batch=2))
    for number in range(12):
        rest = without(drawing, batches.left_out(SEED, number)).capabilities
        assert rest is not None
        for scenario in drawn(batches, number, 2):
            assert lacks(scenario, rest) == ()


def test_a_scenario_follows_from_seed_number_and_swarm_and_is_drawn_again_from_its_record() -> None:
    batches, same = Batches(DRAWING, Swarm()), Batches(DRAWING, Swarm())
    for index in (0, 7, 205, 1_003):
        left_out, group = batches.left_out(SEED, index // batches.size), batches.group_number(SEED, index)
        assert batches(SEED, index) == same(SEED, index) == drawn_again(DRAWING, left_out, group, SEED, index)


def test_targets_that_were_hit_least_come_first() -> None:
    """Of all targets only those of one kind of fault have not been hit."""
    hits = {in_words(target): 500 for target in every_target(FULL) if target.fault != "stall-channel"}
    fresh, weighted = (_kinds_aimed_at(Batches(AIMED, swarm)) for swarm in (Swarm(), Swarm(hits=hits)))
    assert weighted["stall-channel"] > 3 * fresh["stall-channel"]


def test_targets_at_the_points_of_failures_come_more_often() -> None:
    swarms = (Swarm(), Swarm(points=("snapshot-taken",)))
    fresh, near = (_points_aimed_at(Batches(AIMED, swarm)) for swarm in swarms)
    assert near["snapshot-taken"] > 1.3 * fresh["snapshot-taken"] > 0


def test_a_given_workload_keeps_what_it_needs() -> None:
    given = chain()
    drawing = replace(DRAWING, workload=given.workload, topology=given.topology)
    batches = Batches(drawing, Swarm(batch=2))
    for number in range(6):
        for scenario in drawn(batches, number, 1):
            assert scenario.workload == given.workload


def _aimed(batches: Batches) -> list[Scenario]:
    """Scenarios that aim at targets, of a batch that leaves nothing out."""
    number = next(number for number in range(50) if not batches.left_out(SEED, number))
    first = number * batches.size
    indices = [index for index in range(first, first + batches.size) if batches.group_number(SEED, index) is not None]
    return [batches(SEED, index) for index in indices]


def _kinds_aimed_at(batches: Batches) -> Counter[str]:
    return Counter(kind for scenario in _aimed(batches) for kind in {kind_of(fault) for fault in scenario.faults})


def _points_aimed_at(batches: Batches) -> Counter[str]:
    return Counter(
        point
        for scenario in _aimed(batches)
        for point in {getattr(fault.trigger, "point", "") for fault in scenario.faults}
    )
