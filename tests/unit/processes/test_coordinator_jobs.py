"""The coordinator's process: checkpoints, commands, taking over, and what is done to its messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.events import CommandKind, JobRecord
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle
from cutproof.reference_impl.core.vocabulary.messages import Cancel, Complete, Deploy, Trigger
from cutproof.reference_impl.core.vocabulary.stages import StageName
from cutproof.reference_impl.processes.disk.files import DiskFiles, DiskJobs
from cutproof.reference_impl.processes.network import frames as f
from cutproof.reference_impl.processes.world import CRASHED
from unit.processes.coordinated import APART, FakeNode, losses, meddle, savepoint, submit, watched, working
from unit.processes.rig import (
    SLOW,
    TASKS,
    CoordinatorProcess,
    JobOptions,
    lives_without_harness,
    now,
)
from unit.snapshots import snapshot

__all__ = ["lives_without_harness"]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(tmp_path) as made:
        yield made


# -- checkpoints and commands ----------------------------------------------------------------------------------------


def test_a_checkpoint_that_all_have_acknowledged_is_complete_and_everybody_is_notified(
    process: CoordinatorProcess,
) -> None:
    submit(process)
    node = FakeNode(process).runs()
    working(process)
    savepoint(process, node, command=3)
    assert process.harness.expect(f.JobFacts, under_way=True).newest is None
    node.acknowledges(1)
    assert process.harness.expect(f.Completed).checkpoint == 1
    assert process.harness.expect(f.Returned).command == 3
    node.peer.expect(
        f.ForTask,
        task=TASKS[2],
        message=Complete(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(1), oldest=CheckpointId(1)),
    )
    process.answers()
    kinds = [type(entry.event) for entry in process.journal]
    wanted = [o.CommandIssued, o.CheckpointCompleting, o.CheckpointCompleted, o.CommandReturned]
    assert [kind for kind in kinds if kind in wanted] == wanted
    (returned,) = process.entries(o.CommandReturned)
    assert (returned.command, returned.checkpoint, returned.error) == (3, 1, None)
    (record,), unreadable = DiskFiles(process.folder / "store").survey()
    assert (record.checkpoint, record.savepoint, unreadable) == (1, True, ())


def test_all_checkpoints_that_it_retains_are_reported(tmp_path: Path) -> None:
    job = JobOptions(config=msgspec.structs.replace(SLOW, retained_checkpoints=2, checkpoint_interval_us=10_000))
    with CoordinatorProcess(tmp_path, job=job) as process:
        submit(process)
        node = FakeNode(process).runs()
        working(process)
        for checkpoint in (1, 2, 3):
            node.peer.expect(
                f.ForTask, message=Trigger(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(checkpoint))
            )
            node.acknowledges(checkpoint)
        process.harness.expect(f.JobFacts, newest=3)
        reported = [(one.newest, one.retained) for one in process.harness.all(f.JobFacts)]
        assert list(dict.fromkeys(reported)) == [(None, ()), (1, (1,)), (2, (1, 2)), (3, (2, 3))]


def test_one_acknowledgement_too_few_is_no_checkpoint(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, processes=APART) as process:
        submit(process)
        source, *others = (FakeNode(process, name).runs() for name in APART.values())
        working(process)
        savepoint(process, source)
        for node in (source, others[0]):
            node.acknowledges(1)
        process.answers()
        assert process.harness.all(f.Completed) == []
        others[1].acknowledges(1)
        process.harness.expect(f.Completed)


def test_while_it_is_frozen_no_checkpoint_is_triggered(tmp_path: Path) -> None:
    job = JobOptions(config=msgspec.structs.replace(SLOW, checkpoint_interval_us=10_000))
    with CoordinatorProcess(tmp_path, job=job) as process:
        process.harness.send(f.Freeze(now(), 1, False))
        submit(process)
        node = FakeNode(process).runs()
        working(process)
        watched(process, 4)
        process.answers()
        assert [message for message in node.messages if isinstance(message, Trigger)] == []
        process.harness.send(f.Freeze(now(), 1, True))
        node.peer.expect(f.ForTask, message=Trigger(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(1)))


def test_a_job_that_ends_is_reported_to_harness_and_nodes(process: CoordinatorProcess) -> None:
    submit(process)
    node = FakeNode(process).runs()
    working(process)
    savepoint(process, node)
    node.acknowledges(1)
    process.harness.expect(f.Completed)
    process.harness.send(f.Issue(now(), 1, 1, CommandKind.CANCEL, False))
    ended = process.harness.expect(f.Ended)
    assert (ended.job, ended.status, ended.retained) == (1, Status.CANCELLED, (1,))
    assert node.peer.expect(f.JobOver).job == 1
    (written,) = process.entries(o.JobEnded)
    assert (written.status, written.job) == (Status.CANCELLED, 1)
    node.peer.sock.close()
    process.answers()
    assert losses(process) == [], "who is not of a job cannot be lost to it"


# -- taking over -----------------------------------------------------------------------------------------------------


def test_one_that_takes_over_goes_on_from_what_is_durable(process: CoordinatorProcess) -> None:
    handles = {task: Handle(f"job-1/chk-4/{task}-2") for task in TASKS}
    DiskFiles(process.folder / "store").store(snapshot(4, attempt=2, handles=handles))
    DiskJobs(process.folder / "store").save(
        JobRecord(job=1, attempt=AttemptId(2), next_checkpoint=CheckpointId(6), had_snapshot=True)
    )
    node = FakeNode(process, attempt=2)
    process.harness.send(f.TakeOver(now(), 1, AttemptId(1), 1, (), False))
    node.peer.expect(f.ForTask, task=TASKS[0], message=Cancel(job=1, attempt=AttemptId(2)))
    process.harness.expect(f.JobFacts, stage=StageName.DEPLOYING)
    process.answers()
    deployed = [message for message in node.messages if isinstance(message, Deploy)]
    assert [(message.attempt, message.checkpoint) for message in deployed] == [(3, 4)] * len(TASKS)
    (changed,) = process.entries(o.CoordinatorChanged)
    assert changed.up


def test_one_that_takes_over_where_nothing_was_written_starts_from_its_orders(process: CoordinatorProcess) -> None:
    node = FakeNode(process)
    process.harness.send(f.TakeOver(now(), 1, AttemptId(9), 5, (), False))
    node.runs(9)
    working(process, 9)
    deployed = [message for message in node.messages if isinstance(message, Deploy)]
    assert [(message.attempt, message.checkpoint) for message in deployed] == [(9, None)] * len(TASKS)


@pytest.mark.parametrize("taken_over", [False, True])
def test_one_that_does_not_hold_the_snapshots_that_it_is_to_recall_fails_the_job(
    process: CoordinatorProcess, taken_over: bool
) -> None:
    """Another coordinator held them in its memory, and it died before the job was resumed, or right after (ABS-14)."""
    order = f.TakeOver if taken_over else f.Submit
    process.harness.send(order(now(), 2, AttemptId(4), 9, (), True))
    ended = process.harness.expect(f.Ended)
    assert (ended.job, ended.status, ended.retained) == (2, Status.FAILED, ())
    (written,) = process.entries(o.JobEnded)
    assert written.reason == "its snapshots were in the memory of the coordinator that died (ABS-14)"


# -- what is done to its messages ------------------------------------------------------------------------------------


def test_a_message_that_is_lost_does_not_come_and_the_next_one_does(process: CoordinatorProcess) -> None:
    submit(process)
    node = FakeNode(process).runs()
    working(process)
    meddle(process, "lose", "complete")
    savepoint(process, node)
    node.acknowledges(1)
    fired = process.harness.expect(f.Fired)
    assert (fired.fault, fired.detail, fired.attempt) == (8, "complete of map-0: lose", 1)
    process.harness.expect(f.Returned)
    process.answers()
    assert len([message for message in node.messages if isinstance(message, Complete)]) == len(TASKS) - 1
    savepoint(process, node, 2, 1)
    node.acknowledges(2)
    node.peer.expect(
        f.ForTask,
        task=TASKS[1],
        message=Complete(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(2), oldest=CheckpointId(1)),
    )


def test_an_acknowledgement_that_is_late_holds_the_checkpoint_back(process: CoordinatorProcess) -> None:
    submit(process)
    node = FakeNode(process).runs()
    working(process)
    meddle(process, "late", "ack", 40_000)
    savepoint(process, node)
    node.acknowledges(1)
    fired = process.harness.expect(f.Fired)
    assert process.harness.expect(f.Completed).stamp - fired.stamp >= 40_000


def test_a_message_that_is_repeated_comes_twice(process: CoordinatorProcess) -> None:
    submit(process)
    node = FakeNode(process).runs()
    working(process)
    meddle(process, "repeat", "complete", 5_000)
    savepoint(process, node)
    node.acknowledges(1)
    for _ in range(2):
        node.peer.expect(
            f.ForTask,
            task=TASKS[1],
            message=Complete(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(1), oldest=CheckpointId(1)),
        )


# -- what breaks in it -----------------------------------------------------------------------------------------------


def test_what_its_machine_raises_is_its_end(process: CoordinatorProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(process)
    FakeNode(process).runs()
    working(process)

    def raises(event: object) -> list[object]:
        raise RuntimeError("of its own")

    runner = process.world.runner_now
    assert runner is not None
    monkeypatch.setattr(runner.machine, "step", raises)
    process.harness.send(f.Issue(now(), 1, 0, CommandKind.SAVEPOINT, False))
    assert process.has_ended()
    assert isinstance(process.ended_with, SystemExit)
    assert process.ended_with.code == CRASHED
    assert process.entries(o.CommandIssued), "what it had seen is written"
