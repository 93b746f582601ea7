"""What a whole run makes of its cells and stops: shortfalls from the profile's size on, contradictions at once."""

from __future__ import annotations

import msgspec

from cutproof.faults.plan import kind_of
from cutproof.harness.generate.strategies import Drawing
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.campaign import Campaign, verify_campaign
from cutproof.harness.search.coverage import CHECKPOINT_POINTS, possible_targets
from cutproof.harness.search.pool import Here, Processes
from cutproof.harness.search.profiles import PROFILES, REAL_TIME_PROFILES, Profile
from cutproof.harness.search.search import Budget, Search
from cutproof.harness.search.snapshot_targets import possible_snapshot_targets
from cutproof.harness.search.stops import STOPS
from cutproof.harness.search.worker import Plan
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.history import FaultFired, History, JobEnded
from unit.harness.scenarios import chain
from unit.harness.subjects import Agreeing

SMALL = Profile(
    name="small", scenarios=6, max_records=30, max_faults=3, shares={}, every_fault=False, every_target=True
)


class Boastful:
    """The reference engine in at-most-once, whose harness says of every planned fault that it fired."""

    name = "boastful"
    capabilities: Capabilities = msgspec.structs.replace(
        SimulatedSubject().capabilities, guarantees=frozenset({"at-most-once"}), sinks=frozenset({"plain"})
    )

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        history = SimulatedSubject().run(scenario, timeline=timeline)
        fired = [
            FaultFired(order=number, at_us=0, fault=number, kind=kind_of(fault), phase="running")
            for number, fault in enumerate(scenario.faults)
        ]
        job = max((entry.job for entry in history.journal if isinstance(entry, JobEnded)), default=1)
        ended = JobEnded(order=len(fired), at_us=0, job=job, status="finished")
        return msgspec.structs.replace(history, journal=[*fired, ended])


def campaign_of(profile: Profile, scenarios: int, template: str = "cells") -> Campaign:
    plan = Plan(seed=5, drawing=Drawing(max_records=30, templates=(template,)))
    return Campaign(plan=plan, budget=Budget(scenarios=scenarios), profile=profile)


def test_a_target_without_hits_is_a_shortfall_from_the_size_of_the_profile_on() -> None:
    subject = SimulatedSubject()
    for scenarios, code in ((SMALL.scenarios - 1, ExitCode.HELD), (SMALL.scenarios, ExitCode.FELL_SHORT)):
        done = verify_campaign(campaign_of(SMALL, scenarios), subject=subject, oracle=Agreeing())
        assert done.exit_code is code
        if code is ExitCode.HELD:
            assert (done.summary.shortfalls, bool(done.summary.not_judged_by_shares)) == ([], True)
            continue
        points, snapshots = done.summary.shortfalls
        coverage = done.summary.coverage
        assert points.startswith(
            f"no scenario hit {coverage.possible - coverage.hit:,} of {coverage.possible:,} possible coverage targets, "
        )
        assert 0 < coverage.hit < coverage.possible == len(possible_targets(subject.capabilities))
        mine = coverage.snapshots
        assert snapshots.startswith(
            f"no scenario hit {mine.possible - mine.hit:,} of {mine.possible:,} possible snapshot targets, such as "
        )
        assert 0 < mine.hit < mine.possible == len(possible_snapshot_targets(subject.capabilities))


def test_where_the_workload_is_given_or_the_profile_is_another_nothing_is_short() -> None:
    given = verify_campaign(campaign_of(SMALL, 6), subject=SimulatedSubject(), oracle=Agreeing())
    workload = chain().workload
    fixed = campaign_of(SMALL, 6)
    plan = msgspec.structs.replace(fixed.plan, drawing=msgspec.structs.replace(fixed.plan.drawing, workload=workload))
    done = verify_campaign(msgspec.structs.replace(fixed, plan=plan), subject=SimulatedSubject(), oracle=Agreeing())
    assert given.summary.shortfalls
    assert not done.summary.shortfalls
    assert not any(PROFILES[name].every_target for name in ("smoke", "default"))
    assert PROFILES["nightly"].every_target


def test_a_way_to_stop_that_nothing_hit_is_a_shortfall_where_the_profile_asks_for_it() -> None:
    asking = msgspec.structs.replace(SMALL, every_target=False, every_stop=True)
    for scenarios, code in ((asking.scenarios - 1, ExitCode.HELD), (asking.scenarios, ExitCode.FELL_SHORT)):
        done = verify_campaign(campaign_of(asking, scenarios, "S1"), subject=SimulatedSubject(), oracle=Agreeing())
        assert done.exit_code is code
        is_named = "cancel was planned 0 times and never hit" in done.summary.shortfalls
        assert is_named is (code is ExitCode.FELL_SHORT)
        assert tuple(done.summary.stops) == STOPS
    silent = msgspec.structs.replace(asking, every_stop=False)
    done = verify_campaign(campaign_of(silent, 6, "S1"), subject=SimulatedSubject(), oracle=Agreeing())
    assert not done.summary.shortfalls
    campaign = campaign_of(asking, 6, "S1")
    drawing = msgspec.structs.replace(campaign.plan.drawing, workload=chain().workload)
    given = msgspec.structs.replace(campaign, plan=msgspec.structs.replace(campaign.plan, drawing=drawing))
    assert not verify_campaign(given, subject=SimulatedSubject(), oracle=Agreeing()).summary.shortfalls
    assert [name for name, profile in PROFILES.items() if profile.every_stop] == ["nightly"]
    assert not any(profile.every_stop for profile in REAL_TIME_PROFILES.values())


def test_what_was_called_impossible_and_fired_is_a_failure_of_the_harness() -> None:
    campaign = campaign_of(PROFILES["smoke"], 30, template="general")
    done = verify_campaign(campaign, subject=Boastful(), oracle=Agreeing())
    sentences = [words for words in done.summary.failures if words.startswith("coverage: ")]
    assert sentences
    assert "a rule calls it impossible: at-most-once" in sentences[0]
    assert "\n" not in sentences[0]
    fired = {row.split()[2] for row, counts in done.summary.coverage.table.by_row() if any(counts.values())}
    assert fired & CHECKPOINT_POINTS, "shown all the same"
    assert done.exit_code is ExitCode.HARNESS_FAILED


def test_workers_count_the_same_targets_as_this_process() -> None:
    plan = Plan(seed=5, drawing=Drawing(max_records=30, templates=("cells",)))
    pool = Processes(plan, 2)
    try:
        there = Search(pool, Agreeing(), Budget(scenarios=24), chunk=4).run()
    finally:
        pool.close()
    here = Search(Here(plan, SimulatedSubject()), Agreeing(), Budget(scenarios=24)).run()
    capabilities = SimulatedSubject().capabilities
    assert there.tally.coverage.coverage(capabilities) == here.tally.coverage.coverage(capabilities)
    assert there.tally.summary().stops == here.tally.summary().stops
    assert here.tally.coverage.coverage(capabilities).hit > 20
