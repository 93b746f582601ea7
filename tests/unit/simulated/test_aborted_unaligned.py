"""Unaligned checkpoints that are aborted, at each step, and a crash behind it: nothing of them is left (UNA-1)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AnyFault, AtPoint, FailWrite, KillCoordinator, KillTask, LoseMessage, PauseTask
from cutproof.faults.points import COORDINATOR_POINTS
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import (
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
    FaultFired,
    History,
    JobEnded,
)
from cutproof.properties.model.verdict import Holds
from cutproof.properties.model.workload import Input, Join, Node, Workload
from unit.simulated.overtaken import SLOW, in_flight
from unit.simulated.overtaken import job as counted_by_key
from unit.simulated.worlds import QUICK, journal

TIMEOUT_US = 6_000
PAUSE_US = 9_000
"""longer than a checkpoint may take, shorter than a task may be silent"""


def joined(**engine: object) -> Scenario:
    """Two gates of two channels each."""
    sides = {
        name: tuple(tuple((n % 12, n, tag + 100 * split + n) for n in range(30)) for split in range(2))
        for name, tag in (("left", 1_000), ("right", 2_000))
    }
    workload = Workload(
        name="joined",
        inputs=tuple(Input(name=name, splits=splits) for name, splits in sides.items()),
        nodes=(Node(name="join", operator=Join(), inputs=("left", "right")),),
    )
    topology = lay_out(workload, dict.fromkeys(("left", "right", "join", "sink"), 2))
    edges = tuple(replace(one, partitioning="hash") for one in topology.edges)
    settings = {**QUICK, **SLOW, "alignment": "unaligned", **engine}
    return Scenario(workload=workload, topology=replace(topology, edges=edges), engine=Engine(**settings))  # type: ignore[arg-type]


def counted(**engine: object) -> Scenario:
    """One channel into each task."""
    return counted_by_key(records=100, width=1, **engine)


SHAPES = {"one input": (counted, "op1-0", "source-0", 1, 1), "two gates": (joined, "join-0", "left-0", 4, 2)}
"""a job, one of its tasks and one of its sources, and how many channels lead to the task and from it"""

STEPS = ("barrier-received", "barrier-sent", "snapshot-taken")
STILL = [*((point, side) for point in STEPS for side in ("before", "after")), ("snapshot-persisted", "before")]
"""where a task that stands still keeps a checkpoint from completing"""
DEAD = [*STILL, ("ack-sent", "before")]
"""and where its death does"""


def at(point: str, side: str, shape: str) -> AtPoint:
    """Where the second checkpoint comes there in the task, or in the coordinator."""
    _, task, _, inputs, outputs = SHAPES[shape]
    first = {"barrier-received": inputs, "barrier-sent": outputs}.get(point, 1) + 1
    return AtPoint(point=point, side=side, occurrence=first, task=None if point in COORDINATOR_POINTS else task)


def aborting(drawn: Scenario, first: AnyFault) -> History:
    """The second checkpoint came to nothing by a fault, and a crash has what came behind it restored."""
    crash = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=3), task="sink-0")
    result = run(SimulatedSubject(), replace(drawn, faults=(first, crash)))
    history = result.history
    fired = {entry.fault: entry.at_us for entry in journal(FaultFired, history)}
    assert set(fired) == {0, 1}
    begun = {entry.checkpoint: entry.at_us for entry in journal(CheckpointTriggered, history)}
    completed = [entry.checkpoint for entry in history.completed]
    assert [number for number in begun if number not in completed and begun[number] <= fired[0]] == [2]
    assert begun[2] <= fired[0]
    assert completed[:3] == [1, 3, 4]
    assert in_flight(history)[4], "what was restored had something in flight"
    assert [entry.restores for entry in journal(AttemptStarted, history)][-1] == 4

    assert [entry.status for entry in journal(JobEnded, history)] == ["finished"]
    assert not result.judgement.violated
    for name in ("exactly-once", "consistent-cut", "restored-state", "no-leaks"):
        assert isinstance(result.judgement.verdicts[name], Holds), name
    return history


def job(shape: str, local: bool) -> Scenario:
    """With one node every channel is local, where there are such."""
    nodes = {"nodes": 1, "local_channels": True} if local else {"nodes": 2}
    return SHAPES[shape][0](checkpoint_timeout_us=TIMEOUT_US, **nodes)


CHANNELS = pytest.mark.parametrize("local", [True, False], ids=["local", "remote"])
EACH_SHAPE = pytest.mark.parametrize("shape", SHAPES)


@CHANNELS
@EACH_SHAPE
@pytest.mark.parametrize(("point", "side"), STILL)
def test_a_time_out_while_a_task_is_at_any_step(point: str, side: str, shape: str, local: bool) -> None:
    """It stands still there, and takes the rest of that checkpoint for what it is when it goes on."""
    fault = PauseTask(trigger=at(point, side, shape), task=SHAPES[shape][1], for_us=PAUSE_US)
    (aborted, *_) = journal(CheckpointAborted, aborting(job(shape, local), fault))
    assert (aborted.checkpoint, aborted.reason) == (2, "it timed out")


@CHANNELS
@EACH_SHAPE
@pytest.mark.parametrize("point", ["checkpoint-triggered", "ack-received", "checkpoint-acknowledged"])
def test_an_abort_at_any_step_of_the_coordinator(point: str, shape: str, local: bool) -> None:
    """A source is told nothing, an acknowledgement does not come, the record cannot be written."""
    _, task, source, _, _ = SHAPES[shape]
    faults: dict[str, AnyFault] = {
        "checkpoint-triggered": LoseMessage(trigger=at(point, "before", shape), message="trigger", task=source),
        "ack-received": LoseMessage(trigger=at("ack-sent", "before", shape), message="ack", task=task),
        "checkpoint-acknowledged": FailWrite(trigger=at(point, "before", shape), task=None),
    }
    (aborted, *_) = journal(CheckpointAborted, aborting(job(shape, local), faults[point]))
    assert aborted.checkpoint == 2


@CHANNELS
@EACH_SHAPE
@pytest.mark.parametrize(("point", "side"), DEAD)
def test_a_death_at_any_step(point: str, side: str, shape: str, local: bool) -> None:
    history = aborting(job(shape, local), KillTask(trigger=at(point, side, shape), task=SHAPES[shape][1]))
    assert [entry.restores for entry in journal(AttemptStarted, history)] == [None, 1, 4]


@CHANNELS
@EACH_SHAPE
@pytest.mark.parametrize(
    ("point", "side"),
    [("checkpoint-triggered", "after"), ("ack-received", "before"), ("checkpoint-acknowledged", "after")],
)
def test_a_death_of_the_coordinator_at_any_step(point: str, side: str, shape: str, local: bool) -> None:
    history = aborting(job(shape, local), KillCoordinator(trigger=at(point, side, shape), down_us=500))
    assert [entry.restores for entry in journal(AttemptStarted, history)] == [None, 1, 4]
