"""A job that is resumed hears nothing of the one before, however late that comes and however it is laid out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cutproof.faults.plan import AtTime, LateMessage
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Cancel, Perturbation, Resume, Scenario, StopWithSavepoint
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, FaultFired, TaskFailed
from cutproof.properties.model.verdict import Holds
from cutproof.reference_impl.core.vocabulary.events import TaskLost
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Deploy
from unit.simulated.worlds import job, started

TASKS = ("source-1", "op1-1", "sink-1")
"""none that the narrower job has"""
MESSAGES = ("deploy", "complete", "cancel", "terminate", "running", "ack", "finished")
PAIRS = [(message, task) for message in MESSAGES for task in TASKS] + [("trigger", "source-1")]
NARROWER = dict.fromkeys(("source", "op0", "op1", "sink"), 1)
REGRESSIONS = Path(__file__).parents[2] / "regressions"


def followed(message: str, task: str, *, narrower: bool, at_us: int, by_us: int, **settings: Any) -> Scenario:
    """A job of two subtasks everywhere is cancelled, or stopped for a message that only a stop has, and resumed at
    once; a message of a kind is late by then."""
    stop = message in ("terminate", "finished", "ended")
    end = StopWithSavepoint(trigger=AtTime(at_us=at_us)) if stop else Cancel(trigger=AtTime(at_us=at_us))
    again = Resume(trigger=AtTime(at_us=0), parallelism=NARROWER if narrower else {})
    sent_us = 0 if message in ("deploy", "running") else 1_000
    late = LateMessage(trigger=AtTime(at_us=sent_us), message=message, task=task, by_us=by_us)
    return job(60, width=2, splits=2, commands=(end, again), faults=(late,), **settings)


def held(result: Result) -> bool:
    progress = result.judgement.verdicts["progress"]
    return not result.judgement.violated and isinstance(progress, Holds)


@pytest.mark.parametrize("narrower", [True, False])
@pytest.mark.parametrize(("message", "task"), PAIRS)
def test_a_message_that_outlives_its_job_changes_nothing_in_the_next(message: str, task: str, narrower: bool) -> None:
    for by_us in (3_000, 8_000):
        result = run(SimulatedSubject(), followed(message, task, narrower=narrower, at_us=5_000, by_us=by_us))
        assert held(result)
        assert [one.job for one in result.history.journal if isinstance(one, AttemptStarted)][-1] == 2
        (fired,) = [one for one in result.history.journal if isinstance(one, FaultFired)]
        assert fired.detail == f"{message} of {task}: late"


@pytest.mark.parametrize("narrower", [True, False])
def test_a_deployment_of_a_former_job_brings_nobody_up(narrower: bool) -> None:
    """Its task would begin to work for a job that does not know it."""
    scenario = followed("deploy", "op0-1", narrower=narrower, at_us=3_000, by_us=8_000)
    history = run(SimulatedSubject(), scenario).history
    assert [(one.job, one.attempt) for one in history.runs if one.task == "op0-1" and one.job == 1] == []
    assert not [one for one in history.journal if isinstance(one, TaskFailed)]


def test_a_late_row_of_a_former_job_replaces_none_of_the_next() -> None:
    """Its sink is one that the next job has no more, so nobody else would shut it out."""
    result = run(SimulatedSubject(), read_scenario(REGRESSIONS / "upserted-after-its-job-was-cancelled.json"))
    assert held(result)
    assert isinstance(result.judgement.verdicts["exactly-once"], Holds)


@pytest.mark.parametrize("kind", ["ack sink-0", "complete sink-0", "cancel op0-0", "running op0-0"])
def test_a_job_that_is_restarted_and_then_cancelled_is_two_times_over(kind: str) -> None:
    """What is late is of an attempt that failed, of a job that was cancelled after it."""
    late = tuple(Perturbation(what=f"control {kind}", occurrence=number, by_us=9_000) for number in (1, 2))
    commands = (Cancel(trigger=AtTime(at_us=6_000)), Resume(trigger=AtTime(at_us=0), parallelism=NARROWER))
    killed = LateMessage(trigger=AtTime(at_us=0), message="abort", by_us=9_000)
    scenario = job(60, width=2, splits=2, commands=commands, deviations=late, faults=(killed,))
    assert held(run(SimulatedSubject(), scenario))


def test_the_coordinator_of_a_former_job_does_nothing_any_more() -> None:
    world = started(job(width=2), 4_000)
    former = world.coordinator
    assert former is not None
    world.submit(())
    assert world.coordinator is not former
    assert not former.alive


def test_that_a_task_of_a_former_job_is_lost_is_not_reported_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    world = started(job(width=2), 4_000)
    runner = world.latest("op0-0")
    world.submit(())
    world.loop.run(8_000)
    successor = world.latest("op0-0")
    assert runner is not None
    assert successor is not None
    assert (runner.task.spec.job, successor.task.spec.job) == (1, 2)
    arrived: list[object] = []
    assert world.coordinator is not None
    monkeypatch.setattr(world.coordinator, "feed", arrived.append)
    world.lose(runner, "it was killed")
    assert arrived == []
    world.lose(successor, "it was killed")
    assert arrived == [TaskLost(successor.name, successor.attempt, "it was killed")]


def test_a_job_that_has_ended_takes_nobody_in() -> None:
    world = started(job(8), 60_000)
    assert world.job_over
    world.control.to_task(TaskId("op0-0"), Deploy(job=1, attempt=AttemptId(7)))
    world.loop.run(70_000)
    assert world.runner(TaskId("op0-0"), AttemptId(7)) is None
