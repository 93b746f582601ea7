"""What sets faults off in a run of processes, who suffers them, and in whom they wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.plan import AtPoint, AtTime, InPhase
from cutproof.harness.reference_engine.orchestrator.jobs import Jobs
from cutproof.harness.reference_engine.orchestrator.layout import COORDINATOR, GIVEN_UP_US
from cutproof.harness.reference_engine.orchestrator.process_faults import BELIEVED_US, Disturbances
from cutproof.harness.reference_engine.orchestrator.steering import Steering
from cutproof.harness.scenario.model import Perturbation, Resume, Savepoint, Scenario, StopWithSavepoint
from cutproof.reference_impl.core.state import TaskState
from cutproof.reference_impl.processes import entries as e
from cutproof.reference_impl.processes import frames as f
from cutproof.reference_impl.processes.files import DiskFiles
from unit.harness.scenarios import chain
from unit.harness.stage import FakeMember, Stage, job_facts, planned

EVER = AtTime(at_us=1_000_000)


class Run:
    """A scenario on a stage, steered; `replaced` are who died, and how long none takes their place."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.replaced: list[tuple[str, int, int]] = []
        self.environment = Disturbances(
            stage.context, lambda member, down_us: self.replaced.append((member.name, member.incarnation, down_us))
        )
        self.jobs = Jobs(stage.context, stage.scenario, lambda: stage.processes.current(COORDINATOR))  # type: ignore[arg-type, return-value]
        self.steering = Steering(stage.context, stage.scenario, self.environment, self.jobs)
        stage.comes_up()
        self.jobs.submit()
        self.steering.set_out()

    @property
    def fired(self) -> list[tuple[int, int | None]]:
        return [(entry.fault, entry.attempt) for entry in self.stage.entries(e.FaultFired)]

    @property
    def ended_names(self) -> list[str]:
        return [member.name for member in self.stage.processes.members if member.has_ended]

    def reaches(self, point: str, task: str | None = None, side: str = "after") -> None:
        self.steering.triggers.reached(point, task, side)


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Run]:
    def make(*faults: plan.AnyFault, commands: Any = (), deviations: Any = (), nodes: int = 2) -> Run:
        scenario: Scenario = planned(chain(), *faults, nodes=nodes)
        scenario = msgspec.structs.replace(scenario, commands=commands, deviations=deviations)
        return Run(Stage(monkeypatch, tmp_path, scenario))

    return make


def kill(trigger: plan.AnyTrigger, task: str = "count-1") -> plan.KillTask:
    return plan.KillTask(trigger=trigger, task=task)


# -- triggers --------------------------------------------------------------------------------------------------------


def test_a_time_counts_from_the_first_job_in_the_scenarios_microseconds(begin: Callable[..., Run]) -> None:
    run = begin(kill(AtTime(at_us=400)))
    run.stage.pass_virtual(399)
    assert run.fired == []
    run.stage.pass_virtual(1)
    assert run.fired == [(0, 1)]
    assert run.ended_names == ["count-1"]


def test_a_point_is_counted_over_all_processes_and_by_its_side(begin: Callable[..., Run]) -> None:
    run = begin(
        kill(AtPoint(point="ack-sent", occurrence=3)),
        kill(AtPoint(point="ack-sent", occurrence=2, task="map-0", side="before"), "map-0"),
    )
    for task in ("map-0", "map-1"):
        run.reaches("ack-sent", task)
        run.reaches("ack-sent", task, "before")
    assert run.fired == []
    run.reaches("ack-sent", "sink-0")
    assert run.ended_names == ["count-1"]
    run.reaches("ack-sent", "map-0", "before")
    assert run.ended_names == ["map-0", "count-1"]


def test_a_phase_sets_a_fault_off_some_time_after_it_was_entered(begin: Callable[..., Run]) -> None:
    run = begin(kill(InPhase(phase="aligning", occurrence=2, after_us=30)))
    for _ in range(2):
        run.steering.triggers.entered("aligning")
        run.stage.pass_virtual(29)
    assert run.ended_names == []
    run.stage.pass_virtual(1)
    assert run.ended_names == ["count-1"]


