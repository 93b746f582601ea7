"""Faults: fired only when something live changed, and each undoes itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.plan import AtPoint, AtTime, InPhase
from cutproof.faults.points import PHASES
from cutproof.harness.reference_engine.subjects.translation import settings
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import CoordinatorDown, CoordinatorUp, FaultFired, TaskFailed
from cutproof.properties.model.verdict import Unknown
from unit.simulated.worlds import attempts, ended, fired, job, journal, rows, run

EARLY = AtTime(at_us=4_000)
"""records flow, some checkpoints are complete, none has ended"""
TAKEN = AtPoint(point="snapshot-taken", occurrence=2, task="op1-0")
LINK = {"sender": "op0-0", "receiver": "op1-0"}

FAULTS: dict[str, plan.AnyFault] = {
    "kill-task": plan.KillTask(trigger=EARLY, task="op1-0"),
    "kill-node": plan.KillNode(trigger=EARLY, node=1),
    "kill-coordinator": plan.KillCoordinator(trigger=EARLY),
    "pause-task": plan.PauseTask(trigger=EARLY, task="op1-0", for_us=20_000),
    "delay-channel": plan.DelayChannel(trigger=EARLY, **LINK, by_us=700, for_us=2_000),
    "stall-channel": plan.StallChannel(trigger=EARLY, **LINK, for_us=2_000),
    "cut-channel": plan.CutChannel(trigger=EARLY, **LINK),
    "lose-message": plan.LoseMessage(trigger=EARLY, message="ack"),
    "late-message": plan.LateMessage(trigger=EARLY, message="complete", task="sink-0", by_us=5_000),
    "repeat-message": plan.RepeatMessage(trigger=EARLY, message="ack", after_us=3_000),
    "fail-write": plan.FailWrite(trigger=EARLY, task="op1-0"),
    "fail-read": plan.FailRead(trigger=EARLY, task="op1-0"),
    "tear-write": plan.TearWrite(trigger=EARLY, task="op1-0"),
    "lose-unsynced": plan.LoseUnsynced(trigger=TAKEN, node=0),
    "fail-commit": plan.FailCommit(trigger=EARLY, how="lost-response", times=2),
    "raise-in-operator": plan.RaiseInOperator(trigger=EARLY, task="op0-0"),
}
KILL = plan.KillTask(trigger=AtTime(at_us=4_500), task="sink-0")


def test_every_kind_is_tried_here() -> None:
    assert set(FAULTS) == set(plan.COMMON_KINDS)


@pytest.mark.parametrize("kind", plan.COMMON_KINDS)
def test_each_fires_undoes_itself_and_a_correct_engine_survives_it(kind: str) -> None:
    faults = (FAULTS[kind], KILL) if kind == "fail-read" else (FAULTS[kind],)
    scenario = job(faults=faults)
    history = run(scenario)
    assert kind in fired(history)
    assert history.unapplied == []
    assert history.quiet
    assert history.healed is not None
    assert ended(history) == ("finished", "")
    assert Counter(history.committed) == rows(scenario)
    assert judge(scenario.workload, scenario.topology, history).violated == {}


def test_a_fault_that_lasts_beyond_the_limit_has_not_healed_whatever_healed_meanwhile() -> None:
    def planned(first_us: int, second_us: int) -> Scenario:
        pause = plan.PauseTask(trigger=AtTime(at_us=first_us), task="op1-0", for_us=20_000)
        stand = plan.KillCoordinator(trigger=AtTime(at_us=second_us), down_us=500)
        return job(faults=(pause, stand), bounded=False)

    limit = settings(planned(0, 0)).limit_us
    history = run(planned(limit - 2_000, limit - 1_000))
    assert fired(history) == ["pause-task", "kill-coordinator"]
    assert (history.quiet, history.healed, history.lasting) == (False, None, [0])
    both = run(planned(limit - 40_000, limit - 39_000))
    assert both.lasting == []
    assert both.healed is not None
    scenario = planned(limit - 2_000, limit - 1_000)
    progress = judge(scenario.workload, scenario.topology, history).verdicts["progress"]
    assert isinstance(progress, Unknown)
    assert progress.detail == "a fault lasted until the run was cut off"


RESTARTS = {
    "kill-task": 2,
    "kill-node": 2,
    "kill-coordinator": 2,
    "pause-task": 2,
    "delay-channel": 1,
    "stall-channel": 1,
    "cut-channel": 2,
    "fail-write": 1,
    "tear-write": 2,
    "lose-unsynced": 2,
    "fail-commit": 1,
    "raise-in-operator": 2,
}


@pytest.mark.parametrize("kind", RESTARTS)
def test_what_kills_a_task_restarts_the_dataflow_and_what_does_not_does_not(kind: str) -> None:
    assert attempts(run(job(faults=(FAULTS[kind],)))) == RESTARTS[kind]


def test_records_of_the_coordinator_can_fail_too() -> None:
    """Without a task it is the coordinator's own record that is hit."""
    faults = (
        plan.FailWrite(trigger=AtTime(at_us=6_000), task=None),
        plan.TearWrite(trigger=AtTime(at_us=9_000), task=None),
        plan.FailRead(trigger=AtTime(at_us=9_000), task=None),
    )
    scenario = job(60, faults=faults)
    history = run(scenario)
    assert fired(history) == ["fail-write", "tear-write", "fail-read"]
    assert Counter(history.committed) == rows(scenario)


