"""The phase of a job, from what its processes report."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.harness.reference_engine.orchestrator.facts import Facts
from cutproof.reference_impl.core.vocabulary.stages import StageName
from unit.harness.stage import job_facts, task_facts


class Phases:
    """Facts, and every phase that was entered."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.facts = Facts(self.entered.append)
        self.facts.coordinator(True)

    def works(self, **changed: Any) -> None:
        self.facts.job(job_facts(**changed))


@pytest.fixture
def phases() -> Phases:
    return Phases()


def test_a_job_is_deployed_then_runs(phases: Phases) -> None:
    assert phases.facts.phase == "deploying"
    phases.works(stage=StageName.DEPLOYING)
    phases.works()
    assert phases.entered == ["deploying", "running"]


def test_nobody_enters_a_phase_before_some_job_is_spoken_of(phases: Phases) -> None:
    phases.facts.up("count-0", 1)
    phases.facts.coordinator(False)
    phases.facts.coordinator(True)
    assert phases.entered == []


def test_what_was_in_the_memory_of_a_dead_coordinator_is_gone(phases: Phases) -> None:
    assert phases.facts.retained == ()
    phases.works(newest=4, retained=(2, 4))
    assert phases.facts.retained == (2, 4)
    phases.facts.coordinator(False)
    assert phases.facts.retained == ()


@pytest.mark.parametrize(
    ("job", "phase"),
    [
        ({}, "running"),
        ({"under_way": True}, "checkpointing"),
        ({"is_ending": True}, "finishing"),
        ({"stage": StageName.TERMINATING}, "finishing"),
        ({"stage": StageName.CLOSING}, "finishing"),
        ({"stage": StageName.ENDED}, "finishing"),
        ({"stage": StageName.CLOSING, "job": 2}, "finishing"),
        ({"stage": StageName.CLOSING, "job": 2, "has_begun": False}, "recovering"),
        ({"stage": StageName.SAVING}, "deploying"),
        ({"stage": StageName.RESTARTING}, "recovering"),
        ({"stage": StageName.PARTIAL_FAILOVER}, "recovering"),
        ({"stage": StageName.DEPLOYING}, "deploying"),
        ({"stage": StageName.DEPLOYING, "attempt": 2}, "recovering"),
        ({"stage": StageName.DEPLOYING, "job": 2}, "recovering"),
        ({"stage": StageName.LISTING, "attempt": 2}, "recovering"),
    ],
)
def test_the_coordinators_stage_gives_the_phase(phases: Phases, job: dict[str, Any], phase: str) -> None:
    phases.works(**job)
    assert phases.facts.phase == phase


@pytest.mark.parametrize(
    ("task", "job", "phase"),
    [
        ({"aligning": True}, {"under_way": True}, "aligning"),
        ({"unsettled": 3}, {"newest": 3}, "committing"),
        ({"unsettled": 4}, {"newest": 3, "under_way": True}, "checkpointing"),
        ({"aligning": True, "unsettled": 3}, {"newest": 3}, "aligning"),
        ({"aligning": True, "unsettled": 3}, {"newest": 3, "is_ending": True}, "finishing"),
        ({"is_handed": True}, {"newest": 3}, "committing"),
        ({"is_handed": True}, {"newest": None}, "running"),
        ({}, {"newest": 3}, "running"),
    ],
)
def test_who_aligns_or_must_commit(phases: Phases, task: dict[str, Any], job: dict[str, Any], phase: str) -> None:
    phases.facts.up("sink-0", 1)
    phases.facts.task(task_facts("sink-0", **task))
    phases.works(**job)
    assert phases.facts.phase == phase


def test_a_phase_is_entered_when_it_changes_and_only_then(phases: Phases) -> None:
    phases.facts.up("map-0", 1)
    phases.works()
    phases.works(newest=1)
    phases.works(under_way=True)
    phases.facts.task(task_facts("map-0", aligning=True))
    phases.facts.task(task_facts("map-0", aligning=True, unsettled=1))
    phases.facts.task(task_facts("map-0"))
    phases.works()
    assert phases.entered == ["running", "checkpointing", "aligning", "checkpointing", "running"]


def test_what_a_dead_attempt_reported_is_past(phases: Phases) -> None:
    phases.facts.up("map-0", 1)
    phases.works(under_way=True)
    phases.facts.task(task_facts("map-0", aligning=True))
    phases.facts.down("map-0", 1)
    assert phases.facts.phase == "checkpointing"
    phases.facts.task(task_facts("map-0", aligning=True))
    assert phases.facts.phase == "checkpointing", "who does not live is not listened to"


def test_the_end_of_an_older_attempt_is_not_that_of_the_newer(phases: Phases) -> None:
    phases.facts.up("map-0", 1)
    phases.facts.up("map-0", 2)
    phases.facts.down("map-0", 1)
    assert (phases.facts.attempt_of("map-0"), phases.facts.live()) == (2, ["map-0"])
    phases.facts.down("map-0", 2)
    assert (phases.facts.attempt_of("map-0"), phases.facts.live()) == (None, [])


def test_without_a_coordinator_the_job_recovers_and_one_that_comes_knows_nothing(phases: Phases) -> None:
    phases.works(under_way=True)
    phases.facts.coordinator(False)
    assert phases.facts.phase == "recovering"
    phases.facts.coordinator(True)
    assert phases.facts.phase == "recovering"
    assert not phases.facts.under_way
    phases.works(attempt=2)
    assert phases.entered == ["checkpointing", "recovering", "running"]