def test_what_did_not_come_is_reported_as_unapplied(begin: Callable[..., Run]) -> None:
    run = begin(
        kill(AtTime(at_us=5)),
        kill(AtPoint(point="ack-sent", occurrence=9)),
        commands=(Savepoint(trigger=EVER), Resume(trigger=EVER)),
        deviations=(Perturbation(what="step map-0", occurrence=2, by_us=9),),
    )
    run.stage.pass_virtual(5)
    assert run.steering.unapplied() == [
        "fault 1: kill-task",
        "command 0: savepoint",
        "step map-0, occurrence 2",
        "resume",
    ]


def test_when_the_job_is_over_no_fault_is_set_off(begin: Callable[..., Run]) -> None:
    run = begin(kill(AtTime(at_us=5)), commands=(Savepoint(trigger=AtTime(at_us=6)),))
    run.jobs.ended(f.Ended(0, 1, "finished", ()))
    run.stage.pass_virtual(10)
    assert run.fired == []
    assert run.stage.entries(e.CommandIssued) == []
    assert run.steering.unapplied() == ["fault 0: kill-task", "command 0: savepoint"]


def test_a_command_goes_to_the_coordinator_once_the_step_is_done(begin: Callable[..., Run]) -> None:
    run = begin(commands=(StopWithSavepoint(trigger=AtPoint(point="ack-sent", occurrence=1), drain=True),))
    run.reaches("ack-sent", "map-0")
    assert run.stage.coordinator.received(f.Issue) == []
    run.stage.pass_us(0)
    (issue,) = run.stage.coordinator.received(f.Issue)
    assert (issue.command, issue.kind, issue.drain) == (0, "stop-with-savepoint", True)


def test_a_command_that_no_coordinator_receives_is_answered(begin: Callable[..., Run]) -> None:
    run = begin(commands=(Savepoint(trigger=AtTime(at_us=5)),))
    run.stage.context.facts.coordinator(False)
    run.stage.pass_virtual(5)
    assert run.stage.coordinator.received(f.Issue) == []
    (returned,) = run.stage.entries(e.CommandReturned)
    assert (returned.command, returned.checkpoint, returned.error) == (0, None, "no coordinator answers")


def test_a_process_that_starts_later_receives_what_remains_of_each_perturbation(begin: Callable[..., Run]) -> None:
    run = begin(
        deviations=(
            Perturbation(what="step map-0", occurrence=3, by_us=9),
            Perturbation(what="step map-0", occurrence=1, by_us=7),
        )
    )
    assert run.steering.deviations() == (("step map-0", 3, 9), ("step map-0", 1, 7))
    run.steering.happened("step map-0")
    assert run.steering.deviations() == (("step map-0", 2, 9),)


# -- killing and stopping ----------------------------------------------------------------------------------------------


def test_a_task_that_does_not_live_cannot_be_killed(begin: Callable[..., Run]) -> None:
    run = begin(kill(AtTime(at_us=1)), kill(AtTime(at_us=1), "nobody-0"))
    run.stage.member("count-1").attempts.clear()
    run.stage.pass_virtual(2)
    assert (run.fired, run.ended_names, run.replaced) == ([], [], [])
    assert run.steering.unapplied() == ["fault 0: kill-task", "fault 1: kill-task"]


def test_a_death_is_reported_with_a_stamp_from_before_it(begin: Callable[..., Run]) -> None:
    run = begin(kill(AtTime(at_us=1)))
    kill_now, killed = run.stage.processes.kill, []

    def watched(members: Sequence[FakeMember]) -> list[FakeMember]:
        killed.append(run.stage.context.clock.tick())
        return kill_now(members)

    run.stage.processes.kill = watched  # type: ignore[method-assign]
    run.stage.pass_virtual(1)
    fired, died = run.stage.entries(e.FaultFired)[0], run.stage.entries(e.Died)[0]
    assert fired.stamp < died.stamp < killed[0]
    assert (died.process, died.incarnation, died.reason, died.fault) == ("count-1", 0, "it was killed", 0)
    assert run.replaced == [("count-1", 0, 0)]


