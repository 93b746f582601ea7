"""How tasks are deployed: each with its part of the snapshot, and what the coordinator then knows of it (ABS-6)."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.sources.enumerator import SplitAssignment
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.lifecycle.deployment import Deployment, deployment
from cutproof.reference_impl.core.lifecycle.task_ends import TaskEnds
from cutproof.reference_impl.core.vocabulary.causes import StateMissing
from cutproof.reference_impl.core.vocabulary.effects import Effect, SendToTask
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Deploy, Running
from cutproof.reference_impl.core.vocabulary.state import EnumeratorState, TaskState
from unit.core.coordinator_rig import GRAPH, OP, SINK, SOURCE, TASKS, complete_snapshot, handle

SEVEN = AttemptId(7)


def job(graph: JobGraph = GRAPH, *, number: int = 1, **settings: Any) -> Deployment:
    config, parts = Config(**settings), Parts()
    splits = SplitAssignment(number, graph, config, parts)
    return Deployment(number, graph, config, parts, ends=TaskEnds(graph), splits=splits)


def messages(orders: list[Effect]) -> dict[TaskId, Deploy]:
    return {one.task: one.message for one in orders if isinstance(one, SendToTask) and isinstance(one.message, Deploy)}


def orders(deployment: Deployment, restores: CompletedCheckpoint | None, **more: Any) -> dict[TaskId, Deploy]:
    return messages(deployment.orders(TASKS, SEVEN, restores, **more))


# -- from a snapshot, or from nothing ------------------------------------------------------------


def test_without_a_snapshot_tasks_start_from_nothing() -> None:
    assert orders(job(), None) == dict.fromkeys(TASKS, Deploy(job=1, attempt=7))


def test_each_task_restores_what_it_left_in_the_snapshot() -> None:
    found = orders(job(), complete_snapshot(3))
    assert [(found[task].checkpoint, found[task].handle) for task in TASKS] == [(3, handle(3, task)) for task in TASKS]


def test_a_state_in_the_coordinators_memory_goes_with_the_order_and_not_its_handle() -> None:
    state = TaskState(rotations=[1])
    found = orders(job(), complete_snapshot(3, states={OP: state}))
    assert (found[OP].state, found[OP].handle) == (state, None)
    assert (found[SINK].state, found[SINK].handle) == (None, handle(3, SINK))


def test_the_sources_of_a_whole_attempt_are_suspended_unless_it_is_said_that_the_job_goes_on() -> None:
    stopped = complete_snapshot(3, ending=JobEnd.STOP)
    assert all(order.suspended for order in orders(job(), stopped).values())
    assert all(order.suspended for order in messages(deployment(TASKS, SEVEN, 1, stopped)).values())


def test_only_the_tasks_that_are_to_start_are_ordered() -> None:
    assert list(messages(job().orders((OP,), SEVEN, complete_snapshot(3)))) == [OP]


@pytest.mark.parametrize(
    ("ending", "of_job", "suspends", "suspended"),
    [
        (JobEnd.STOP, 1, True, True),
        (None, 1, True, False),
        (JobEnd.STOP, 2, True, False),
        (JobEnd.STOP, 1, False, False),
    ],
    ids=["this job has ended with it", "it ends nothing", "a former job had ended with it", "a region restarts"],
)
def test_sources_read_nothing_more_if_this_job_had_ended(
    ending: JobEnd | None, of_job: int, suspends: bool, suspended: bool
) -> None:
    found = orders(job(), complete_snapshot(3, ending=ending, job=of_job), suspends=suspends)
    assert {one.suspended for one in found.values()} == {suspended}


# -- of another layout -----------------------------------------------------------------------------


def rescaled(parallelism: int) -> JobGraph:
    edge = EdgeSpec(sender="source", partitioning="hash")
    sources = OperatorSpec(name="source", parallelism=1, splits=(0,), role="source")
    counts = OperatorSpec(name="op", parallelism=parallelism, inputs=(edge,))
    sinks = OperatorSpec(name="sink", parallelism=1, inputs=(EdgeSpec(sender="op", partitioning="hash"),), role="sink")
    return JobGraph((sources, counts, sinks), 16)


@pytest.mark.parametrize(
    ("alignment", "in_flight", "inputs"), [("aligned", False, 0), ("unaligned", False, 1), ("aligned", True, 1)]
)
def test_at_another_parallelism_a_task_gets_the_states_of_all_old_subtasks_and_senders_where_data_was_in_flight(
    alignment: str, inputs: int, *, in_flight: bool
) -> None:
    tasks = tuple(task for task, _, _ in rescaled(2).tasks())
    restores = complete_snapshot(3, in_flight=in_flight)
    found = messages(job(rescaled(2), alignment=alignment).orders(tasks, SEVEN, restores))
    for subtask in ("op-0", "op-1"):
        order = found[TaskId(subtask)]
        assert [piece.handle for piece in order.pieces] == [handle(3, OP)]
        assert len(order.senders) == inputs


# -- what the coordinator knows --------------------------------------------------------------------


def test_an_operator_that_had_finished_as_a_whole_begins_as_finished() -> None:
    restores = complete_snapshot(3, handles={OP: handle(3, OP), SINK: handle(3, SINK)}, finished=(SOURCE,))
    made = job()
    assert made.finished_before(restores) == (SOURCE,)
    assert [one.finished for one in orders(made, restores).values()] == [True, False, False]
    made.begin(restores)
    assert made._ends.finished == (SOURCE,)
    made.begin(None)
    assert made._ends.finished == ()


def test_an_operator_of_which_a_subtask_had_not_finished_is_not_finished() -> None:
    restores = complete_snapshot(
        3, finished=(TaskId("op-0"),), parallelism={"source": 1, "op": 2, "sink": 1}, key_groups=16
    )
    assert job(rescaled(2)).finished_before(restores) == ()


def test_only_the_tasks_of_a_region_begin_again() -> None:
    made = job()
    for task in TASKS:
        made._ends.end_input(task)
    made.begin_region((OP,), None)
    assert [made._ends.awaits_input(task) for task in TASKS] == [False, True, False]


def test_enumerators_begin_with_the_snapshot_and_take_back_what_readers_had() -> None:
    source = OperatorSpec(name="source", parallelism=1, splits=(0, 1), role="source", enumerated=True)
    made = job(JobGraph((source, *GRAPH.operators[1:]), 16))
    before = EnumeratorState(unassigned={1: 0}, assigned={0: SOURCE})
    made.begin(complete_snapshot(3, enumerators={"source": before}))
    assert made._splits.states() == {"source": before}
    made.restored(Running(job=1, attempt=SEVEN, task=SOURCE, returned={0: 12}))
    assert made._splits.states()["source"].unassigned == {0: 12, 1: 0}


# -- what does not fit -------------------------------------------------------------------------------


def test_a_snapshot_that_lacks_a_state_is_refused_and_none_or_a_whole_one_is_not() -> None:
    made = job()
    assert made.fitted(None) == (None, None)
    assert made.fitted(complete_snapshot(3)) == (complete_snapshot(3), None)
    lacks = complete_snapshot(3, handles={SOURCE: handle(3, SOURCE), OP: handle(3, OP)})
    assert made.fitted(lacks) == (lacks, StateMissing((), CheckpointId(3), (SINK,)))