# -- fired only when something live changed ----------------------------------------------------------------------


def fired_and_left(*faults: plan.AnyFault, **engine: Any) -> tuple[list[int], list[str]]:
    """The faults that fired, by number, and what never applied, in words."""
    history = run(job(faults=faults, **engine))
    return [entry.fault for entry in history.journal if isinstance(entry, FaultFired)], history.unapplied


def test_a_dead_task_cannot_be_killed() -> None:
    assert fired_and_left(FAULTS["kill-task"], plan.KillTask(trigger=AtTime(at_us=4_001), task="op1-0")) == (
        [0],
        ["fault 1: kill-task"],
    )


def test_a_dead_coordinator_cannot_be_killed() -> None:
    assert fired_and_left(FAULTS["kill-coordinator"], plan.KillCoordinator(trigger=AtTime(at_us=4_001))) == (
        [0],
        ["fault 1: kill-coordinator"],
    )


def test_a_task_that_stands_still_cannot_be_stopped() -> None:
    again = plan.PauseTask(trigger=AtTime(at_us=4_001), task="op1-0", for_us=9)
    assert fired_and_left(FAULTS["pause-task"], again) == ([0], ["fault 1: pause-task"])


def test_an_empty_node_cannot_be_killed() -> None:
    assert fired_and_left(FAULTS["kill-node"], plan.KillNode(trigger=AtTime(at_us=4_001), node=1)) == (
        [0],
        ["fault 1: kill-node"],
    )


@pytest.mark.parametrize("kind", ["delay-channel", "stall-channel", "cut-channel"])
def test_a_channel_of_a_dead_task_cannot_be_disturbed(kind: str) -> None:
    late = msgspec.structs.replace(FAULTS[kind], trigger=AtTime(at_us=4_001))
    assert fired_and_left(FAULTS["kill-task"], late) == ([0], [f"fault 1: {kind}"])


@pytest.mark.parametrize(
    "fault",
    [
        plan.KillTask(trigger=EARLY, task="nobody-0"),
        plan.KillNode(trigger=EARLY, node=7),
        plan.PauseTask(trigger=EARLY, task="nobody-0", for_us=9),
        plan.CutChannel(trigger=EARLY, sender="op1-0", receiver="op0-0"),
        plan.RaiseInOperator(trigger=EARLY, task="sink-0"),
        plan.LoseUnsynced(trigger=AtTime(at_us=1_000), node=0),
        plan.KillTask(trigger=AtTime(at_us=400_000), task="op1-0"),
        plan.KillTask(trigger=AtPoint(point="ack-sent", occurrence=5_000), task="op1-0"),
        plan.KillTask(trigger=InPhase(phase="aligning"), task="op1-0"),
    ],
    ids=[
        "no task",
        "no node",
        "no task to stop",
        "no channel",
        "no function",
        "nothing unsynced",
        "over",
        "never",
        "no phase",
    ],
)
def test_what_cannot_be_done_has_neither_fired_nor_been_applied(fault: plan.AnyFault) -> None:
    history = run(job(faults=(fault,)))
    assert fired(history) == []
    assert history.unapplied == [f"fault 0: {plan.kind_of(fault)}"]
    assert attempts(history) == 1