@pytest.mark.parametrize(
    "fault",
    [
        kill(AtTime(at_us=3)),
        plan.KillNode(trigger=AtTime(at_us=3), node=1),
        plan.KillCoordinator(trigger=AtTime(at_us=3), down_us=200),
        plan.PauseTask(trigger=AtTime(at_us=3), task="map-0", for_us=100),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_who_had_just_ended_by_itself_was_not_hit(begin: Callable[..., Run], fault: plan.AnyFault) -> None:
    run = begin(fault)
    run.stage.processes.kill = lambda members: []  # type: ignore[method-assign]
    run.stage.processes.stop = lambda member: False  # type: ignore[method-assign]
    run.stage.pass_virtual(500)
    assert (run.fired, run.replaced, run.stage.context.healing) == ([], [], 0)
    assert run.stage.entries(e.Died) == [], "its end is told as its own"
    assert run.stage.entries(e.Stopped) == []
    assert run.steering.unapplied() == [f"fault 0: {plan.kind_of(fault)}"]


def test_a_node_dies_with_all_that_lives_there(begin: Callable[..., Run]) -> None:
    """Its tasks are apart here: some other fault kills one of them."""
    run = begin(plan.KillNode(trigger=AtTime(at_us=3), node=1), kill(EVER))
    run.stage.processes.replace("map-1")  # a zombie of it is still there
    run.stage.pass_virtual(3)
    assert run.ended_names == ["source-1", "map-1", "count-1", "sink-1", "map-1"]
    assert run.fired == [(0, 1)]
    assert [entry.incarnation for entry in run.stage.entries(e.Died) if entry.process == "map-1"] == [0, 1]


def test_a_node_that_is_one_process_dies_as_one(begin: Callable[..., Run]) -> None:
    run = begin(plan.KillNode(trigger=AtTime(at_us=3), node=1))
    run.stage.pass_virtual(3)
    assert run.ended_names == ["node-1"]
    assert [(entry.process, entry.fault) for entry in run.stage.entries(e.Died)] == [("node-1", 0)]
    assert run.replaced == [("node-1", 0, 0)]


def test_a_node_without_a_live_attempt_is_not_hit(begin: Callable[..., Run]) -> None:
    run = begin(plan.KillNode(trigger=AtTime(at_us=3), node=1), plan.PauseNode(trigger=EVER, node=0, for_us=9))
    run.stage.member("node-1").attempts.clear()
    run.stage.pass_virtual(3)
    assert (run.fired, run.ended_names) == ([], [])


def test_the_coordinator_is_down_for_as_long_as_requested(begin: Callable[..., Run]) -> None:
    run = begin(plan.KillCoordinator(trigger=AtTime(at_us=3), down_us=200))
    run.stage.pass_virtual(3)
    assert run.replaced == [(COORDINATOR, 0, 200 * 20)]
    assert run.stage.context.healing == 1
    run.stage.pass_virtual(200)
    assert run.stage.context.healing == 0
    assert [entry.fault for entry in run.stage.entries(e.FaultHealed)] == [0]


@pytest.mark.parametrize("together", [True, False])
def test_a_node_stands_still_and_goes_on(begin: Callable[..., Run], together: bool) -> None:
    pause = plan.PauseNode(trigger=AtTime(at_us=3), node=0, for_us=100)
    run = begin(pause, *(() if together else (kill(EVER),)))
    members = [run.stage.member(name) for name in (["node-0"] if together else run.stage.placement.on_node(0))]
    run.stage.pass_virtual(3)
    assert [member.stops for member in members] == [1] * len(members)
    assert [entry.process for entry in run.stage.entries(e.Stopped)] == [member.name for member in members]
    run.stage.pass_virtual(99)
    assert [member.stops for member in members] == [1] * len(members)
    run.stage.pass_virtual(1)
    assert [member.stops for member in members] == [0] * len(members)
    assert len(run.stage.entries(e.FaultHealed)) == 1


def test_who_stands_still_is_not_stopped_again(begin: Callable[..., Run]) -> None:
    run = begin(
        plan.PauseTask(trigger=AtTime(at_us=3), task="map-0", for_us=100),
        plan.PauseTask(trigger=AtTime(at_us=4), task="map-0", for_us=900),
    )
    run.stage.pass_virtual(5)
    assert (run.fired, run.stage.member("map-0").stops) == ([(0, 1)], 1)


def test_a_pause_is_given_up_on_here_where_it_would_be_in_the_simulator(begin: Callable[..., Run]) -> None:
    run = begin(
        plan.PauseTask(trigger=AtTime(at_us=3), task="map-0", for_us=BELIEVED_US),
        plan.PauseTask(trigger=AtTime(at_us=3), task="map-1", for_us=BELIEVED_US + 1),
    )
    short, long = run.stage.member("map-0"), run.stage.member("map-1")
    run.stage.pass_virtual(3)
    assert (short.stops, long.stops) == (1, 1)
    run.stage.pass_us(GIVEN_UP_US - 1)
    assert short.stops == 0
    run.stage.pass_us(1)
    assert long.stops == 1
    run.stage.pass_us(GIVEN_UP_US)
    assert long.stops == 0


def test_a_loss_of_power_waits_for_a_write_that_is_not_synced(begin: Callable[..., Run]) -> None:
    run = begin(plan.LoseUnsynced(trigger=AtTime(at_us=3), node=0), plan.KillNode(trigger=EVER, node=1))
    run.stage.pass_virtual(50)
    assert (run.fired, run.ended_names) == ([], []), "nothing is being written"
    files = DiskFiles(run.stage.config.store)
    elsewhere = files.begin("job-1/chk-1/map-1-1", TaskState())  # type: ignore[arg-type]
    run.stage.pass_virtual(50)
    assert (run.fired, run.ended_names) == ([], []), "only on another node"
    files.begin("job-1/chk-1/count-0-1", TaskState())  # type: ignore[arg-type]
    run.stage.pass_virtual(50)
    assert (run.fired, run.ended_names) == ([(0, 1)], ["node-0"])
    assert [path.name for path in files.unsynced()] == [elsewhere.temporary.name], "what the other node wrote stays"
    assert run.stage.entries(e.Died)[0].reason == "its node lost power"


def test_a_loss_of_power_that_met_no_write_is_not_waited_for_in_eternity(begin: Callable[..., Run]) -> None:
    run = begin(plan.LoseUnsynced(trigger=AtTime(at_us=3), node=0))
    run.stage.pass_virtual(100_000)
    assert run.stage.context.due == 0
    assert all(member.stops == 0 for member in run.stage.processes.members)


# -- faults that wait --------------------------------------------------------------------------------------------------


def armed(member: FakeMember) -> list[tuple[Any, ...]]:
    """The orders that it got, without their stamps."""
    kinds = (f.Arm, f.Disarm, f.Meddle, f.RaiseException)
    return [
        (type(frame).__name__, *[getattr(frame, name) for name in frame.__struct_fields__[1:]])
        for frame in member.frames
        if isinstance(frame, kinds)
    ]


NOW = AtTime(at_us=1)
NODE = plan.KillNode(trigger=EVER, node=0)


@pytest.mark.parametrize(
    ("fault", "homes", "order"),
    [
        (plan.FailWrite(trigger=NOW, task="map-1"), {"map-1": "node-1"}, ("Arm", "fail-write", "map-1", 0, 1)),
        (plan.FailRead(trigger=NOW, task=None), {COORDINATOR: COORDINATOR}, ("Arm", "fail-read", None, 0, 1)),
        (
            plan.FailCommit(trigger=NOW, task=None, how="refused", times=2),
            {"sink-0": "node-0", "sink-1": "node-1", COORDINATOR: COORDINATOR},
            ("Arm", "refused", None, 0, 2),
        ),
        (
            plan.RaiseInOperator(trigger=NOW, task="count-0"),
            {"count-0": "node-0"},
            ("RaiseException", "count-0", 0, False),
        ),
        (
            plan.LateMessage(trigger=NOW, message="ack", task="map-0", by_us=7),
            {COORDINATOR: COORDINATOR},
            ("Meddle", "late", "ack", "map-0", 0, 7),
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, plan.Fault) else "",
)
@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_a_fault_waits_where_its_moment_may_come(
    begin: Callable[..., Run], fault: plan.AnyFault, homes: dict[str, str], order: tuple[Any, ...], together: bool
) -> None:
    run = begin(fault, *([NODE] if together else []))
    run.stage.pass_virtual(1)
    where = {member.name: armed(member) for member in run.stage.processes.members if armed(member)}
    assert where == {homes[name] if together else name: [order] for name in homes}
    assert run.fired == [], "it has not met anything"


def test_two_sinks_of_one_node_are_armed_as_one(begin: Callable[..., Run]) -> None:
    run = begin(plan.FailCommit(trigger=NOW, task=None, how="refused", times=1), NODE, nodes=1)
    run.stage.pass_virtual(1)
    assert armed(run.stage.member("node-0")) == [("Arm", "refused", None, 0, 1)]


def test_who_replaces_a_process_receives_it_again_until_the_fault_has_fired(begin: Callable[..., Run]) -> None:
    run = begin(plan.FailCommit(trigger=NOW, task="sink-0", how="refused", times=2))
    run.stage.pass_virtual(1)
    for remaining in (2, 1):
        member = run.stage.processes.replace("sink-0")
        run.environment.orders.order_again(member)  # type: ignore[arg-type]
        assert armed(member) == [("Arm", "refused", "sink-0", 0, remaining)]
        run.stage.context.fired(0, "the commit is refused", 1)
    last = run.stage.processes.replace("sink-0")
    run.environment.orders.order_again(last)  # type: ignore[arg-type]
    assert armed(last) == []


def test_what_one_process_has_met_no_other_meets(begin: Callable[..., Run]) -> None:
    run = begin(plan.FailCommit(trigger=NOW, task=None, how="refused", times=2))
    run.stage.pass_virtual(1)
    met = run.stage.member("sink-1")
    run.environment.orders.met_in(0, met)  # type: ignore[arg-type]
    run.stage.context.fired(0, "the commit is refused", 1)
    assert armed(met) == [("Arm", "refused", None, 0, 2)]
    assert armed(run.stage.member("sink-0"))[-1] == ("Disarm", 0)
    assert armed(run.stage.coordinator)[-1] == ("Disarm", 0)
    for name, again in (("sink-0", []), ("sink-1", [("Arm", "refused", None, 0, 1)])):
        newer = run.stage.processes.replace(name)
        run.environment.orders.order_again(newer)  # type: ignore[arg-type]
        assert armed(newer) == again


def test_an_injected_exception_that_is_for_ever_is_sent_again_for_ever(begin: Callable[..., Run]) -> None:
    run = begin(plan.RaiseInOperator(trigger=NOW, task="count-0", always=True))
    run.stage.pass_virtual(1)
    for _ in range(3):
        run.stage.context.fired(0, "it raises", 1)
    newer = run.stage.processes.replace("count-0")
    run.environment.orders.order_again(newer)  # type: ignore[arg-type]
    assert armed(newer) == [("RaiseException", "count-0", 0, True)]


def test_only_operators_can_be_made_to_raise(begin: Callable[..., Run]) -> None:
    run = begin(plan.RaiseInOperator(trigger=NOW, task="sink-0"))
    run.stage.pass_virtual(1)
    assert run.steering.unapplied() == ["fault 0: raise-in-operator"]
    assert armed(run.stage.member("sink-0")) == []


def test_a_fault_is_reported_in_the_phase_it_fired_in(begin: Callable[..., Run]) -> None:
    run = begin(kill(NOW))
    run.stage.context.facts.job(job_facts(under_way=True))
    run.stage.pass_virtual(1)
    assert [entry.phase for entry in run.stage.entries(e.FaultFired)] == ["checkpointing"]
