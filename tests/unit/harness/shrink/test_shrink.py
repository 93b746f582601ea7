"""Shrinking: to the smallest that still fails, the same way every time, within its bound of runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import CutChannel, KillTask
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.shrink.on_subject import fails_like, for_smaller
from cutproof.harness.shrink.shrink import shrink, size_of
from cutproof.harness.subject.port import CountingEvents, ScenarioRefused
from cutproof.harness.subject.run import run
from cutproof.properties.model.verdict import Violated
from unit.harness.scenarios import chain
from unit.harness.subjects import Lossy


def a_key_twice_and_a_kill(scenario: Scenario) -> bool:
    keys = Counter(record[0] for _, _, records in scenario.workload.splits() for record in records)
    return max(keys.values(), default=0) >= 2 and any(isinstance(fault, KillTask) for fault in scenario.faults)


def test_only_what_is_needed_is_left() -> None:
    found = shrink(chain(), a_key_twice_and_a_kill)
    assert size_of(found.scenario) == (2, 2, 1)
    assert not found.scenario.commands
    assert not found.scenario.deviations
    assert found.scenario.engine == Engine()
    assert a_key_twice_and_a_kill(found.scenario)


def test_drawn_scenarios_reach_the_minimum_too() -> None:
    draw = scenario_of(Drawing())
    failing = [one for one in (draw(5, index) for index in range(40)) if a_key_twice_and_a_kill(one)]
    assert failing
    for scenario in failing:
        assert size_of(shrink(scenario, a_key_twice_and_a_kill).scenario) == (2, 2, 1)


def test_settings_that_do_not_matter_are_reset_many_at_a_time() -> None:
    odd: dict[str, Any] = {
        "pooled_ids": True,
        "memtable_entries": 4,
        "compaction_us": 300,
        "minimum_pause_us": 100,
        "retained_checkpoints": 2,
        "restart_delay_us": 2_000,
        "channel_capacity": 8,
        "trims_logs": True,
        "channel_latency_us": 50,
        "control_latency_us": 150,
        "snapshot_write_us": 900,
        "transaction_us": 100,
    }
    smallest = shrink(chain(), a_key_twice_and_a_kill).scenario
    scenario = msgspec.structs.replace(smallest, engine=Engine(**odd))

    def needs_two_of_them(smaller: Scenario) -> bool:
        engine = smaller.engine
        return a_key_twice_and_a_kill(smaller) and (engine.retained_checkpoints, engine.channel_latency_us) == (2, 50)

    found = shrink(scenario, needs_two_of_them)
    assert found.scenario == msgspec.structs.replace(
        smallest, engine=Engine(retained_checkpoints=2, channel_latency_us=50)
    )
    accepted = [one for one in found.path if one.engine != scenario.engine]
    assert len(accepted) < len(odd) - 2, "one at a time there would be as many"


def test_the_same_every_time() -> None:
    first, second = (shrink(chain(), a_key_twice_and_a_kill) for _ in range(2))
    assert first == second


def test_what_depends_on_all_stays() -> None:
    scenario = chain()
    assert shrink(scenario, lambda smaller: smaller == scenario).scenario == scenario


def test_the_number_of_runs_is_bounded() -> None:
    calls: list[Scenario] = []

    def never(smaller: Scenario) -> bool:
        calls.append(smaller)
        return False

    found = shrink(chain(), never, max_runs=9)
    assert found.scenario == chain()
    assert found.runs == len(calls) == 9


def test_no_scenario_is_tried_twice() -> None:
    calls: list[Scenario] = []

    def cut_off(smaller: Scenario) -> bool:
        calls.append(smaller)
        return any(isinstance(fault, CutChannel) for fault in smaller.faults)

    shrink(chain(), cut_off)
    assert len(calls) == len({repr(call) for call in calls})


def test_a_failure_of_an_engine_shrinks_to_a_story() -> None:
    subject = Lossy()
    draw = scenario_of(Drawing(capabilities=subject.capabilities, templates=("general",)))
    for index in range(60):
        scenario = draw(11, index)
        verdict = run(subject, scenario).judgement.verdicts["exactly-once"]
        if isinstance(verdict, Violated):
            break
    difference = verdict.difference
    found = shrink(scenario, lambda smaller: fails_like(subject, smaller, "exactly-once", difference))
    assert sum(size_of(found.scenario)) <= 12
    assert fails_like(subject, found.scenario, "exactly-once", difference)


def test_a_smaller_scenario_that_fails_for_ever_is_cut_off() -> None:
    subject = SimulatedSubject()
    assert isinstance(subject, CountingEvents)
    subject.run(chain())
    needed = subject.events
    bounded = for_smaller(subject)
    assert bounded.run(chain()) == subject.run(chain())
    short = subject.within(needed // 2)
    with pytest.raises(ScenarioRefused, match=f"its run has had {needed // 2:,} events, as many as it was to have"):
        short.run(chain())
    assert not fails_like(short, chain(), "exactly-once", "lost row")
    other = Lossy()
    assert for_smaller(other) is other, "it counts no events"
