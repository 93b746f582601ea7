"""The coordinator's process: whom it takes for alive, what it carries to whom, and what it answers the harness."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.reference_impl.core.events import CompletedSnapshot, JobRecord
from cutproof.reference_impl.core.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.messages import Ack, Cancel, Complete, Deploy, Running, Trigger
from cutproof.reference_impl.processes import coordinator as module
from cutproof.reference_impl.processes import entries as e
from cutproof.reference_impl.processes import frames as f
from cutproof.reference_impl.processes.coordinator import NO_HEARTBEAT, PROCESS_GONE
from cutproof.reference_impl.processes.files import DiskFiles, DiskJobs
from cutproof.reference_impl.processes.loop import monotonic_us
from cutproof.reference_impl.processes.world import CRASHED
from unit.processes.rig import (
    CONTROL,
    SLOW,
    TASKS,
    CoordinatorProcess,
    JobOptions,
    lives_without_harness,
    now,
    until,
)

__all__ = ["lives_without_harness"]

APART: dict[TaskId, str] = {task: str(task) for task in TASKS}
QUICK: dict[str, Any] = {"heartbeat_us": 20_000, "heartbeat_timeout_us": 60_000}


class FakeNode:
    """A node as the coordinator knows one."""

    def __init__(
        self, process: CoordinatorProcess, name: str = "node-0", incarnation: int = 0, *, attempt: int = 0
    ) -> None:
        homes = process.world.coordination.processes
        self.tasks = [task for task in TASKS if homes[task] == name]
        self.peer = process.connect(CONTROL)
        self.peer.send(f.Hello(now(), name, incarnation, dict.fromkeys(self.tasks, AttemptId(attempt))))
        known = process.world.control._all
        until(lambda: any((one.process, one.incarnation) == (name, incarnation) for one in list(known)))

    def deployed(self, attempt: int) -> None:
        for task in self.tasks:
            self.peer.expect(f.ForTask, task=task, message=Deploy(attempt=AttemptId(attempt)))

    def runs(self, attempt: int = 1) -> FakeNode:
        """Come up with every task."""
        self.deployed(attempt)
        for task in self.tasks:
            self.peer.send(f.FromTask(now(), task, Running(attempt=AttemptId(attempt), task=task)))
        return self

    def acknowledges(self, checkpoint: int, attempt: int = 1) -> None:
        for task in self.tasks:
            handle = Handle(f"job-1/chk-{checkpoint}/{task}-{attempt}")
            message = Ack(
                attempt=AttemptId(attempt), task=task, checkpoint=CheckpointId(checkpoint), handle=handle, state=None
            )
            self.peer.send(f.FromTask(now(), task, message))

    @property
    def messages(self) -> list[object]:
        return [frame.message for frame in self.peer.all(f.ForTask)]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(tmp_path) as made:
        yield made


def submit(process: CoordinatorProcess, attempt: int = 1, checkpoint: int = 1, **told: object) -> None:
    initial = told.get("initial", ())
    process.harness.send(f.Submit(now(), 1, AttemptId(attempt), checkpoint, initial, bool(told.get("recall"))))  # type: ignore[arg-type]


def working(process: CoordinatorProcess, attempt: int = 1) -> None:
    process.harness.expect(f.JobFacts, stage="working", attempt=attempt)


def savepoint(process: CoordinatorProcess, node: FakeNode, checkpoint: int = 1, command: int = 0) -> None:
    """Have one triggered, and wait until it is."""
    process.harness.send(f.Issue(now(), command, "savepoint", False))
    node.peer.expect(f.ForTask, message=Trigger(attempt=AttemptId(1), checkpoint=CheckpointId(checkpoint)))


def losses(process: CoordinatorProcess) -> list[tuple[str, int, str]]:
    return [(one.task, one.attempt, one.reason) for one in process.entries(e.TaskFailed)]


# -- deployments -----------------------------------------------------------------------------------------------------


def test_a_deployment_waits_for_a_process_that_is_not_there_yet(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, processes=APART) as process:
        submit(process)
        early = FakeNode(process, "source-0").runs()
        process.answers()
        assert process.harness.all(f.JobFacts)[-1].stage == "deploying"
        assert [type(message) for message in early.messages] == [Deploy]
        FakeNode(process, "map-0").runs()
        FakeNode(process, "sink-0").runs()
        working(process)


def test_a_deployment_of_an_attempt_that_is_over_is_no_longer_made(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, processes=APART) as process:
        submit(process)
        FakeNode(process, "source-0").runs().peer.sock.close()
        process.harness.expect(f.JobFacts, stage="deploying", attempt=2)
        process.world.control._waiting[TASKS[2]] = Deploy(attempt=AttemptId(1))  # as while the next is being saved
        FakeNode(process, "map-0").deployed(2)
        late = FakeNode(process, "sink-0")
        process.answers()
        assert late.messages == []


def test_tasks_of_one_process_are_deployed_there_together(process: CoordinatorProcess) -> None:
    node = FakeNode(process)
    submit(process, attempt=7)
    node.runs(7)
    working(process, 7)


def test_the_numbers_of_a_job_begin_where_it_is_told(process: CoordinatorProcess) -> None:
    node = FakeNode(process)
    submit(process, attempt=5, checkpoint=12)
    node.runs(5)
    process.harness.send(f.Issue(now(), 0, "savepoint", False))
    node.peer.expect(f.ForTask, message=Trigger(attempt=AttemptId(5), checkpoint=CheckpointId(12)))


# -- who is there ----------------------------------------------------------------------------------------------------


def test_a_node_whose_connection_ends_is_lost_with_all_its_tasks(process: CoordinatorProcess) -> None:
    submit(process)
    FakeNode(process).runs().peer.sock.close()
    process.harness.expect(f.JobFacts, attempt=2)
    assert losses(process) == [(task, 1, PROCESS_GONE) for task in TASKS]
    FakeNode(process, incarnation=1).runs(2)
    working(process, 2)
    assert process.harness.all(f.Lost) == [], "who it was is known already"


def test_a_node_that_speaks_another_version_is_hung_up_on_and_the_coordinator_lives(
    process: CoordinatorProcess,
) -> None:
    submit(process)
    node = FakeNode(process).runs()
    node.peer.babble()
    assert node.peer.ends()
    process.harness.expect(f.JobFacts, attempt=2)
    assert losses(process) == [(task, 1, PROCESS_GONE) for task in TASKS]
    process.answers()


def test_a_replaced_incarnation_is_turned_away_and_nothing_is_deployed_there(process: CoordinatorProcess) -> None:
    newer = FakeNode(process, incarnation=1)
    process.answers()
    older = FakeNode(process, incarnation=0)
    older.peer.expect(f.GivenUp)
    submit(process)
    newer.runs()
    working(process)
    assert older.messages == []


def test_what_an_older_incarnation_says_counts_for_nothing(process: CoordinatorProcess) -> None:
    older = FakeNode(process)
    submit(process)
    older.runs()
    working(process)
    savepoint(process, older)
    newer = FakeNode(process, incarnation=1)
    newer.runs(2)
    working(process, 2)
    older.acknowledges(1)
    older.peer.send(f.Failed(now(), TASKS[1], AttemptId(1), "of old"))
    process.answers()
    assert process.harness.all(f.Completed) == []
    assert process.harness.all(f.JobFacts)[-1].attempt == 2
    assert losses(process) == [(task, 1, PROCESS_GONE) for task in TASKS], "lost when it was replaced, and once"


def test_the_end_of_an_older_connection_does_not_touch_what_lives_in_the_newer(process: CoordinatorProcess) -> None:
    older = FakeNode(process)
    submit(process)
    older.deployed(1)
    newer = FakeNode(process, incarnation=1)
    newer.runs(2)
    working(process, 2)
    older.peer.sock.close()
    until(lambda: len(process.world.control._all) == 1)
    process.harness.send(f.Issue(now(), 0, "savepoint", False))
    newer.peer.expect(f.ForTask, message=Trigger(attempt=AttemptId(2), checkpoint=CheckpointId(1)))
    assert process.harness.all(f.JobFacts)[-1].attempt == 2


def test_a_node_that_connects_again_keeps_what_runs_there(process: CoordinatorProcess) -> None:
    """As after the death of another coordinator: its tasks are those of an attempt."""
    FakeNode(process, attempt=3)
    process.answers()
    assert {task: attempt for task, (attempt, _) in process.world.control._deployed.items()} == dict.fromkeys(TASKS, 3)


# -- signs of life ---------------------------------------------------------------------------------------------------


def watched(process: CoordinatorProcess, times: int = 1) -> None:
    """It has looked after its nodes again."""
    for _ in range(times):
        before = process.world.control._watched_us
        until(lambda before=before: process.world.control._watched_us > before)  # type: ignore[misc]


def test_one_that_gives_no_sign_of_life_is_given_up_exactly_once(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, **QUICK) as process:
        node = FakeNode(process, incarnation=4)
        submit(process)
        node.runs()
        lost = process.harness.expect(f.Lost)
        assert (lost.process, lost.incarnation) == ("node-0", 4)
        watched(process, 6)
        process.answers()
        assert len(process.harness.all(f.Lost)) == 1
        assert losses(process) == [(task, 1, NO_HEARTBEAT) for task in TASKS]
        node.peer.sock.close()
        watched(process)
        process.answers()
        assert len(process.harness.all(f.Lost)) == 1
        assert len(losses(process)) == len(TASKS)


def test_one_that_was_given_up_and_speaks_again_is_told_so(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, **QUICK) as process:
        zombie = FakeNode(process)
        submit(process)
        zombie.runs()
        process.harness.expect(f.Lost)
        assert zombie.peer.all(f.GivenUp) == []
        zombie.peer.send(f.Heartbeat(now()))
        zombie.peer.expect(f.GivenUp)


def test_one_that_beats_is_not_given_up(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, heartbeat_us=20_000, heartbeat_timeout_us=150_000) as process:
        node = FakeNode(process)
        began = monotonic_us()
        while monotonic_us() - began < 400_000:
            node.peer.send(f.Heartbeat(now()))
            watched(process)
        assert process.harness.all(f.Lost) == []


def test_a_coordinator_that_stood_still_itself_blames_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was suspended: every node seems silent then."""
    leapt = [0]
    monkeypatch.setattr(module, "monotonic_us", lambda: monotonic_us() + leapt[0])
    with CoordinatorProcess(tmp_path, heartbeat_us=20_000, heartbeat_timeout_us=30_000_000) as process:
        FakeNode(process)
        process.answers()
        for _ in range(3):
            leapt[0] += 60_000_000
            watched(process, 2)
        process.answers()
        assert process.harness.all(f.Lost) == []


