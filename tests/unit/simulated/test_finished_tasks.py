"""Jobs of which a part has finished: checkpoints go on, and recovery leaves that part alone (FIN-1, FIN-5)."""

from __future__ import annotations

import pytest

from cutproof.faults.plan import AnyFault, AtPoint, AtTime, KillCoordinator, KillTask
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import JobEnded
from cutproof.properties.model.verdict import Holds
from cutproof.properties.model.workload import Count, Edge, Input, InputRecord, Map, Node, Topology, Union, Workload
from unit.simulated.worlds import fired

TASKS = ("short-0", "long-0", "both-0", "count-1", "sink-0")
LATE_US = 35_000
"""the short input has long ended, the long one has not"""


def split(first_tag: int, length: int) -> tuple[InputRecord, ...]:
    return tuple((number % 5, number, first_tag + number) for number in range(length))


def mixed(*faults: AnyFault, bounded: bool = False, commands: tuple[StopWithSavepoint | Resume, ...] = ()) -> Result:
    """A short bounded input and a long one, counted together."""
    asked = Workload(
        name="mixed",
        inputs=(
            Input(name="short", splits=(split(1_000, 20), split(2_000, 10))),
            Input(name="long", splits=(split(3_000, 300), split(4_000, 300)), bounded=bounded),
        ),
        nodes=(
            Node(name="both", operator=Union(), inputs=("short", "long")),
            Node(name="count", operator=Count(), inputs=("both",)),
        ),
    )
    scenario = Scenario(workload=asked, topology=lay_out(asked), engine=Engine(), faults=faults, commands=commands)
    return run(SimulatedSubject(), scenario)


def uneven(*faults: AnyFault) -> Result:
    """A source whose subtasks end one long after the other, joined one to one with what follows."""
    asked = Workload(
        name="uneven",
        inputs=(Input(name="source", splits=(split(1_000, 10), split(2_000, 300))),),
        nodes=(
            Node(name="twice", operator=Map(multiply=2), inputs=("source",)),
            Node(name="count", operator=Count(), inputs=("twice",)),
        ),
    )
    topology = Topology(
        parallelism={"source": 2, "twice": 2, "count": 2, "sink": 1},
        edges=(
            Edge(sender="source", receiver="twice", partitioning="forward"),
            Edge(sender="twice", receiver="count", partitioning="hash"),
            Edge(sender="count", receiver="sink", partitioning="rebalance"),
        ),
    )
    return run(SimulatedSubject(), Scenario(workload=asked, topology=topology, engine=Engine(), faults=faults))


def holds(result: Result) -> Result:
    assert result.judgement.violated == {}
    for name in ("exactly-once", "consistent-cut", "restored-state"):
        assert isinstance(result.judgement.verdicts[name], Holds), name
    return result


def test_a_bounded_input_ends_while_another_does_not() -> None:
    result = mixed()
    assert result.judgement.violated == {}
    with_all, *after = result.history.completed
    assert with_all.finished == []
    assert all(one.finished == ["short-0", "short-1"] for one in after)
    assert all("short-0" not in one.handles for one in after)
    assert len(after) >= 3


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("at_us", [16_000, LATE_US])
def test_a_crash_before_or_after_tasks_finished(task: str, at_us: int) -> None:
    history = holds(mixed(KillTask(trigger=AtTime(at_us=at_us), task=task))).history
    assert {run.attempt for run in history.runs} == {1, 2}, "it was killed, and all came up again"
    assert history.completed[-1].finished == ["short-0", "short-1"]


def test_a_crash_after_tasks_finished_replays_nothing_of_them() -> None:
    history = holds(mixed(KillTask(trigger=AtTime(at_us=LATE_US), task="count-0"))).history
    again = [run for run in history.runs if run.attempt > 1 and run.operator == "short"]
    assert len(again) == 2
    assert not any(run.reads or run.marks or run.loaded for run in again)


def test_a_job_of_bounded_inputs_still_ends_when_one_ended_early() -> None:
    history = holds(mixed(KillTask(trigger=AtTime(at_us=LATE_US), task="count-0"), bounded=True)).history
    (end,) = [entry for entry in history.journal if isinstance(entry, JobEnded)]
    assert end.status == "finished"


@pytest.mark.parametrize("at_us", [16_000, 25_000, LATE_US])
@pytest.mark.parametrize("task", ["source-0", "twice-0", "source-1", "sink-0"])
def test_an_operator_of_which_a_part_has_finished(task: str, at_us: int) -> None:
    history = holds(uneven(KillTask(trigger=AtTime(at_us=at_us), task=task))).history
    partly = [one for one in history.completed if one.finished]
    assert partly
    assert all({"source-0", "twice-0"} == set(one.finished) for one in partly[:1])
    assert all(one.handles.keys() >= {"source-0", "twice-0"} for one in partly[:1]), "their last states are kept"


ENDS = pytest.mark.parametrize("point", ["end-of-data-sent", "end-of-partition-sent"])
SIDES = pytest.mark.parametrize("side", ["before", "after"])


@ENDS
@SIDES
@pytest.mark.parametrize("occurrence", [1, 2])
def test_a_crash_at_each_end_of_a_source_while_another_is_endless(point: str, side: str, occurrence: int) -> None:
    """It says so to each of two channels."""
    at = AtPoint(point=point, side=side, occurrence=occurrence)
    result = mixed(KillTask(trigger=at, task="short-0"))
    assert fired(result.history) == ["kill-task"]
    assert result.judgement.violated == {}


@ENDS
@SIDES
@pytest.mark.parametrize("occurrence", [1, 2, 3])
def test_a_crash_at_each_end_of_a_part(point: str, side: str, occurrence: int) -> None:
    at = AtPoint(point=point, side=side, occurrence=occurrence)
    result = uneven(KillTask(trigger=at, task="twice-0"))
    assert fired(result.history) == ["kill-task"]
    assert result.judgement.violated == {}


def test_a_new_coordinator_knows_who_had_finished() -> None:
    result = holds(mixed(KillCoordinator(trigger=AtTime(at_us=LATE_US), down_us=500)))
    assert result.history.completed[-1].finished == ["short-0", "short-1"]


@pytest.mark.parametrize("drain", [True, False])
def test_a_stop_and_resume_after_tasks_finished(drain: bool) -> None:
    commands = (StopWithSavepoint(trigger=AtTime(at_us=LATE_US), drain=drain), Resume(trigger=AtTime(at_us=500)))
    result = mixed(bounded=True, commands=commands)
    assert result.judgement.violated == {}
    statuses = [entry.status for entry in result.history.journal if isinstance(entry, JobEnded)]
    assert statuses == ["drained" if drain else "stopped", "finished"]
