"""Scenarios for a subject in real time: small, calm, and with every kind of fault in its turn."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from cutproof.faults.plan import COMMON_KINDS, KINDS, AtPoint, PauseNode, PauseTask, kind_of
from cutproof.harness.generate.real_time import FEW_RESTARTS, lead_of, leads_of
from cutproof.harness.generate.stage import has_regions
from cutproof.harness.generate.strategies import Drawing, scenario_of, scenarios
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.files import digest
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.scenario.promises import can_show
from cutproof.harness.search.profiles import REAL_TIME_PROFILES
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import FaultFired
from cutproof.properties.model.verdict import Holds

replace = msgspec.structs.replace
SIMULATED = SimulatedSubject().capabilities
ABLE = replace(
    SIMULATED,
    faults=frozenset(KINDS),
    real_time=True,
    deviations=False,
    local_spilling=frozenset({"continuous"}),
)
SIZE = REAL_TIME_PROFILES["default"].scenarios
QUIET_US = 15
"""of the scenario's time, for a message between two processes; the machine's are 20 times as many"""


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    draw = scenario_of(Drawing(capabilities=ABLE, max_faults=3))
    return [draw(8, index) for index in range(4 * SIZE)]


def test_each_is_valid_and_a_function_of_seed_and_index(drawn: list[Scenario]) -> None:
    assert [(one.seed, list(problems_of(one))) for one in drawn if list(problems_of(one))] == []
    again = scenario_of(Drawing(capabilities=ABLE, max_faults=3))
    assert [digest(again(8, index)) for index in (63, 7, 7, 0)] == [digest(drawn[index]) for index in (63, 7, 7, 0)]


def test_it_is_moderate(drawn: list[Scenario]) -> None:
    for one in drawn:
        engine = one.engine
        assert one.workload.records() <= 60
        assert max(one.topology.parallelism.values()) <= 2
        assert engine.checkpoint_interval_us >= 4_000
        assert engine.checkpoint_timeout_us >= 40_000
        assert not one.deviations
        for fault in one.faults:
            for field in ("for_us", "down_us", "by_us", "after_us"):
                assert getattr(fault, field, 0) <= 30_000
            if isinstance(fault, (PauseTask, PauseNode)):
                assert fault.for_us <= 6_000 or fault.for_us >= 30_000


def test_records_are_on_their_way_at_most_checkpoints() -> None:
    """Where a message takes as little time as on a quiet machine: what the cut of a checkpoint shows is in queues."""
    draw = scenario_of(Drawing(capabilities=replace(ABLE, faults=frozenset(COMMON_KINDS)), max_faults=3))
    could, shown = 0, 0
    for index in range(3 * SIZE):
        scenario = draw(5, index)
        engine = replace(scenario.engine, channel_latency_us=QUIET_US, control_latency_us=QUIET_US)
        if "consistent-cut" in can_show(scenario):
            could += 1
            verdicts = run(SimulatedSubject(), replace(scenario, engine=engine)).judgement.verdicts
            shown += isinstance(verdicts["consistent-cut"], Holds)
    assert could > 2 * SIZE
    assert shown >= 0.92 * could


def test_some_jobs_of_several_regions_restart_by_region(drawn: list[Scenario]) -> None:
    failovers = Counter(one.engine.failover for one in drawn if has_regions(one.topology))
    assert failovers["region"] >= SIZE // 20
    assert failovers["full"] > 0
    assert {one.engine.failover for one in drawn if not has_regions(one.topology)} <= {"full", "local"}


def test_in_some_jobs_tasks_recover_locally_from_the_logs_that_the_subject_has(drawn: list[Scenario]) -> None:
    local = [one for one in drawn if one.engine.failover == "local"]
    assert SIZE // 20 <= len(local) <= SIZE // 2
    assert {one.engine.spilling for one in local} == {"continuous"}
    unable = scenario_of(Drawing(capabilities=replace(ABLE, local_recovery=False), max_faults=3))
    assert "local" not in {unable(7, index).engine.failover for index in range(SIZE)}


def test_who_commits_is_drawn_and_ids_are_used_again(drawn: list[Scenario]) -> None:
    who = Counter(one.engine.committing for one in drawn)
    assert min(who["writer"], who["committer"], who["global"]) >= SIZE // 10
    assert sum(one.engine.pooled_ids for one in drawn) >= SIZE // 10


def test_a_job_that_loses_a_transaction_to_its_store_restarts_a_few_times_only() -> None:
    draw = scenario_of(Drawing(capabilities=ABLE, templates=("S7",)))
    unled = [draw(8, index) for index in range(7, 8 * 60, 8)]
    expired = [one for one in unled if any(getattr(fault, "how", "") == "expired" for fault in one.faults)]
    assert expired
    assert {one.engine.restart_attempts for one in expired} == {FEW_RESTARTS}


def test_most_faults_strike_at_points(drawn: list[Scenario]) -> None:
    triggers = Counter(type(fault.trigger) for one in drawn for fault in one.faults)
    assert triggers[AtPoint] > 0.8 * triggers.total()


def test_a_run_of_the_profiles_size_has_every_kind_several_times(drawn: list[Scenario]) -> None:
    kinds = Counter(kind_of(fault) for one in drawn[:SIZE] for fault in one.faults)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 3


@pytest.mark.parametrize("seed", [1, 2])
def test_every_kind_that_the_simulator_has_fires_in_a_run_of_the_profiles_size(seed: int) -> None:
    draw = scenario_of(Drawing(capabilities=replace(ABLE, faults=frozenset(COMMON_KINDS)), max_faults=3))
    fired: Counter[str] = Counter()
    for index in range(SIZE):
        journal = SimulatedSubject().run(draw(seed, index)).journal
        fired.update({entry.kind for entry in journal if isinstance(entry, FaultFired)})
    assert set(fired) == set(COMMON_KINDS)


def test_nodes_get_tasks_evenly() -> None:
    leads = leads_of(ABLE)
    assert Counter(kind for lead in leads for kind in lead) == dict.fromkeys(KINDS, 2)
    shares = Counter(lead_of(index, leads) for index in range(8 * len(leads)))
    assert shares == {(): len(leads), **dict.fromkeys(leads, 7)}
    assert leads_of(replace(ABLE, faults=frozenset({"kill-task"}))) == (("kill-task",),)
    assert lead_of(0, leads_of(replace(ABLE, faults=frozenset()))) == ()


def test_the_simulators_scenarios_know_nothing_of_it() -> None:
    timeless = replace(ABLE, real_time=False, local_spilling=SIMULATED.local_spilling)
    modest, able = (scenario_of(Drawing(capabilities=one)) for one in (SIMULATED, timeless))
    for index in range(40):
        faults = [kind_of(fault) for fault in able(3, index).faults]
        assert set(faults) <= set(COMMON_KINDS)
        assert replace(able(3, index), deviations=modest(3, index).deviations) == modest(3, index)


@given(scenarios(max_records=40, max_faults=2, capabilities=ABLE))
@settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_hypothesis_draws_them_too(scenario: Scenario) -> None:
    assert list(problems_of(scenario)) == []
    assert len(scenario.faults) <= 2
    assert scenario.engine.checkpoint_interval_us >= 4_000
