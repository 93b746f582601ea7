"""Batches that aim at transitions of the protocol's tables, from what earlier nights have counted."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from cutproof.harness.chaos.transitions import TransitionTally, learn
from cutproof.harness.generate.aims import AIMED, Learnt, aim_of, left_out_for
from cutproof.harness.generate.coverage.target_scenarios import TARGETS
from cutproof.harness.generate.situations.templates import SHARES
from cutproof.harness.generate.strategies import Drawing
from cutproof.harness.generate.swarm import Batches, Swarm, drawn_again, features_in
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.search.outcome import Measured, ScenarioOutcome
from cutproof.reports.model import ScenarioCounts
from cutproof.reports.nights.model import SubjectNight
from unit.harness.scenarios import chain

RARE, COMMON, NEVER = "counting: barrier, new", "flowing: barrier, new", "flowing: abort, aborted"
FULL = SimulatedSubject().capabilities
DRAWING = Drawing(max_records=40, capabilities=FULL, templates=(*SHARES, *[TARGETS] * 12))
LEARNT = Learnt(
    run=1_000,
    scenarios={
        **dict.fromkeys(("template S1", "template S2", "template S3", "template S10", "template general"), 50),
        **dict.fromkeys(("alignment aligned", "alignment unaligned", "alignment timeout", "alignment in-turn"), 200),
        "template cells": 500, "guarantee exactly-once": 800, "guarantee at-least-once": 200,
        "fault kill-task": 300, "fault fail-read": 300,
    },
    taken={RARE: 24, COMMON: 900, NEVER: 0},
    taken_with={
        RARE: {"template S10": 20, "template cells": 4, "guarantee at-least-once": 24, "fault kill-task": 3},
    },
)  # fmt: skip
"""most scenarios that took the rare transition were of template S10, and all of them at-least-once"""
SEED = 8


def test_the_fewer_scenarios_took_a_transition_the_more_batches_aim_at_it() -> None:
    aims = Counter(aim_of(LEARNT, random.Random(number)) for number in range(4_000))
    assert aims[""] == pytest.approx(4_000 * (1 - AIMED), rel=0.05)
    assert aims[RARE] / aims[COMMON] == pytest.approx(901 / 25, rel=0.5)
    assert aims[NEVER] == 0, "nobody knows what leads to it"


def test_nothing_is_aimed_at_before_a_night_has_taken_a_transition() -> None:
    for learnt in (Learnt(), Learnt(run=9, taken={NEVER: 0})):
        assert {aim_of(learnt, random.Random(number)) for number in range(50)} == {""}


def test_what_seldom_led_to_it_is_left_out_and_what_it_had_stays() -> None:
    kinds = {"guarantee exactly-once": "g", "guarantee at-least-once": "g", "sink plain": "s", "alignment aligned": "a",
             "alignment unaligned": "a", "template S10": "t", "template cells": "t", "template S1": "t"}  # fmt: skip
    out = left_out_for(LEARNT, RARE, kinds)
    assert out["guarantee at-least-once"] == out["template S10"] == 0
    assert min(out["guarantee exactly-once"], out["template S1"]) > 0.9
    assert 0.7 < out["template cells"] < out["template S1"], "a sixth of the scenarios that took it were of this one"
    assert out["alignment aligned"] == out["alignment unaligned"] == 0, "neither is better than the other"
    assert "sink plain" not in out, "nothing is known of it"


def test_a_feature_of_few_scenarios_is_taken_for_an_average_one() -> None:
    """Half of all scenarios took the transition; of one feature there were only a few, and none took it."""
    for few, low, high in ((1, 0.0, 0.1), (500, 0.85, 1.0)):
        learnt = Learnt(
            run=1_000, scenarios={"template S3": 500, "template S1": few}, taken={RARE: 500},
            taken_with={RARE: {"template S3": 250}},
        )  # fmt: skip
        assert low <= left_out_for(learnt, RARE, {"template S3": "t", "template S1": "t"})["template S1"] <= high


def test_with_the_weights_a_rare_transition_is_taken_more_often() -> None:
    """The first batches that aim at it, and the same batches of a night that has learnt nothing, on the engine."""
    subject = SimulatedSubject()
    aiming, plain = (Batches(DRAWING, swarm) for swarm in (Swarm(batch=20, learnt=LEARNT), Swarm(batch=20)))
    numbers = [number for number in range(30) if aiming.aim(SEED, number) == RARE][:4]

    def taken(batches: Batches) -> int:
        found = 0
        for index in (20 * number + place for number in numbers for place in range(20)):
            subject.run(batches(SEED, index))
            found += RARE in subject.transitions
        return found

    assert taken(aiming) >= 3 * taken(plain) > 0


def test_a_batch_that_aims_is_drawn_again_from_what_it_left_out() -> None:
    batches = Batches(DRAWING, Swarm(batch=10, learnt=LEARNT))
    number = next(number for number in range(99) if batches.aim(SEED, number) == RARE)
    left_out = batches.left_out(SEED, number)
    assert {"guarantee exactly-once", "template S1"} <= set(left_out)
    for index in range(number * 10, number * 10 + 3):
        group = batches.group_number(SEED, index)
        scenario = batches(SEED, index)
        assert scenario == drawn_again(DRAWING, left_out, group, SEED, index)
        assert set(left_out).isdisjoint(features_in(scenario))


def test_a_night_counts_scenarios_and_what_it_counted_is_learnt() -> None:
    tally = TransitionTally({RARE, COMMON, NEVER}, Learnt(taken={NEVER: 2}))
    for transitions in ({COMMON: 9}, {COMMON: 1, RARE: 4}):
        measured = Measured(transitions=transitions)
        tally.add(ScenarioOutcome(index=0, scenario=chain(), verdicts={}, measured=measured))
    assert tally.scenarios == {COMMON: 2, RARE: 1, NEVER: 0}
    assert tally.taken_so_far == 3
    night = SubjectNight(
        subject="simulated", scenarios=ScenarioCounts(run=2), transitions=tally.scenarios,
        transitions_with=tally.with_features,
    )  # fmt: skip
    learnt = Learnt()
    for _ in range(2):
        learn(learnt, night)
    assert (learnt.run, learnt.taken) == (4, {COMMON: 4, RARE: 2, NEVER: 0})
    assert set(learnt.scenarios) == set(features_in(chain()))
    assert (learnt.scenarios["fault kill-task"], learnt.taken_with[RARE]["fault kill-task"]) == (4, 2)
