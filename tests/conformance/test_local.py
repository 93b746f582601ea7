"""Local recovery, whoever runs it: a lost task is restarted alone, and nobody takes anything twice (UNA-4)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from conformance.conforming import EXACTLY, PATIENTLY, committed, conforms
from cutproof.faults.plan import AnyFault, AtPoint, AtTime, CutChannel, KillNode, KillTask, PauseTask
from cutproof.harness.scenario.model import Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.subject.port import Subject, SubjectFailed
from cutproof.properties.model.history import AttemptStarted, History, TaskFailed, TaskRun
from cutproof.properties.model.workload import Count, Edge, Input, Join, Node, Topology, Workload

RECORDS = 40
"""of each split, read so slowly that faults at points come amid them on a busy machine too"""
AMID = AtPoint(point="checkpoint-completed")
KEYS = 5

COUNTED = Workload(
    name="counted",
    inputs=(
        Input(
            name="source",
            splits=tuple(
                tuple((offset % KEYS, offset, 1 + split * RECORDS + offset) for offset in range(RECORDS))
                for split in (0, 1)
            ),
        ),
    ),
    nodes=(Node(name="count", operator=Count(tagged=False), inputs=("source",)),),
)
JOINED = Workload(
    name="joined",
    inputs=tuple(
        Input(name=name, splits=(tuple((offset % KEYS, offset, first + offset) for offset in range(RECORDS)),))
        for name, first in (("left", 1), ("right", 1_001))
    ),
    nodes=(Node(name="join", operator=Join(), inputs=("left", "right")),),
)


def scenario(
    *faults: AnyFault, workload: Workload = COUNTED, commands: tuple[Any, ...] = (), **settings: Any
) -> Scenario:
    """Two subtasks of each operator, hash edges; tasks are distributed to three nodes in turn."""
    readers = {name: node.name for node in workload.nodes for name in node.inputs} | {workload.nodes[-1].name: "sink"}
    names = [source.name for source in workload.inputs] + [node.name for node in workload.nodes]
    topology = Topology(
        parallelism=dict.fromkeys((*names, "sink"), 2)
        | {source.name: len(source.splits) for source in workload.inputs},
        edges=tuple(Edge(sender=name, receiver=readers[name], partitioning="hash") for name in names),
    )
    recovered = {
        "failover": "local",
        "spilling": "continuous",
        "nodes": 3,
        "read_interval_us": 1_000,
        "checkpoint_interval_us": 3_000,
        **PATIENTLY,
    }
    return Scenario(
        workload=workload,
        topology=topology,
        engine=Engine(**{**recovered, **settings}),
        faults=faults,
        commands=commands,
        seed="local",
    )


def expected_rows(workload: Workload) -> Counter[Any]:
    """Each key is counted up to the number of its records; of a join, each pair of a key is expected."""
    records = [record for _, _, split in workload.splits() for record in split]
    if workload is COUNTED:
        times = Counter(key for key, _, _ in records)
        return Counter((key, number, 0, 0) for key in times for number in range(1, times[key] + 1))
    left, right = (split for _, _, split in workload.splits())
    return Counter((key, value, tag, paid) for key, value, tag in left for other, _, paid in right if key == other)


def lost(task: str) -> KillTask:
    return KillTask(trigger=AMID, task=task)


def starts(history: History) -> list[list[str]]:
    """What each attempt after the first began: all (nothing named), or those that came up alone."""
    return [sorted(entry.tasks) for entry in history.journal if isinstance(entry, AttemptStarted)][1:]


def runs_of(history: History, task: str) -> list[TaskRun]:
    return [one for one in history.runs if one.task == task]


def survived(history: History, *lost: str) -> None:
    """Everybody else stayed in the first attempt, took everything once, and failed of nothing."""
    for task in dict.fromkeys(run.task for run in history.runs):
        if task not in lost:
            assert [run.attempt for run in runs_of(history, task)] == [1], task
    assert {entry.task for entry in history.journal if isinstance(entry, TaskFailed)} <= set(lost)


def failures(history: History) -> list[tuple[str, str]]:
    """Which tasks failed, and why: said where more were started again than were killed."""
    return [(entry.task, entry.reason) for entry in history.journal if isinstance(entry, TaskFailed)]


def repeats(history: History) -> dict[str, int]:
    """How many records came again, and were dropped, by channel."""
    return {one.name: len(one.repeated) for one in history.channels if one.repeated}


def took_the_same_again(history: History, task: str) -> int:
    """An attempt that came up alone took what the one before it had taken since its checkpoint, in the same order, as
    far as that was durable; how many records that were."""
    before, after = runs_of(history, task)[-2:]
    mark = next((one for one in before.marks if after.loaded and one.checkpoint == after.loaded.checkpoint), None)
    since = before.applies[mark.applies if mark is not None else 0 :]
    same = next((at for at, (one, other) in enumerate(zip(since, after.applies, strict=False)) if one != other), None)
    return len(since) if same is None else same


@pytest.mark.parametrize("store", ["log", "files"])
def test_a_lost_operator_recovers_locally_and_sends_the_same_again(subject: Subject, store: str) -> None:
    result = conforms(subject, scenario(lost("count-0"), spill_store=store), *EXACTLY, "order")
    history = result.history
    assert committed(result) == expected_rows(COUNTED)
    assert starts(history) == [["count-0"]], failures(history)
    survived(history, "count-0")
    assert {name.partition(">")[0] for name in repeats(history)} <= {"count-0"}


def test_a_lost_join_gives_those_behind_it_the_same_rows_in_the_same_order(subject: Subject) -> None:
    """Killed so that it has taken much of both inputs since its checkpoint, and they behind it most of what came."""
    late = AtPoint(point="record-applied", task="join-0", occurrence=20)
    asked = scenario(KillTask(trigger=late, task="join-0"), workload=JOINED, checkpoint_interval_us=40_000)
    result = conforms(subject, asked, "exactly-once", "no-data-loss")
    history = result.history
    assert committed(result) == expected_rows(JOINED)
    assert starts(history) == [["join-0"]], failures(history)
    survived(history, "join-0")
    assert sum(repeats(history).values()) > 5
    assert took_the_same_again(history, "join-0") > 8


def test_a_lost_source_reads_again_and_its_receivers_drop_it(subject: Subject) -> None:
    late = AtPoint(point="record-read", task="source-0", occurrence=20)
    asked = scenario(KillTask(trigger=late, task="source-0"), checkpoint_interval_us=40_000)
    result = conforms(subject, asked, "exactly-once", "no-data-loss")
    history = result.history
    assert committed(result) == expected_rows(COUNTED)
    assert starts(history) == [["source-0"]], failures(history)
    survived(history, "source-0")
    assert repeats(history).keys() == {"source-0>count-0", "source-0>count-1"}


def test_a_lost_sink_writes_again_what_it_had_open(subject: Subject) -> None:
    result = conforms(subject, scenario(lost("sink-0")), *EXACTLY)
    history = result.history
    assert committed(result) == expected_rows(COUNTED)
    assert starts(history) == [["sink-0"]], failures(history)
    survived(history, "sink-0")
    assert all(one.status == "committed" for one in history.transactions if one.task == "sink-1" and one.rows)


def test_all_tasks_of_a_node_come_up_among_those_of_the_others(subject: Subject) -> None:
    """Three nodes have six tasks in turn: a source and one of the operators that it sends to live on node 0."""
    result = conforms(subject, scenario(KillNode(trigger=AMID, node=0)), *EXACTLY)
    history = result.history
    assert committed(result) == expected_rows(COUNTED)
    assert starts(history) == [["count-1", "source-0"]], failures(history)
    survived(history, "count-1", "source-0")


def test_it_dies_again_amid_what_it_takes_again(subject: Subject) -> None:
    """No checkpoint is complete by then: it begins at the beginning, twice."""
    first, again = (
        KillTask(trigger=AtPoint(point="record-applied", task="join-0", occurrence=number), task="join-0")
        for number in (20, 25)
    )
    asked = scenario(first, again, workload=JOINED, checkpoint_interval_us=60_000)
    result = conforms(subject, asked, "exactly-once", "no-data-loss")
    history = result.history
    assert committed(result) == expected_rows(JOINED)
    assert starts(history) == [["join-0"], ["join-0"]], failures(history)
    survived(history, "join-0")
    one, two, three = runs_of(history, "join-0")
    assert 0 < len(two.applies) < len(one.applies) < len(three.applies)
    assert three.applies[: len(two.applies)] == two.applies == one.applies[: len(two.applies)]


@pytest.mark.parametrize("task", ["count-0", "source-0", "sink-0"])
def test_a_zombie_reaches_nobody_and_writes_into_nothing_that_counts(subject: Subject, task: str) -> None:
    """It stands still, is given up for dead and goes on when another attempt has its place."""
    result = conforms(subject, scenario(PauseTask(trigger=AMID, task=task, for_us=30_000)), *EXACTLY)
    history = result.history
    assert committed(result) == expected_rows(COUNTED)
    assert starts(history) == [[task]], failures(history)
    survived(history, task)


@pytest.mark.parametrize("alignment", ["unaligned", "timeout"])
def test_where_barriers_overtake_it_is_the_same(subject: Subject, alignment: str) -> None:
    asked = scenario(lost("count-0"), lost("sink-1"), alignment=alignment, channel_capacity=3, apply_cost_us=700)
    result = conforms(subject, asked, "exactly-once", "no-data-loss", "order")
    assert committed(result) == expected_rows(COUNTED)
    assert sorted({task for tasks in starts(result.history) for task in tasks}) == ["count-0", "sink-1"]


def test_a_job_that_recovered_so_is_stopped_and_goes_on(subject: Subject) -> None:
    stop = StopWithSavepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=4))
    asked = scenario(lost("count-0"), commands=(stop, Resume(trigger=AtTime(at_us=1_000))))
    result = conforms(subject, asked, "exactly-once", "no-data-loss")
    assert committed(result) == expected_rows(COUNTED)
    assert ["count-0"] in starts(result.history)


def test_when_everything_is_lost_everything_restarts(subject: Subject) -> None:
    result = conforms(subject, scenario(*(KillNode(trigger=AMID, node=node) for node in range(3))), "exactly-once")
    assert committed(result) == expected_rows(COUNTED)
    assert starts(result.history)[-1] == []


def test_a_job_that_cannot_is_refused_in_one_line(subject: Subject) -> None:
    with pytest.raises(SubjectFailed, match="failover local: ") as raised:
        subject.run(scenario(sink="idempotent"))
    assert "\n" not in str(raised.value)


def test_a_connection_that_breaks_between_two_that_live(subject: Subject) -> None:
    """In the simulator its receiver recovers locally; processes connect again, and nobody restarts."""
    cut = CutChannel(trigger=AMID, sender="source-0", receiver="count-0")
    lossy = () if subject.capabilities.real_time else ("no-data-loss",)  # where nobody restarts nothing is at stake
    result = conforms(subject, scenario(cut), *lossy)
    history = result.history
    assert committed(result) == expected_rows(COUNTED)
    assert starts(history) in ([], [["count-0"]])
    survived(history, "count-0")
