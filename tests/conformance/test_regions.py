"""Failover by region, whoever runs it: what is lost restarts, the others go on in what they hold (ABS-6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.conforming import EXACTLY, PATIENTLY, committed, conforms, statuses
from cutproof.faults.plan import (
    AtPoint,
    AtTime,
    CutChannel,
    KillCoordinator,
    KillNode,
    KillTask,
    LateMessage,
    PauseTask,
    RaiseInOperator,
)
from cutproof.harness.generate.situations.regional import forward_only
from cutproof.harness.scenario.model import Engine, Resume, Savepoint, Scenario, StopWithSavepoint
from cutproof.harness.subject.port import Subject
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    CommandReturned,
    History,
    TaskFailed,
    Transaction,
)
from cutproof.properties.model.workload import Input, Map, Node, Workload

RECORDS = 60
"""of each split, of which there are as many as regions; read so slowly that faults at points come amid them on a busy
machine too"""
AMID = AtPoint(point="checkpoint-completed")
LOST = ["source-1", "double-1", "sink-1"]
"""the region of every task that is killed below"""
KILL = KillTask(trigger=AMID, task="sink-1")


def scenario(*faults: Any, commands: tuple[Any, ...] = (), regions: int = 2, **engine: Any) -> Scenario:
    splits = tuple(
        tuple((offset % 3, offset, 1 + split * RECORDS + offset) for offset in range(RECORDS))
        for split in range(regions)
    )
    workload = Workload(
        name="doubled",
        inputs=(Input(name="source", splits=splits),),
        nodes=(Node(name="double", operator=Map(multiply=2), inputs=("source",)),),
    )
    settings = {"failover": "region", "nodes": regions, "read_interval_us": 1_000, "checkpoint_interval_us": 3_000}
    return Scenario(
        workload=workload,
        topology=forward_only(workload, regions),
        engine=Engine(**{**settings, **PATIENTLY, **engine}),
        faults=faults,
        commands=commands,
        seed="regions",
    )


def expected_rows(asked: Scenario) -> Counter[Any]:
    """Every record once, its value doubled."""
    records = [record for _, _, split in asked.workload.splits() for record in split]
    return Counter((key, (value or 0) * 2, tag, 0) for key, value, tag in records)


def starts(history: History) -> list[list[str]]:
    """What each attempt began: all (nothing named), or a part."""
    return [sorted(entry.tasks) for entry in history.journal if isinstance(entry, AttemptStarted)]


def attempts(history: History, task: str) -> list[int]:
    return [one.attempt for one in history.runs if one.task == task]


def gap(history: History) -> tuple[int, int]:
    """From the first failure until what it brought down runs again."""
    lost = next(entry.order for entry in history.journal if isinstance(entry, TaskFailed))
    return lost, next(
        entry.order for entry in history.journal if isinstance(entry, AttemptRunning) and entry.order > lost
    )


def filled(history: History, sink: str = "sink-0") -> list[Transaction]:
    return [one for one in history.transactions if one.task == sink and one.rows]


def went_on(result: Result, survivors: Sequence[str] = ("source-0", "double-0", "sink-0")) -> None:
    """The survivors (a source, an operator, a sink) were in one attempt from the beginning to the end, and what
    they had open was committed."""
    history = result.history
    for task in survivors:
        assert attempts(history, task) == [1], task
    (source,) = (one for one in history.runs if one.task == survivors[0])
    assert [offset for _, offset in source.reads] == list(range(RECORDS)), "nothing is read twice there"
    assert all(one.status == "committed" and one.attempt == 1 for one in filled(history, survivors[-1]))
    assert {entry.task for entry in history.journal if isinstance(entry, TaskFailed)}.isdisjoint(survivors)


def test_one_region_is_killed_and_the_other_goes_on_committing(subject: Subject) -> None:
    asked = scenario(KILL)
    result = conforms(subject, asked, *EXACTLY)
    history = result.history
    assert committed(result) == expected_rows(asked)
    assert starts(history) == [[], sorted(LOST)]
    assert [attempts(history, task) for task in LOST] == [[1, 2]] * 3
    went_on(result)
    lost, _ = gap(history)
    assert any(one.begun < lost < (one.committed or 0) for one in filled(history)), "committed over the failure"
    assert any(one.task == "sink-1" and one.attempt == 1 and one.status == "aborted" for one in history.transactions)


def test_the_survivors_work_while_the_region_is_down(subject: Subject) -> None:
    result = run(subject, scenario(KILL, restart_delay_us=4_000), timeline=True)
    assert result.judgement.violated == {}
    lost, up = gap(result.history)
    worked = {one.task for one in result.history.timeline if one.what == "record-applied" and lost < one.order < up}
    assert {"double-0", "sink-0"} <= worked
    went_on(result)


@pytest.mark.parametrize("point", ["snapshot-taken", "ack-sent", "transaction-pre-committed"])
def test_a_kill_amid_a_checkpoint_gives_it_up_and_the_survivors_keep_what_they_sealed(
    subject: Subject, point: str
) -> None:
    asked = scenario(KillTask(trigger=AtPoint(point=point, task="sink-1", occurrence=2, side="before"), task="sink-1"))
    result = conforms(subject, asked, *EXACTLY)
    history = result.history
    assert committed(result) == expected_rows(asked)
    assert starts(history)[1] == sorted(LOST)
    went_on(result)
    aborted = [entry.checkpoint for entry in history.journal if isinstance(entry, CheckpointAborted)]
    assert 2 in aborted


def test_a_kill_while_the_record_of_a_checkpoint_is_stored(subject: Subject) -> None:
    asked = scenario(KillTask(trigger=AtPoint(point="checkpoint-acknowledged", occurrence=2), task="sink-1"))
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    (part,) = (entry for entry in result.history.journal if isinstance(entry, AttemptStarted) and entry.tasks)
    assert part.restores == 2, "the region goes back to the checkpoint whose record was being written"
    went_on(result)


def test_a_region_is_lost_with_its_node(subject: Subject) -> None:
    asked = scenario(KillNode(trigger=AMID, node=1))
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    assert starts(result.history) == [[], sorted(LOST)]
    went_on(result)


def test_a_node_with_tasks_of_two_regions_takes_both_with_it_and_a_third_goes_on(subject: Subject) -> None:
    """Four nodes have nine tasks in turn: source-2 and sink-0 live on node 2, with nobody of region 1."""
    asked = scenario(KillNode(trigger=AMID, node=2), regions=3, nodes=4)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    both = sorted(f"{name}-{at}" for name in ("source", "double", "sink") for at in (0, 2))
    assert starts(result.history)[1:] == [both]
    went_on(result, ("source-1", "double-1", "sink-1"))


def test_a_second_region_is_lost_while_the_first_comes_up(subject: Subject) -> None:
    first = KillTask(trigger=AMID, task="sink-1")
    second = KillTask(trigger=AtPoint(point="state-loaded", task="sink-1", side="before"), task="sink-2")
    asked = scenario(first, second, regions=3)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    both = sorted(f"{name}-{at}" for name in ("source", "double", "sink") for at in (1, 2))
    assert starts(result.history)[1:] == [sorted(LOST), both]
    went_on(result)


@pytest.mark.parametrize(
    "fault",
    [
        RaiseInOperator(trigger=AMID, task="double-1"),
        CutChannel(trigger=AMID, sender="source-1", receiver="double-1"),
    ],
    ids=["a user function raises", "a connection breaks"],
)
def test_a_task_fails_and_no_process_with_it(subject: Subject, fault: Any) -> None:
    asked = scenario(fault)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    assert starts(result.history) == [[], sorted(LOST)]
    went_on(result)


def test_a_zombie_of_the_region_is_shut_out(subject: Subject) -> None:
    """It stands still, is declared lost and comes back when the newer attempt of it runs."""
    asked = scenario(PauseTask(trigger=AMID, task="sink-1", for_us=30_000))
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    assert starts(result.history) == [[], sorted(LOST)]
    went_on(result)


def test_a_committer_goes_with_its_region_and_the_other_commits_on(subject: Subject) -> None:
    asked = scenario(KillTask(trigger=AMID, task="committer-1"), committing="committer")
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    assert starts(result.history) == [[], sorted([*LOST, "committer-1"])]
    went_on(result)
    assert attempts(result.history, "committer-0") == [1]


# -- the coordinator ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trigger",
    [
        AtPoint(point="task-deployed", task="sink-1", occurrence=2, side="before"),
        AtPoint(point="task-running", task="sink-1", occurrence=2),
    ],
    ids=["while the region comes up", "when it runs again"],
)
def test_a_coordinator_that_dies_on_top_has_everything_restart(subject: Subject, trigger: AtPoint) -> None:
    """Who takes over knows what is durable, and not which tasks have survived in which attempt."""
    asked = scenario(KILL, KillCoordinator(trigger=trigger))
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    assert starts(result.history) == [[], sorted(LOST), []]
    assert attempts(result.history, "source-0") == [1, 3]
    assert attempts(result.history, "source-1") == [1, 2, 3]


# -- stops -------------------------------------------------------------------------------------------------------


def test_a_drain_asked_for_while_a_region_is_down_waits_for_it(subject: Subject) -> None:
    drain = StopWithSavepoint(trigger=AtPoint(point="task-deployed", task="sink-1", occurrence=2), drain=True)
    asked = scenario(KILL, commands=(drain, Resume(trigger=AtTime(at_us=500))))
    result = conforms(subject, asked, "exactly-once", "no-data-loss", "restored-state", "visibility", "progress")
    assert committed(result) == expected_rows(asked)
    assert statuses(result) == ["drained", "finished"]
    assert starts(result.history)[:2] == [[], sorted(LOST)]
    assert attempts(result.history, "sink-0")[0] == 1
    (answer,) = (one for one in result.history.journal if isinstance(one, CommandReturned) and one.command == 0)
    assert answer.error == ""


def test_a_region_lost_once_the_savepoint_of_a_drain_is_complete_has_everything_restart(subject: Subject) -> None:
    """The one has finished: of what the other would read again nothing would be committed (J21)."""
    reading = AtPoint(point="record-read", occurrence=RECORDS)
    drain = StopWithSavepoint(trigger=reading, drain=True)
    late = LateMessage(trigger=reading, message="terminate", task="sink-1", by_us=20_000)
    kill = KillTask(trigger=AtPoint(point="end-of-partition-sent", task="double-0"), task="sink-1")
    asked = scenario(kill, late, commands=(drain,), checkpoint_interval_us=1_000_000)
    result = conforms(subject, asked, "exactly-once", "no-data-loss", "visibility", "progress")
    assert statuses(result) == ["drained"]
    assert starts(result.history) == [[], []]


def test_a_savepoint_asked_for_while_a_region_is_down_has_all_of_it(subject: Subject) -> None:
    asked = scenario(KILL, commands=(Savepoint(trigger=AtPoint(point="task-deployed", task="sink-1", occurrence=2)),))
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    (kept,) = (one for one in result.history.completed if one.savepoint)
    assert len(kept.handles) == 6
    went_on(result)


def test_without_the_setting_everything_restarts(subject: Subject) -> None:
    asked = scenario(KILL, failover="full")
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked)
    assert starts(result.history) == [[], []]
