"""What the harness makes of what processes say: the phase of the job, and its rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AtTime, KillNode
from cutproof.harness.reference_engine.orchestrator.facts import Facts
from cutproof.harness.reference_engine.orchestrator.rest import Rest
from cutproof.reference_impl.core.ids import AttemptId, TaskId
from cutproof.reference_impl.processes import frames as f
from unit.harness.scenarios import chain
from unit.harness.stage import FakeMember, Stage, job_facts, planned, task_facts

# -- phases ----------------------------------------------------------------------------------------------------------


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
    phases.works(stage="deploying")
    phases.works()
    assert phases.entered == ["deploying", "running"]


def test_nobody_enters_a_phase_before_some_job_is_spoken_of(phases: Phases) -> None:
    phases.facts.up("count-0", 1)
    phases.facts.coordinator(False)
    phases.facts.coordinator(True)
    assert phases.entered == []


@pytest.mark.parametrize(
    ("job", "phase"),
    [
        ({}, "running"),
        ({"under_way": True}, "checkpointing"),
        ({"is_ending": True}, "finishing"),
        ({"stage": "terminating"}, "finishing"),
        ({"stage": "restarting"}, "recovering"),
        ({"stage": "partialfailover"}, "recovering"),
        ({"stage": "deploying"}, "deploying"),
        ({"stage": "deploying", "attempt": 2}, "recovering"),
        ({"stage": "deploying", "job": 2}, "recovering"),
        ({"stage": "listing", "attempt": 2}, "recovering"),
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
        ({"is_handed": True}, {"newest": 0}, "running"),
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
    assert (phases.facts.attempt_of("map-0"), phases.facts.live()) == (0, [])


def test_without_a_coordinator_the_job_recovers_and_one_that_comes_knows_nothing(phases: Phases) -> None:
    phases.works(under_way=True)
    phases.facts.coordinator(False)
    assert phases.facts.phase == "recovering"
    phases.facts.coordinator(True)
    assert phases.facts.phase == "recovering"
    assert not phases.facts.under_way
    phases.works(attempt=2)
    assert phases.entered == ["checkpointing", "recovering", "running"]


# -- rest ------------------------------------------------------------------------------------------------------------


class Resting:
    """A job on the stage whose input never ends, some checkpoint of it complete."""

    def __init__(self, stage: Stage, *, endless: bool = True) -> None:
        self.stage = stage
        self.rest = Rest(stage.context, endless)
        stage.comes_up()
        stage.pass_us(10_000_000)
        self.rest.completed(4)

    def count(self, task: str, **changed: Any) -> None:
        placement = self.stage.placement
        sent = {name: 9 for name, (sender, _) in placement.channels.items() if sender == task}
        received = {name: 9 for name, (_, receiver) in placement.channels.items() if receiver == task}
        count = f.Count(0, TaskId(task), AttemptId(1), 9, 9, True, sent, received)
        self.rest.counted(msgspec.structs.replace(count, **changed))

    def counts(self, odd: str = "", **changed: Any) -> None:
        for task in self.stage.placement.tasks:
            self.count(task, **(changed if task == odd else {}))

    @property
    def freezes(self) -> list[bool]:
        """What the coordinator was told: whether to freeze."""
        return [not order.off for order in self.stage.coordinator.received(f.Freeze)]


def resting(monkeypatch: pytest.MonkeyPatch, folder: Path, *faults: Any, endless: bool = True) -> Resting:
    return Resting(Stage(monkeypatch, folder, planned(chain(), *faults)), endless=endless)


def asked(members: list[FakeMember]) -> dict[str, list[int]]:
    return {member.name: [order.checkpoint for order in member.received(f.Ask)] for member in members}


def test_counts_that_agree_with_the_checkpoint_bring_the_job_to_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = resting(monkeypatch, tmp_path)
    assert asked(made.stage.processes.members) == {
        "coordinator": [],
        **{task: [4] for task in made.stage.placement.tasks},
    }
    assert not made.rest.is_at_rest
    made.counts()
    assert made.freezes == [True]
    assert made.rest.is_at_rest


@pytest.mark.parametrize(
    ("odd", "changed"),
    [
        ("map-0", {"now": 10}),
        ("map-0", {"at_mark": -1}),
        ("sink-1", {"is_idle": False}),
        ("count-0", {"attempt": 2}),
        ("map-1", {"sent": {"map-1>count-0": 10, "map-1>count-1": 9}}),
        ("sink-0", {"received": {"count-0>sink-0": 8, "count-1>sink-0": 9}}),
    ],
)
def test_one_count_that_does_not_agree_is_no_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, odd: str, changed: dict[str, Any]
) -> None:
    made = resting(monkeypatch, tmp_path)
    made.counts(odd, **changed)
    assert made.freezes == []
    assert not made.rest.is_at_rest


def test_a_part_that_restarted_by_itself_rests_in_an_attempt_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = resting(monkeypatch, tmp_path)
    made.stage.context.facts.up("count-0", 2)
    made.counts()
    assert made.freezes == [], "what the older attempt counted is not what there is"
    made.count("count-0", attempt=AttemptId(2))
    assert made.freezes == [True]


def test_it_takes_the_counts_of_all_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = resting(monkeypatch, tmp_path)
    *others, last = made.stage.placement.tasks
    for task in others:
        made.count(task)
    assert made.freezes == []
    made.count(last)
    assert made.freezes == [True]


def test_each_process_is_asked_once_however_many_tasks_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = resting(monkeypatch, tmp_path, KillNode(trigger=AtTime(at_us=1), node=0))
    assert asked(made.stage.processes.members) == {"coordinator": [], "node-0": [4], "node-1": [4]}
    made.counts()
    assert made.freezes == [True]


def test_a_job_that_ends_by_itself_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = resting(monkeypatch, tmp_path, endless=False)
    assert not any(member.frames for member in made.stage.processes.members)


@pytest.mark.parametrize("busy", ["due", "healing", "lately"])
def test_while_something_is_to_come_or_has_just_come_nothing_rests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, busy: str
) -> None:
    made = resting(monkeypatch, tmp_path)
    context = made.stage.context
    if busy == "due":
        context.after_real(50, lambda: None)
    elif busy == "healing":
        context.heal_after(50, 0, lambda: None)
    else:
        context.busy_us = made.stage.now_us
    made.counts()
    assert made.freezes == []
    before = len(made.stage.member("map-0").frames)
    made.rest.completed(5)
    assert len(made.stage.member("map-0").frames) == before


@pytest.mark.parametrize("disturbed", ["task", "coordinator", "fault", "recovers"])
def test_what_disturbs_a_job_at_rest_lets_it_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, disturbed: str
) -> None:
    made = resting(monkeypatch, tmp_path)
    made.counts()
    facts = made.stage.context.facts
    if disturbed == "task":
        facts.down("map-0", 1)
    elif disturbed == "coordinator":
        facts.coordinator(False)
    elif disturbed == "fault":
        made.stage.context.after_real(9, lambda: None)
    else:
        facts.job(job_facts(stage="restarting"))
    assert not made.rest.is_at_rest
    assert made.freezes == [True, False]


def test_a_checkpoint_under_way_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = resting(monkeypatch, tmp_path)
    made.counts()
    made.stage.context.facts.job(job_facts(under_way=True))
    assert not made.rest.is_at_rest
    made.stage.context.facts.job(job_facts())
    assert made.rest.is_at_rest
    assert made.freezes == [True]