@pytest.mark.parametrize(
    "fault",
    [
        plan.LoseMessage(trigger=EARLY, message="decline"),
        plan.FailRead(trigger=EARLY, task="op1-0"),
        plan.FailCommit(trigger=EARLY, task="op1-0"),
        plan.StallChannel(trigger=AtTime(at_us=100), **LINK, for_us=1),
    ],
)
def test_what_waits_for_something_that_never_comes_has_not_fired(fault: plan.AnyFault) -> None:
    assert fired(run(job(faults=(fault,)))) == []


# -- what each does ----------------------------------------------------------------------------------------------


def failures(history: Any) -> list[tuple[str, int | None]]:
    return [(failed.reason, failed.fault) for failed in journal(TaskFailed, history)]


def test_a_failure_names_the_fault_that_explains_it() -> None:
    faults = (FAULTS["delay-channel"], FAULTS["kill-task"])
    assert failures(run(job(faults=faults))) == [("it was killed", 1)]
    assert failures(run(job(faults=(FAULTS["cut-channel"],)))) == [("its connection from op0-0 broke", 0)]
    assert failures(run(job(faults=(FAULTS["tear-write"],)))) == [("it died while it wrote a snapshot", 0)]


def test_a_raising_function_fails_its_task_once() -> None:
    ((reason_text, fault),) = failures(run(job(faults=(FAULTS["raise-in-operator"],))))
    assert reason_text.startswith("the user function of op0-0 raised Injected: injected on the record with tag ")
    assert fault == 0


def test_a_record_that_always_raises_ends_the_job_with_its_reason() -> None:
    raising = plan.RaiseInOperator(trigger=EARLY, task="op0-0", always=True)
    history = run(job(faults=(raising,), restart_attempts=3))
    status, reason = ended(history)
    assert status == "failed"
    assert reason.startswith("3 restarts are used up; the last cause was op0-0: the user function of op0-0 raised")
    assert attempts(history) == 4
    assert len({reason_text for reason_text, _ in failures(history)}) == 1, "always the same record"


def test_a_short_stop_is_no_failure() -> None:
    history = run(job(faults=(plan.PauseTask(trigger=EARLY, task="op1-0", for_us=3_000),)))
    assert fired(history) == ["pause-task"]
    assert attempts(history) == 1


def test_a_task_that_stands_still_for_long_is_given_up_and_comes_back_a_zombie() -> None:
    history = run(job(faults=(FAULTS["pause-task"],)))
    assert failures(history) == [("no heartbeat", 0)]
    zombie, successor = [one for one in history.runs if one.task == "op1-0"]
    assert (zombie.attempt, successor.attempt) == (1, 2)
    assert zombie.how == "cancelled"


def test_a_dead_coordinator_is_followed_by_another_after_its_time() -> None:
    history = run(job(faults=(plan.KillCoordinator(trigger=EARLY, down_us=3_000),)))
    (down,), (up,) = journal(CoordinatorDown, history), journal(CoordinatorUp, history)
    assert (down.fault, up.at_us - down.at_us) == (0, 3_000)


def test_a_lost_acknowledgement_costs_its_checkpoint() -> None:
    ordinary, lossy = run(job()), run(job(faults=(FAULTS["lose-message"],), checkpoint_timeout_us=3_000))
    missing = {one.checkpoint for one in ordinary.completed} - {one.checkpoint for one in lossy.completed}
    assert missing
    assert fired(lossy) == ["lose-message"]


def test_a_refused_commit_is_asked_for_again() -> None:
    for how in ("refused", "unavailable", "lost-response"):
        history = run(job(faults=(plan.FailCommit(trigger=EARLY, how=how, times=3),)))
        assert fired(history) == ["fail-commit"] * 3
        assert attempts(history) == 1


# -- phases ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASES)
def test_each_phase_is_entered_and_named_as_such(phase: str) -> None:
    first = (FAULTS["kill-task"],) if phase == "recovering" else ()
    strike = plan.KillCoordinator(trigger=InPhase(phase=phase), down_us=500)
    history = run(job(60, width=2, splits=2, faults=(strike, *first)))
    assert [entry.phase for entry in journal(FaultFired, history) if entry.fault == 0] == [phase]
