"""Every protocol point that a fault can aim at is reached, and whoever dies at one goes no further."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtTime, FailWrite, KillCoordinator, KillTask
from cutproof.faults.points import PHASES, POINTS
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Cancel, CopySnapshot, MoveSnapshot, Savepoint, Scenario, StopWithSavepoint
from cutproof.properties.invariants.judge import judge
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.ends import Status
from unit.simulated.worlds import attempts, fired, job, rows, run

EVERYTHING = job(
    120,
    width=2,
    splits=2,
    faults=(FailWrite(trigger=AtTime(at_us=2_000), task="op1-0"), KillTask(trigger=AtTime(at_us=7_000), task="op1-0")),
    commands=(
        Savepoint(trigger=AtTime(at_us=5_500)),
        CopySnapshot(trigger=AtTime(at_us=12_000)),
        MoveSnapshot(trigger=AtTime(at_us=12_000), snapshot="newest"),
    ),
    state_backend="lsm",
    memtable_entries=1,
    compaction_files=2,
)
OF_DIRECT_SINKS = frozenset({"row-written"})
OF_TRANSACTIONS = frozenset(name for name in POINTS if name.startswith(("transaction-", "commit-")))


class Listener:
    """Hears of every point and phase."""

    points = frozenset(POINTS)
    phases = True

    def __init__(self) -> None:
        self.arrived: list[tuple[str, str | None, str]] = []
        self.entered_phases: list[str] = []

    def reached(self, point: str, task: str | None, side: str) -> None:
        self.arrived.append((point, task, side))

    def entered(self, phase: str) -> None:
        self.entered_phases.append(phase)

    def job_ended(self, job: int, status: Status) -> None:
        """Nothing follows."""


def arrived(scenario: Scenario) -> Listener:
    """What a listener in the place of the scenario's own triggers hears; its faults go by times alone."""
    listener, driven = Listener(), Run(scenario, Parts(), False)
    assert not driven.triggers.points
    assert not driven.triggers.phases
    driven.world.direct(listener)
    driven.history()
    return listener


@pytest.mark.parametrize(("sink", "absent"), [("transactional", OF_DIRECT_SINKS), ("plain", OF_TRANSACTIONS)])
def test_every_point_is_reached(sink: str, absent: frozenset[str]) -> None:
    scenario = msgspec.structs.replace(EVERYTHING, engine=msgspec.structs.replace(EVERYTHING.engine, sink=sink))
    sides: dict[str, set[str]] = {}
    for point, _, side in arrived(scenario).arrived:
        sides.setdefault(point, set()).add(side)
    assert set(POINTS) - set(sides) == absent
    assert {point for point, seen in sides.items() if seen != {"before", "after"}} == set()


def test_a_checkpoints_steps_come_in_their_order() -> None:
    steps = [point for point, task, side in arrived(job()).arrived if side == "after" and task in (None, "op1-0")]
    leading = ["checkpoint-triggered", "checkpoint-acknowledged", "checkpoint-completed"]
    assert [step for step in steps if step in leading][:3] == leading
    own = ["barrier-received", "snapshot-taken", "snapshot-persisted", "ack-sent"]
    assert sorted(own, key=steps.index) == ["snapshot-taken", "barrier-received", "ack-sent", "snapshot-persisted"], (
        "what a step sets off lies within it: a snapshot is taken while the barrier is received"
    )


def test_every_phase_is_entered() -> None:
    assert set(arrived(EVERYTHING).entered_phases) == set(PHASES)


@pytest.mark.parametrize(
    ("faults", "commands"),
    [
        ((), ()),
        ((), (Cancel(trigger=AtTime(at_us=4_000)),)),
        ((), (StopWithSavepoint(trigger=AtTime(at_us=4_000)),)),
        ((KillTask(trigger=AtTime(at_us=4_000), task="op1-0"),), ()),
    ],
    ids=["finished", "cancelled", "stopped", "failed"],
)
def test_a_job_that_has_been_up_is_deployed_no_more_however_it_ends(
    faults: tuple[object, ...], commands: tuple[object, ...]
) -> None:
    entered = arrived(job(faults=faults, commands=commands, restart_attempts=0)).entered_phases
    assert entered.count("deploying") == 1
    assert (entered[0], entered[-1]) == ("deploying", "finishing")


# -- dying at a point --------------------------------------------------------------------------------------------

OF_TASKS = {
    "record-read": "source-0",
    "record-applied": "op1-0",
    "barrier-sent": "op0-0",
    "barrier-received": "op1-0",
    "snapshot-taken": "op1-0",
    "snapshot-persisted": "op1-0",
    "ack-sent": "op1-0",
    "end-of-data-sent": "source-0",
    "completion-notified": "sink-0",
    "task-running": "op1-0",
    "transaction-begun": "sink-0",
    "transaction-written": "sink-0",
    "transaction-pre-committed": "sink-0",
    "commit-requested": "sink-0",
    "commit-answered": "sink-0",
}
OF_COORDINATORS = (
    "task-deployed",
    "checkpoint-triggered",
    "ack-received",
    "checkpoint-acknowledged",
    "checkpoint-completed",
    "checkpoint-aborted",
    "savepoint-requested",
)


def survived(scenario: Scenario) -> tuple[int, int, bool, list[str]]:
    """How many faults fired, how many attempts there were, whether the expected rows came out, what is violated."""
    history = run(scenario)
    violated = judge(scenario.workload, scenario.topology, history).violated
    return len(fired(history)), attempts(history), Counter(history.committed) == rows(scenario), list(violated)


@pytest.mark.parametrize("point", OF_TASKS)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_task_can_die_on_either_side_of_a_point(point: str, side: str) -> None:
    task = OF_TASKS[point]
    die = KillTask(trigger=AtPoint(point=point, task=task, side=side), task=task)
    assert survived(job(faults=(die,))) == (1, 2, True, [])


@pytest.mark.parametrize("point", OF_COORDINATORS)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_coordinator_can_die_on_either_side_of_a_point(point: str, side: str) -> None:
    die = KillCoordinator(trigger=AtPoint(point=point, side=side))
    spoil = (FailWrite(trigger=AtTime(at_us=2_000), task="op1-0"),) if point == "checkpoint-aborted" else ()
    ask = (Savepoint(trigger=AtTime(at_us=3_000)),) if point == "savepoint-requested" else ()
    assert survived(job(faults=(die, *spoil), commands=ask)) == (1 + len(spoil), 2, True, [])


@pytest.mark.parametrize(("side", "acknowledged"), [("before", False), ("after", True)])
def test_before_means_that_it_has_not_happened(side: str, acknowledged: bool) -> None:
    """A task killed before its acknowledgement has not sent it; one killed after has."""
    at = AtPoint(point="ack-sent", occurrence=1, task="op1-0", side=side)
    history = run(job(faults=(KillTask(trigger=at, task="op1-0"),)), timeline=True)
    acks = [event for event in history.timeline if event.what == "ack-arrived" and event.peer == "op1-0"]
    assert (1 in {event.checkpoint for event in acks}) is acknowledged