# -- checkpoints and commands ----------------------------------------------------------------------------------------


def test_a_checkpoint_that_all_have_acknowledged_is_complete_and_everybody_hears(process: CoordinatorProcess) -> None:
    submit(process)
    node = FakeNode(process).runs()
    working(process)
    savepoint(process, node, command=3)
    assert process.harness.expect(f.JobFacts, under_way=True).newest == 0
    node.acknowledges(1)
    assert process.harness.expect(f.Completed).checkpoint == 1
    assert process.harness.expect(f.Returned).command == 3
    node.peer.expect(f.ForTask, task=TASKS[2], message=Complete(attempt=AttemptId(1), checkpoint=CheckpointId(1)))
    process.answers()
    kinds = [type(entry) for entry in process.journal]
    wanted = [e.CommandIssued, e.CheckpointCompleting, e.CheckpointCompleted, e.CommandReturned]
    assert [kind for kind in kinds if kind in wanted] == wanted
    (returned,) = process.entries(e.CommandReturned)
    assert (returned.command, returned.checkpoint, returned.error) == (3, 1, "")
    (record,), unreadable = DiskFiles(process.folder / "store").survey()
    assert (record.checkpoint, record.savepoint, unreadable) == (1, True, ())


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
        process.harness.send(f.Freeze(now(), False))
        submit(process)
        node = FakeNode(process).runs()
        working(process)
        watched(process, 4)
        process.answers()
        assert [message for message in node.messages if isinstance(message, Trigger)] == []
        process.harness.send(f.Freeze(now(), True))
        node.peer.expect(f.ForTask, message=Trigger(attempt=AttemptId(1), checkpoint=CheckpointId(1)))


