"""Processes outlive jobs: what one of them still has of a former job does nothing in the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.events import CommandKind
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Ack, Cancel, Deploy, Running, ToTask, Trigger
from cutproof.reference_impl.core.vocabulary.stages import Working
from cutproof.reference_impl.processes.network import frames as f
from unit.processes.coordinated import FakeNode, losses, submit, working
from unit.processes.rig import CONTROL, TASKS, CoordinatorProcess, Node, now

MAP = TaskId("map-0")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, MAP) as made:
        yield made


@pytest.fixture
def process(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(tmp_path) as made:
        yield made


def deliver(node: Node, message: ToTask, task: TaskId = MAP) -> None:
    node.coordinator.send(f.ForTask(now(), task, message))


def deploy(node: Node, job: int, attempt: int) -> None:
    deliver(node, Deploy(job=job, attempt=AttemptId(attempt)))
    node.harness.expect(f.Up, task=MAP, attempt=attempt)


# -- a node ----------------------------------------------------------------------------------------------------------


def test_a_deployment_of_a_former_job_brings_nobody_up(node: Node) -> None:
    deploy(node, 2, 4)
    deliver(node, Deploy(job=1, attempt=AttemptId(9)))
    node.answers()
    assert [entry.attempt for entry in node.entries(o.TaskStarted)] == [4], "whatever attempt it names"
    assert node.coordinator.all(f.Failed) == []


def test_an_order_to_stop_of_a_former_job_stops_nobody(node: Node) -> None:
    deploy(node, 2, 4)
    deliver(node, Cancel(job=1, attempt=AttemptId(4)))
    node.answers()
    assert node.harness.all(f.Down) == []


def test_a_message_of_a_former_job_does_not_take_the_node_back_to_it(node: Node) -> None:
    deploy(node, 2, 4)
    deliver(node, Cancel(job=1, attempt=AttemptId(1)))
    deploy(node, 2, 5)
    assert [(entry.job, entry.attempt) for entry in node.entries(o.TaskStarted)] == [(2, 4), (2, 5)]


def test_who_is_spoken_to_of_the_next_job_has_missed_the_end_of_his(node: Node) -> None:
    """Here of another task, so that nobody takes the place of what still runs."""
    deploy(node, 1, 1)
    deliver(node, Trigger(job=2, attempt=AttemptId(3), checkpoint=CheckpointId(1)), TaskId("source-0"))
    node.harness.expect(f.Down)
    assert [ended.how for ended in node.entries(o.RunEnded)] == [o.RunEnd.CANCELLED]


def test_that_a_former_job_is_over_ends_nothing_of_the_next(node: Node) -> None:
    deploy(node, 2, 4)
    node.coordinator.send(f.JobOver(now(), 1))
    node.answers()
    assert node.harness.all(f.Down) == []


def test_a_job_that_is_over_takes_nobody_in(node: Node) -> None:
    deploy(node, 1, 1)
    node.coordinator.send(f.JobOver(now(), 1))
    node.harness.expect(f.Down)
    deliver(node, Deploy(job=1, attempt=AttemptId(2)))
    node.answers()
    assert [entry.attempt for entry in node.entries(o.TaskStarted)] == [1]
    deploy(node, 2, 3)


def test_a_task_that_the_job_has_not_fails_and_the_node_goes_on(node: Node) -> None:
    deliver(node, Deploy(job=1, attempt=AttemptId(1)), TaskId("nobody-0"))
    failed = node.coordinator.expect(f.Failed)
    assert (failed.task, failed.attempt, str(failed.cause)) == ("nobody-0", 1, "the job has no task nobody-0")
    node.answers()
    (written,) = node.entries(o.TaskFailed)
    assert (written.task, written.reason, written.fault) == ("nobody-0", "the job has no task nobody-0", None)
    deploy(node, 1, 1)


# -- the coordinator -------------------------------------------------------------------------------------------------


def resumed(process: CoordinatorProcess) -> FakeNode:
    """A second job runs where the first was cancelled."""
    submit(process)
    node = FakeNode(process).runs()
    working(process)
    process.harness.send(f.Issue(now(), 1, 7, CommandKind.CANCEL, False))
    process.harness.expect(f.Ended)
    process.harness.send(f.Submit(now(), 2, AttemptId(4), 9, (), False))
    for task in node.tasks:
        node.peer.expect(f.ForTask, task=task, message=Deploy(job=2, attempt=AttemptId(4)))
    for task in node.tasks:
        node.peer.send(f.FromTask(now(), task, Running(job=2, attempt=AttemptId(4), task=task)))
    working(process, 4)
    return node


def test_a_command_for_a_former_job_is_answered_that_it_has_ended(process: CoordinatorProcess) -> None:
    """The user who asked knew nothing of the next one."""
    resumed(process)
    process.harness.send(f.Issue(now(), 1, 8, CommandKind.CANCEL, False))
    process.harness.expect(f.Returned, command=8)
    process.answers()
    assert len(process.harness.all(f.Ended)) <= 1
    answer = process.entries(o.CommandReturned)[-1]
    assert (answer.command, answer.error) == (8, "the job has ended")
    assert process.world.runner_now is not None
    assert isinstance(process.world.runner_now.machine.stage, Working)


def test_a_coordinator_that_does_not_know_a_job_yet_does_not_report_its_end(process: CoordinatorProcess) -> None:
    """It has just come up in the place of one that was killed."""
    process.harness.send(f.Issue(now(), 1, 7, CommandKind.CANCEL, False))
    process.answers()
    assert process.entries(o.CommandReturned) == []


def test_a_former_job_is_frozen_and_not_the_next(process: CoordinatorProcess) -> None:
    resumed(process)
    process.harness.send(f.Freeze(now(), 1, False))
    process.answers()
    assert not process.world.freezing
    process.harness.send(f.Freeze(now(), 2, False))
    process.answers()
    assert process.world.freezing


def test_an_acknowledgement_of_a_former_job_counts_for_nothing(process: CoordinatorProcess) -> None:
    node = resumed(process)
    process.harness.send(f.Issue(now(), 2, 8, CommandKind.SAVEPOINT, False))
    node.peer.expect(f.ForTask, message=Trigger(job=2, attempt=AttemptId(4), checkpoint=CheckpointId(9)))
    for task in TASKS:
        handle = Handle(f"job-1/chk-9/{task}-4")
        late = Ack(job=1, attempt=AttemptId(4), task=task, checkpoint=CheckpointId(9), handle=handle)
        node.peer.send(f.FromTask(now(), task, late))
    process.answers()
    assert process.harness.all(f.Completed) == []


def test_a_node_that_missed_the_end_of_its_job_is_notified_of_it(process: CoordinatorProcess) -> None:
    """What it says to live there is not the next job's, and its end no loss of that."""
    resumed(process)
    peer = process.connect(CONTROL)
    peer.send(f.Hello(now(), "node-7", 0, {MAP: AttemptId(1)}, 1))
    assert peer.expect(f.JobOver).job == 1
    peer.sock.close()
    process.answers()
    assert losses(process) == []


def test_the_runner_of_a_former_job_does_nothing_any_more(process: CoordinatorProcess) -> None:
    submit(process)
    FakeNode(process).runs()
    working(process)
    former = process.world.runner_now
    process.harness.send(f.Submit(now(), 2, AttemptId(4), 9, (), False))
    process.harness.expect(f.JobFacts, job=2)
    assert former is not None
    assert not former.alive
