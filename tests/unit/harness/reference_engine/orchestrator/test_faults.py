"""What sets faults off in a run of processes, who suffers them, and in whom they wait."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.plan import AtPoint, AtTime, InPhase
from cutproof.harness.reference_engine.orchestrator.injectors.process_faults import BELIEVED_US
from cutproof.harness.reference_engine.orchestrator.layout import COORDINATOR, GIVEN_UP_US
from cutproof.harness.scenario.model import Perturbation, Resume, Savepoint, Scenario, StopWithSavepoint
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.events import CommandKind
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.processes.disk.files import DiskFiles
from cutproof.reference_impl.processes.network import frames as f
from unit.harness.puppets import MACHINE, Puppet, Run, Script, now, played_by_puppets
from unit.harness.scenarios import chain
from unit.harness.stage import job_facts, planned, task_facts

__all__ = ["played_by_puppets"]

EVER = AtTime(at_us=1_000_000)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def make(*faults: plan.AnyFault, commands: Any = (), deviations: Any = (), nodes: int = 2) -> Run:
        scenario: Scenario = planned(chain(), *faults, nodes=nodes)
        scenario = msgspec.structs.replace(scenario, commands=commands, deviations=deviations)
        runs.append(Run(tmp_path, scenario))
        return runs[-1]

    yield make
    for run in runs:
        run.close()


def kill(trigger: plan.AnyTrigger, task: str = "count-1") -> plan.KillTask:
    return plan.KillTask(trigger=trigger, task=task)


def waits(us: int) -> Callable[[Run], Script]:
    """A script in which nothing happens for a time."""
    return lambda run: run.passes(us)


# -- triggers --------------------------------------------------------------------------------------------------------


def test_a_time_counts_from_the_first_job_in_the_scenarios_microseconds(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(399)
        assert run.fired == []
        yield from run.passes(1)
        assert run.fired == [(0, 1)]
        assert run.killed == ["count-1"]

    begin(kill(AtTime(at_us=400))).whole(script)


def test_a_point_is_counted_over_all_processes_and_by_its_side(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        for task in ("map-0", "map-1"):
            yield from run.reaches("ack-sent", task)
            yield from run.reaches("ack-sent", task, "before")
        assert run.fired == []
        yield from run.reaches("ack-sent", "sink-0")
        assert run.killed == ["count-1"]
        yield from run.reaches("ack-sent", "map-0", "before")
        assert run.killed == ["map-0", "count-1"]

    begin(
        kill(AtPoint(point="ack-sent", occurrence=3)),
        kill(AtPoint(point="ack-sent", occurrence=2, task="map-0", side="before"), "map-0"),
    ).whole(script)


def test_a_phase_sets_a_fault_off_some_time_after_it_was_entered(begin: Callable[..., Run]) -> None:
    def aligns(run: Run, is_aligning: bool) -> Script:
        run.home("sink-0").say(msgspec.structs.replace(task_facts("sink-0", aligning=is_aligning), stamp=now()))
        yield from run.settles()

    def script(run: Run) -> Script:
        yield from aligns(run, True)
        yield from run.passes(50)
        yield from aligns(run, False)
        yield from aligns(run, True)
        yield from run.passes(29)
        assert run.killed == []
        yield from run.passes(1)
        assert run.killed == ["count-1"]

    begin(kill(InPhase(phase="aligning", occurrence=2, after_us=30))).whole(script)


def test_what_did_not_come_is_reported_as_unapplied(begin: Callable[..., Run]) -> None:
    run = begin(
        kill(AtTime(at_us=5)),
        kill(AtPoint(point="ack-sent", occurrence=9)),
        commands=(Savepoint(trigger=EVER), Resume(trigger=EVER)),
        deviations=(Perturbation(what="step map-0", occurrence=2, by_us=9),),
    )
    assert run.whole(waits(5)).unapplied == [
        "fault 1: kill-task",
        "command 0: savepoint",
        "step map-0, occurrence 2",
        "resume",
    ]


def test_when_the_job_is_over_no_fault_is_set_off(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        run.coordinator.say(f.Ended(now(), 1, Status.FINISHED, ()))
        yield from run.settles()
        yield from run.passes(100)

    run = begin(kill(AtTime(at_us=50)), commands=(Savepoint(trigger=AtTime(at_us=60)),))
    evidence = run.whole(script)
    assert run.fired == []
    assert run.entries(o.CommandIssued) == []
    assert evidence.unapplied == ["fault 0: kill-task", "command 0: savepoint"]


def test_a_command_goes_to_the_coordinator_once_the_step_is_done(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.reaches("ack-sent", "map-0")
        (issue,) = run.coordinator.received(f.Issue)
        assert (issue.command, issue.kind, issue.drain) == (0, CommandKind.STOP, True)
        (go,) = run.home("map-0").received(f.Go)
        assert go.stamp < issue.stamp

    begin(commands=(StopWithSavepoint(trigger=AtPoint(point="ack-sent", occurrence=1), drain=True),)).whole(script)


def test_a_command_that_no_coordinator_receives_is_answered(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(50)
        assert run.coordinator.has_ended
        (returned,) = run.entries(o.CommandReturned)
        assert (returned.command, returned.checkpoint, returned.error) == (0, None, "no coordinator answers")
        yield from run.until(lambda: not run.coordinator.has_ended)
        assert run.coordinator.received(f.Issue) == []

    down = plan.KillCoordinator(trigger=AtTime(at_us=40), down_us=500)
    begin(down, commands=(Savepoint(trigger=AtTime(at_us=50)),)).whole(script)


def test_a_process_that_starts_later_receives_what_remains_of_each_perturbation(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        assert run.newest("map-1").perturbations == (("step map-0", 3, 9), ("step map-0", 1, 7))
        run.home("map-0").say(f.Happened(now(), "step map-0"))
        yield from run.settles()
        run.launcher.ends(run.newest("map-1"), code=70)
        yield from run.settles()
        assert run.newest("map-1").perturbations == (("step map-0", 2, 9),)

    deviations = (
        Perturbation(what="step map-0", occurrence=3, by_us=9),
        Perturbation(what="step map-0", occurrence=1, by_us=7),
    )
    assert begin(deviations=deviations).whole(script).unapplied == ["step map-0, occurrence 3"]


# -- killing and stopping ----------------------------------------------------------------------------------------------


def test_a_task_that_does_not_live_cannot_be_killed(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        run.home("count-1").down()
        yield from run.settles()
        yield from run.passes(20)

    run = begin(kill(AtTime(at_us=10)), kill(AtTime(at_us=10), "nobody-0"))
    assert run.whole(script).unapplied == ["fault 0: kill-task", "fault 1: kill-task"]
    assert (run.fired, run.killed, len(run.named("count-1"))) == ([], [], 1)


def test_a_death_is_reported_with_a_stamp_from_before_it(begin: Callable[..., Run]) -> None:
    run, killed = begin(kill(AtTime(at_us=10))), []

    def takes_long() -> None:
        killed.append(now() + 1_000)
        MACHINE.now_us += 2_000

    run.launcher.on_kill = takes_long
    run.whole(waits(10))
    fired, died = run.stamps(o.FaultFired)[0], run.stamps(o.Died)[0]
    assert fired < died < killed[0]
    assert run.deaths == [("count-1", 0, "it was killed", 0)]
    assert [puppet.incarnation for puppet in run.named("count-1")] == [0, 1]


@pytest.mark.parametrize(
    ("fault", "victims"),
    [
        (kill(AtTime(at_us=30)), ["count-1"]),
        (plan.KillNode(trigger=AtTime(at_us=30), node=1), ["node-1"]),
        (plan.KillCoordinator(trigger=AtTime(at_us=30), down_us=200), [COORDINATOR]),
        (plan.PauseTask(trigger=AtTime(at_us=30), task="map-0", for_us=100), ["map-0"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, plan.Fault) else "",
)
def test_who_had_just_ended_by_itself_was_not_hit(
    begin: Callable[..., Run], fault: plan.AnyFault, victims: list[str]
) -> None:
    def script(run: Run) -> Script:
        for name in victims:
            run.launcher.ends(run.newest(name), code=70, last_line="KeyError: 1", is_noticed=False)
        yield from run.passes(500)
        assert (run.fired, run.healed, run.deaths) == ([], [], [])
        run.launcher.notices()
        yield from run.until(lambda: len(run.named(victims[0])) == 2)

    run = begin(fault)
    evidence = run.whole(script)
    assert run.deaths == [(name, 0, "its process ended with exit code 70: KeyError: 1", None) for name in victims]
    assert (run.fired, evidence.lasting, run.entries(o.Stopped)) == ([], [], [])
    assert evidence.unapplied == [f"fault 0: {plan.kind_of(fault)}"]


def test_a_node_dies_with_all_that_lives_there(begin: Callable[..., Run]) -> None:
    """Its tasks are apart here: some other fault kills one of them."""

    def script(run: Run) -> Script:
        run.coordinator.say(f.Lost(now(), "map-1", 0))  # a zombie of it is still there
        yield from run.until(lambda: len(run.named("map-1")) == 2)
        run.newest("map-1").up(2)
        yield from run.settles()
        yield from run.passes(30)
        assert run.killed == ["source-1", "map-1", "count-1", "sink-1", "map-1"]

    run = begin(plan.KillNode(trigger=AtTime(at_us=30), node=1), kill(EVER))
    run.whole(script)
    assert run.fired == [(0, 2)]
    assert [incarnation for name, incarnation, *_ in run.deaths if name == "map-1"] == [0, 1]


@pytest.mark.parametrize("survivors_run", [True, False])
def test_of_a_node_only_those_are_reported_as_killed_that_were(begin: Callable[..., Run], survivors_run: bool) -> None:
    """The first had just ended by itself."""
    others = ["map-1", "count-1", "sink-1"]

    def script(run: Run) -> Script:
        for name in others if not survivors_run else ():
            run.newest(name).down()
        yield from run.settles()
        run.launcher.ends(run.newest("source-1"), code=70, is_noticed=False)
        yield from run.passes(30)
        assert [(process, fault) for process, _, _, fault in run.deaths] == [(name, 0) for name in others]
        run.launcher.notices()
        yield from run.settles()
        assert [puppet.name for puppet in run.launcher.puppets if puppet.incarnation] == [*others, "source-1"]

    run = begin(plan.KillNode(trigger=AtTime(at_us=30), node=1), kill(EVER, "map-0"))
    run.whole(script)
    assert run.fired == ([(0, 1)] if survivors_run else [])


def test_a_node_without_a_live_attempt_is_not_hit(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        run.newest("node-1").down()
        yield from run.settles()
        yield from run.passes(30)

    run = begin(plan.KillNode(trigger=AtTime(at_us=30), node=1), plan.PauseNode(trigger=EVER, node=0, for_us=9))
    run.whole(script)
    assert (run.fired, run.killed) == ([], [])


def test_the_coordinator_is_down_for_as_long_as_requested(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(30)
        assert run.killed == [COORDINATOR]
        yield from run.passes(199)
        assert (len(run.named(COORDINATOR)), run.healed) == (1, [])
        yield from run.passes(1)
        assert (len(run.named(COORDINATOR)), run.healed) == (2, [0])

    begin(plan.KillCoordinator(trigger=AtTime(at_us=30), down_us=200)).whole(script)


@pytest.mark.parametrize("together", [True, False])
def test_a_node_stands_still_and_goes_on(begin: Callable[..., Run], together: bool) -> None:
    def script(run: Run) -> Script:
        members = [run.newest(name) for name in (["node-0"] if together else run.placement.on_node(0))]
        yield from run.passes(30)
        assert [entry.process for entry in run.entries(o.Stopped)] == [member.name for member in members]
        yield from run.passes(99)
        assert all(member.is_stopped for member in members)
        yield from run.passes(1)
        assert [member.signals for member in members] == [[signal.SIGSTOP, signal.SIGCONT]] * len(members)
        assert run.healed == [0]

    pause = plan.PauseNode(trigger=AtTime(at_us=30), node=0, for_us=100)
    begin(pause, *(() if together else (kill(EVER),))).whole(script)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (
            plan.PauseTask(trigger=AtTime(at_us=30), task="map-0", for_us=100),
            plan.PauseTask(trigger=AtTime(at_us=40), task="map-0", for_us=900),
        ),
        (
            plan.PauseNode(trigger=AtTime(at_us=30), node=0, for_us=100),
            plan.PauseNode(trigger=AtTime(at_us=40), node=0, for_us=900),
        ),
    ],
    ids=["task", "node"],
)
def test_who_stands_still_is_not_stopped_again(
    begin: Callable[..., Run], first: plan.AnyFault, again: plan.AnyFault
) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(50)
        assert (run.fired, run.home("map-0").signals) == ([(0, 1)], [signal.SIGSTOP])
        yield from run.passes(100)
        assert run.home("map-0").signals == [signal.SIGSTOP, signal.SIGCONT]

    begin(first, again).whole(script)


def test_a_pause_is_given_up_on_here_where_it_would_be_in_the_simulator(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        short, long = run.newest("map-0"), run.newest("map-1")
        yield from run.passes(30)
        assert (short.is_stopped, long.is_stopped) == (True, True)
        yield from run.passes_us(GIVEN_UP_US - 1)
        assert not short.is_stopped
        yield from run.passes_us(1)
        assert long.is_stopped
        yield from run.passes_us(GIVEN_UP_US)
        assert not long.is_stopped

    begin(
        plan.PauseTask(trigger=AtTime(at_us=30), task="map-0", for_us=BELIEVED_US),
        plan.PauseTask(trigger=AtTime(at_us=30), task="map-1", for_us=BELIEVED_US + 1),
    ).whole(script)


def test_a_loss_of_power_waits_for_a_write_that_is_not_synced(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        files = DiskFiles(run.config.store)
        yield from run.passes(80)
        assert (run.fired, run.killed) == ([], []), "nothing is being written"
        elsewhere = files.begin("job-1/chk-1/map-1-1", TaskState())  # type: ignore[arg-type]
        yield from run.passes(50)
        assert (run.fired, run.killed) == ([], []), "only on another node"
        files.begin("job-1/chk-1/count-0-1", TaskState())  # type: ignore[arg-type]
        yield from run.passes(50)
        assert (run.fired, run.killed) == ([(0, 1)], ["node-0"])
        assert [path.name for path in files.unsynced()] == [elsewhere.temporary.name], "what the other node wrote stays"
        assert run.deaths == [("node-0", 0, "its node lost power", 0)]

    begin(plan.LoseUnsynced(trigger=AtTime(at_us=30), node=0), plan.KillNode(trigger=EVER, node=1)).whole(script)


def test_a_loss_of_power_that_met_no_write_is_not_waited_for_in_eternity(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(20_000)
        DiskFiles(run.config.store).begin("job-1/chk-1/count-0-1", TaskState())  # type: ignore[arg-type]
        yield from run.passes(1_000)

    run = begin(plan.LoseUnsynced(trigger=AtTime(at_us=30), node=0))
    assert run.whole(script).quiet
    assert (run.fired, run.killed) == ([], [])
    for puppet in run.launcher.puppets:
        assert puppet.signals[-1:] == [signal.SIGSTOP], "as at the end of each run"


# -- faults that wait --------------------------------------------------------------------------------------------------


def armed(puppet: Puppet) -> list[tuple[Any, ...]]:
    """The orders that it got, without their stamps."""
    kinds = (f.Arm, f.Disarm, f.Meddle, f.RaiseException)
    return [
        (type(frame).__name__, *[getattr(frame, name) for name in frame.__struct_fields__[1:]])
        for frame in puppet.received(f.Frame)
        if isinstance(frame, kinds)
    ]


def successor(run: Run, name: str) -> Script:
    """A process ends by itself, and another takes its place."""
    before = len(run.named(name))
    run.launcher.ends(run.newest(name), code=70)
    yield from run.until(lambda: len(run.named(name)) > before)
    run.newest(name).up(before + 1)
    yield from run.settles()


NOW = AtTime(at_us=10)
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
    def script(run: Run) -> Script:
        yield from run.passes(10)
        where = {puppet.name: armed(puppet) for puppet in run.launcher.puppets if armed(puppet)}
        assert where == {homes[name] if together else name: [order] for name in homes}
        assert run.fired == [], "it has not met anything"

    begin(fault, *([NODE] if together else [])).whole(script)


def test_two_sinks_of_one_node_are_armed_as_one(begin: Callable[..., Run]) -> None:
    run = begin(plan.FailCommit(trigger=NOW, task=None, how="refused", times=1), NODE, nodes=1)
    run.whole(waits(10))
    assert armed(run.newest("node-0")) == [("Arm", "refused", None, 0, 1)]


def test_who_replaces_a_process_receives_it_again_until_the_fault_has_fired(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(10)
        for remaining in (2, 1):
            yield from successor(run, "sink-0")
            assert armed(run.newest("sink-0")) == [("Arm", "refused", "sink-0", 0, remaining)]
            yield from run.fires(0, "sink-0", "the commit is refused")
        yield from successor(run, "sink-0")
        assert armed(run.newest("sink-0")) == []

    begin(plan.FailCommit(trigger=NOW, task="sink-0", how="refused", times=2)).whole(script)


def test_what_one_process_has_met_no_other_meets(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(10)
        yield from run.fires(0, "sink-1", "the commit is refused")
        assert armed(run.newest("sink-1")) == [("Arm", "refused", None, 0, 2)]
        assert armed(run.newest("sink-0"))[-1] == ("Disarm", 0)
        assert armed(run.coordinator)[-1] == ("Disarm", 0)
        for name, again in (("sink-0", []), ("sink-1", [("Arm", "refused", None, 0, 1)])):
            yield from successor(run, name)
            assert armed(run.newest(name)) == again

    begin(plan.FailCommit(trigger=NOW, task=None, how="refused", times=2)).whole(script)


def test_an_injected_exception_that_is_for_ever_is_sent_again_for_ever(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(10)
        for _ in range(3):
            yield from run.fires(0, "count-0", "it raises")
        yield from successor(run, "count-0")
        assert armed(run.newest("count-0")) == [("RaiseException", "count-0", 0, True)]

    begin(plan.RaiseInOperator(trigger=NOW, task="count-0", always=True)).whole(script)


def test_only_operators_can_be_made_to_raise(begin: Callable[..., Run]) -> None:
    run = begin(plan.RaiseInOperator(trigger=NOW, task="sink-0"))
    assert run.whole(waits(10)).unapplied == ["fault 0: raise-in-operator"]
    assert armed(run.newest("sink-0")) == []


def test_a_fault_is_reported_in_the_phase_it_fired_in(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        run.coordinator.say(msgspec.structs.replace(job_facts(under_way=True), stamp=now()))
        yield from run.settles()
        yield from run.passes(10)

    run = begin(kill(NOW))
    run.whole(script)
    assert [entry.phase for entry in run.entries(o.FaultFired)] == ["checkpointing"]


@pytest.mark.parametrize("up", [("sink-0",), ("source-0", "count-0")])
def test_a_database_dies_at_the_first_row_of_a_sink_that_is_up(tmp_path: Path, up: tuple[str, ...]) -> None:
    """A sink that writes a row has come up before.  Whether the other sinks have reported yet does not matter."""
    is_hit = up == ("sink-0",)

    def script(run: Run) -> Script:
        yield from run.until(lambda: run.coordinator.received(f.Submit))
        for task in up:
            run.newest(task).up()
        yield from run.settles()
        yield from run.reaches("row-written", "sink-1")
        assert run.database.is_up, "another sink's row"
        yield from run.reaches("row-written", "sink-0")
        assert run.database.is_up is not is_hit
        yield from run.passes(6_000)
        assert run.database.is_up
        yield from run.finishes()

    fault = plan.KillDatabase(trigger=AtPoint(point="row-written", task="sink-0"), down_us=5_000)
    scenario = planned(chain(), fault, guarantee="at-least-once", sink="plain")
    run = Run(tmp_path, scenario, store="database")
    run.run(script)
    run.close()
    assert [entry.detail for entry in run.entries(o.FaultFired)] == ["the database is killed"] * is_hit
    assert [entry.began for entry in run.entries(o.Outage)] == [True, False] * is_hit
    assert run.healed == [0] * is_hit