def test_a_job_that_ends_is_told_to_harness_and_nodes(process: CoordinatorProcess) -> None:
    submit(process)
    node = FakeNode(process).runs()
    working(process)
    savepoint(process, node)
    node.acknowledges(1)
    process.harness.expect(f.Completed)
    process.harness.send(f.Issue(now(), 1, "cancel", False))
    ended = process.harness.expect(f.Ended)
    assert (ended.job, ended.status, ended.retained) == (1, "cancelled", (1,))
    assert node.peer.expect(f.JobOver).job == 1
    (written,) = process.entries(e.JobEnded)
    assert (written.status, written.job) == ("cancelled", 1)
    node.peer.sock.close()
    process.answers()
    assert losses(process) == [], "who is not of a job cannot be lost to it"


# -- taking over -----------------------------------------------------------------------------------------------------


def test_one_that_takes_over_goes_on_from_what_is_durable(process: CoordinatorProcess) -> None:
    handles = {task: Handle(f"job-1/chk-4/{task}-2") for task in TASKS}
    snapshot = CompletedSnapshot(
        checkpoint=CheckpointId(4), job=1, attempt=AttemptId(2), savepoint=False, ending="", handles=handles
    )
    DiskFiles(process.folder / "store").store(snapshot)
    DiskJobs(process.folder / "store").save(
        JobRecord(job=1, attempt=AttemptId(2), next_checkpoint=CheckpointId(6), had_snapshot=True)
    )
    node = FakeNode(process, attempt=2)
    process.harness.send(f.TakeOver(now(), 1, AttemptId(1), 1, ()))
    node.peer.expect(f.ForTask, task=TASKS[0], message=Cancel(attempt=AttemptId(2)))
    process.harness.expect(f.JobFacts, stage="deploying")
    process.answers()
    deployed = [message for message in node.messages if isinstance(message, Deploy)]
    assert [(message.attempt, message.checkpoint) for message in deployed] == [(3, 4)] * len(TASKS)
    (changed,) = process.entries(e.CoordinatorChanged)
    assert changed.up


def test_one_that_takes_over_where_nothing_was_written_starts_from_its_orders(process: CoordinatorProcess) -> None:
    node = FakeNode(process)
    process.harness.send(f.TakeOver(now(), 1, AttemptId(9), 5, ()))
    node.runs(9)
    working(process, 9)


# -- what is done to its messages ------------------------------------------------------------------------------------


def meddle(process: CoordinatorProcess, how: str, message: str, by_us: int = 0) -> None:
    process.harness.send(f.Meddle(now(), how, message, TASKS[1], 8, by_us))
    process.answers()


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
    node.peer.expect(f.ForTask, task=TASKS[1], message=Complete(attempt=AttemptId(1), checkpoint=CheckpointId(2)))


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
        node.peer.expect(f.ForTask, task=TASKS[1], message=Complete(attempt=AttemptId(1), checkpoint=CheckpointId(1)))


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
    process.harness.send(f.Issue(now(), 0, "savepoint", False))
    assert process.has_ended()
    assert isinstance(process.ended_with, SystemExit)
    assert process.ended_with.code == CRASHED
    assert process.entries(e.CommandIssued), "what it had seen is written"
