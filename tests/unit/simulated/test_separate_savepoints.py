"""Jobs whose savepoints have a timeline of their own, under drawn trouble (SNAP-6)."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest

from cutproof.faults.plan import AtTime, KillTask
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Cancel, Fork, Resume, Savepoint, Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import AttemptStarted, History
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Count
from unit.simulated.worlds import counted, job, journal, run

SAVED = Savepoint(trigger=AtTime(at_us=3_000), name="saved")


def troubled(scenario: Scenario, number: int) -> Scenario:
    """The scenario with a savepoint, soon after which a task is killed; nobody goes back to an older snapshot."""
    drawn = random.Random(number)
    tasks = [f"{name}-{at}" for name, width in scenario.topology.parallelism.items() for at in range(width)]
    at_us = drawn.randrange(4_000, 30_000)
    kill = KillTask(task=drawn.choice(tasks), trigger=AtTime(at_us=at_us + drawn.randrange(2_000, 9_000)))
    kept = tuple(one for one in scenario.commands if not isinstance(one, Cancel | Resume | Fork))
    return msgspec.structs.replace(
        scenario,
        engine=msgspec.structs.replace(scenario.engine, savepoints="without-side-effects", failover="full"),
        commands=(Savepoint(trigger=AtTime(at_us=at_us)), *kept),
        faults=(*scenario.faults, kill),
        deviations=(),
    )


def test_drawn_trouble_breaks_no_job_whose_savepoints_have_no_side_effects() -> None:
    draw = scenario_of(Drawing(max_records=60))
    passed_over = 0
    for index in range(240):
        scenario = troubled(draw(5, index), index)
        if list(problems_of(scenario)):
            continue
        history = SimulatedSubject().run(scenario)
        assert judge(scenario.workload, scenario.topology, history).violated == {}, index
        passed_over += _passed_over(history)
    assert passed_over > 6


def _passed_over(history: History) -> int:
    """How often an attempt began with an older snapshot than a savepoint of its job that was complete."""
    taken = [one for one in history.completed if one.savepoint]
    return sum(
        one.job == start.job and one.order < start.order and one.checkpoint > (start.restores or 0)
        for start in journal(AttemptStarted, history)
        for one in taken
    )


def test_rows_sealed_for_a_savepoint_are_committed_with_the_next_checkpoint() -> None:
    scenario = job(60, Count(), commands=(SAVED,), savepoints="without-side-effects", checkpoint_interval_us=4_000)
    history = run(scenario)
    (taken,) = [one for one in history.completed if one.savepoint]
    following = next(one for one in history.completed if one.order > taken.order)
    sealed = [one for one in history.transactions if one.checkpoint == taken.checkpoint and one.rows]
    assert sealed
    assert all(one.committed is not None and one.committed > following.order for one in sealed)
    assert Counter(history.committed) == counted(scenario)


@pytest.mark.parametrize("savepoints", ["never-restored", "without-side-effects"])
def test_an_engine_that_restores_a_savepoint_all_the_same_is_seen(savepoints: str) -> None:
    kill = KillTask(task="op0-0", trigger=AtTime(at_us=6_000))
    settings = {"commands": (SAVED,), "faults": (kill,), "checkpoint_interval_us": 20_000}
    history = run(job(60, Count(), **settings))
    assert [one.restores for one in journal(AttemptStarted, history)] == [None, 1]
    history.savepoints = savepoints
    scenario = job(60, Count(), savepoints=savepoints, **settings)
    found = judge(scenario.workload, scenario.topology, history).verdicts["restored-state"]
    assert isinstance(found, Violated)
    assert found.difference == "another snapshot restored"


def test_an_engine_whose_savepoints_commit_all_the_same_is_seen() -> None:
    scenario = job(60, Count(), commands=(SAVED,), checkpoint_interval_us=6_000)
    history = run(scenario)
    assert isinstance(judge(scenario.workload, scenario.topology, history).verdicts["visibility"], Holds)
    history.savepoints = "without-side-effects"
    found = judge(scenario.workload, scenario.topology, history).verdicts["visibility"]
    assert isinstance(found, Violated)


def test_a_job_that_is_forked_from_such_a_savepoint_commits_what_it_holds() -> None:
    engine = {"savepoints": "without-side-effects", "checkpoint_interval_us": 20_000}
    scenario = job(60, Count(), commands=(SAVED, Fork(trigger=AtTime(at_us=6_000), snapshot="saved")), **engine)
    history = run(scenario)
    assert isinstance(history.forks, list)
    (forked,) = history.forks
    held = [one for one in forked.history.transactions if one.checkpoint == forked.checkpoint and one.rows]
    assert held
    assert {one.status for one in held} == {"committed"}
    assert Counter(forked.history.committed) == counted(scenario)
    assert judge(scenario.workload, scenario.topology, history).verdicts["restorable"] == Holds(exercised=1)


def test_what_is_sealed_for_such_a_savepoint_is_aborted_when_the_job_is_cancelled() -> None:
    """A cost of the mode: no checkpoint covers it.  So nobody can be resumed from the savepoint in the same store."""
    engine = {"savepoints": "without-side-effects", "checkpoint_interval_us": 20_000}
    cancel, resume = Cancel(trigger=AtTime(at_us=6_000)), Resume(trigger=AtTime(at_us=1_000), snapshot="saved")
    scenario = job(60, Count(), commands=(SAVED, cancel, resume), **engine)
    judged = judge(scenario.workload, scenario.topology, run(scenario))
    assert list(judged.violated) == ["progress"]
    assert "has been aborted" in judged.violated["progress"].message
