"""A node: what it says to whom, whose word it takes, and what becomes of it when something in it breaks."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.vocabulary.causes import EngineRaised
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Ack, Barrier, Complete, Deploy, Record, Running
from cutproof.reference_impl.processes.network import frames as f
from unit.processes.greeted import SECRET, accepted
from unit.processes.rig import (
    CHANNELS,
    CONTROL,
    DATA,
    TASKS,
    JobOptions,
    Node,
    Peer,
    lives_without_harness,
    now,
    until,
)

__all__ = ["lives_without_harness"]

SOURCE, MAP, SINK = TASKS
INTO, OUT = CHANNELS


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """One that `map-0` lives in, alone."""
    with Node(tmp_path, MAP, felt=frozenset([INTO])) as made:
        yield made


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Node]:
    """One that every task of the job lives in."""
    with Node(tmp_path, *TASKS) as made:
        yield made


def deploy(node: Node, *tasks: TaskId, attempt: int = 1, job: int = 1) -> None:
    """Have tasks come up, and wait until they have."""
    for task in tasks or (MAP,):
        send(node, Deploy(job=job, attempt=AttemptId(attempt)), task)
        node.harness.expect(f.Up, task=task, attempt=attempt)


def send(node: Node, message: object, task: TaskId = MAP) -> None:
    node.coordinator.send(f.ForTask(now(), task, message))  # type: ignore[arg-type]


def upstream(node: Node, attempt: int = 1, channel: str = INTO) -> Peer:
    """The sender of the node's input."""
    sender = node.connect(DATA)
    sender.send(f.Open(now(), channel, AttemptId(attempt)))
    sender.expect(f.Accepted)
    return sender


# -- the coordinator -------------------------------------------------------------------------------------------------


def test_it_sends_hello_and_then_heartbeats(node: Node) -> None:
    hello = node.coordinator.expect(f.Hello)
    assert (hello.process, hello.incarnation, hello.attempts) == ("node-0", 0, {MAP: None})
    for _ in range(3):
        node.coordinator.expect(f.Heartbeat)


def test_a_task_that_is_deployed_comes_up_and_reports_it_to_both(node: Node) -> None:
    deploy(node, attempt=4, job=2)
    assert node.coordinator.expect(f.FromTask).message == Running(job=2, attempt=AttemptId(4), task=MAP)
    (started,) = node.entries(o.TaskStarted)
    assert (started.task, started.operator, started.attempt, started.job) == (MAP, "map", 4, 2)
    assert (started.inputs, started.outputs) == ((INTO,), (OUT,))


def test_what_it_has_seen_is_written_before_anybody_learns_of_it(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it writes that the task has started, nobody has been told yet."""
    write = os.write
    seen: list[int] = []

    def watched(file: int, data: bytes) -> int:
        if b"TaskStarted" in bytes(data) and Path(f"/proc/self/fd/{file}").resolve().parent == node.folder / "journal":
            seen.append(len(node.harness.all(f.Up)) + len(node.coordinator.all(f.FromTask)))
        return write(file, data)

    monkeypatch.setattr(os, "write", watched)
    send(node, Deploy(job=1, attempt=AttemptId(1)))
    until(lambda: seen)
    assert seen == [0]
    node.harness.expect(f.Up)
    node.coordinator.expect(f.FromTask)


def test_a_connection_that_ends_is_made_again_and_reports_what_lives_there(node: Node) -> None:
    deploy(node, attempt=3)
    node.coordinator.sock.shutdown(socket.SHUT_RDWR)
    assert node.greeted().expect(f.Hello).attempts == {MAP: 3}


def test_a_coordinator_that_speaks_another_version_is_hung_up_on_and_the_node_lives(node: Node) -> None:
    node.coordinator.babble()
    assert node.coordinator.ends()
    again = node.greeted()
    again.expect(f.Hello)
    node.coordinator = again
    deploy(node)


def test_an_older_attempt_is_not_deployed_over_a_newer(node: Node) -> None:
    deploy(node, attempt=2)
    send(node, Deploy(job=1, attempt=AttemptId(1)))
    send(node, Deploy(job=1, attempt=AttemptId(2)))
    node.answers()
    assert [up.attempt for up in node.harness.all(f.Up)] == [2]
    assert node.harness.all(f.Down) == []


def test_a_newer_attempt_takes_the_place_of_an_older(node: Node) -> None:
    deploy(node, attempt=1)
    sender = upstream(node, attempt=1)
    send(node, Deploy(job=1, attempt=AttemptId(2)))
    assert node.harness.expect(f.Down).attempt == 1
    assert [ended.how for ended in node.entries(o.RunEnded)] == [o.RunEnd.CANCELLED]
    assert node.harness.expect(f.Up).attempt == 2
    sender.expect(f.Bye)
    assert sender.ends()


def test_messages_for_another_attempt_are_passed_over(node: Node) -> None:
    deploy(node, attempt=2)
    for attempt in (1, 3):
        send(node, Complete(job=1, attempt=AttemptId(attempt), checkpoint=CheckpointId(1)))
    node.answers()
    assert node.coordinator.all(f.Failed) == []


def test_when_the_job_is_over_nothing_of_it_runs_on(whole: Node) -> None:
    deploy(whole, *TASKS)
    whole.coordinator.send(f.JobOver(now(), 1))
    lost = [whole.harness.expect(f.Down).task for _ in TASKS]
    assert sorted(lost) == sorted(TASKS)
    whole.answers()


def test_one_whose_place_is_taken_ends_what_runs_and_goes(whole: Node) -> None:
    deploy(whole, *TASKS)
    whole.coordinator.send(f.GivenUp(now()))
    assert whole.has_ended()
    assert whole.ended_with is None
    assert [ended.how for ended in whole.entries(o.RunEnded)] == [o.RunEnd.CANCELLED] * 3


# -- the harness -----------------------------------------------------------------------------------------------------


def test_it_stops_at_a_point_that_is_waited_for_and_does_what_was_asked_meanwhile_afterwards(tmp_path: Path) -> None:
    with Node(tmp_path, MAP, points=frozenset(["task-deployed"])) as node:
        send(node, Deploy(job=1, attempt=AttemptId(1)))
        reached = node.harness.expect(f.Reached)
        assert (reached.point, reached.task, reached.side) == ("task-deployed", MAP, "before")
        node.harness.send(f.Echo(now(), 7))
        node.harness.send(f.RaiseException(now(), MAP, 0, False))
        node.harness.send(f.Arm(now(), "fail-write", MAP, 1, 1))
        until(lambda: node.world.arms.remaining() == [1])
        assert not node.harness.all(f.Up)
        assert not node.harness.all(f.Echo)
        node.harness.send(f.Go(now()))
        node.harness.expect(f.Up)
        assert node.harness.expect(f.Reached).side == "after"
        assert node.entries(o.TaskStarted), "all that came before the point is written"
        assert node.harness.all(f.Echo) == []
        node.harness.send(f.Go(now()))
        node.harness.expect(f.Echo, number=7)


def test_points_that_nobody_waits_for_are_passed_in_silence(node: Node) -> None:
    deploy(node)
    node.answers()
    assert node.harness.all(f.Reached) == []


def test_a_task_that_may_not_see_a_record_has_not_taken_it(tmp_path: Path) -> None:
    with Node(tmp_path, MAP, points=frozenset(["record-applied"])) as node:
        deploy(node)
        sender = upstream(node)
        sender.send(f.Data(now(), Record(1, 2, 3, 0, 0)))
        assert node.harness.expect(f.Reached).side == "before"
        assert node.entries(o.RecordApplied) == []
        node.harness.send(f.Go(now()))
        assert node.harness.expect(f.Reached).side == "after"
        assert len(node.entries(o.RecordApplied)) == 1
        node.harness.send(f.Go(now()))


def test_facts_are_reported_when_they_change_and_only_then(tmp_path: Path) -> None:
    """Here: the oldest transaction that a sink has sealed and not settled."""
    with Node(tmp_path, SINK, job=JobOptions(config=Config(sink="transactional"))) as node:
        deploy(node, SINK)
        sender = upstream(node, channel=OUT)
        for number in range(3):
            sender.send(f.Data(now(), Record(1, number, number, 0, number << 8)))
        sender.send(f.Data(now(), Barrier(CheckpointId(1))))
        facts = node.harness.expect(f.TaskFacts)
        assert (facts.task, facts.aligning, facts.unsettled) == (SINK, False, 1)
        until(lambda: len(node.coordinator.all(f.FromTask)) == 2)
        send(node, Complete(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(1)), SINK)
        assert node.harness.expect(f.TaskFacts).unsettled is None
        node.answers()
        assert len(node.harness.all(f.TaskFacts)) == 2


def test_what_the_phase_depends_on_is_reported_before_a_point(tmp_path: Path) -> None:
    """A fault at that point is counted under the phase that it fires in."""
    job = JobOptions(config=Config(sink="transactional"))
    with Node(tmp_path, SINK, job=job, points=frozenset(["barrier-received"])) as node:
        deploy(node, SINK)
        sender = upstream(node, channel=OUT)
        sender.send(f.Data(now(), Record(1, 2, 3, 0, 0)))
        sender.send(f.Data(now(), Barrier(CheckpointId(1))))
        node.harness.expect(f.Reached, side="before")
        node.harness.send(f.Go(now()))
        node.harness.expect(f.Reached, side="after")
        seen = [frame for frame in node.harness.arrived if isinstance(frame, f.TaskFacts | f.Reached)]
        assert [getattr(frame, "unsettled", None) for frame in seen] == [None, 1, None]
        node.harness.send(f.Go(now()))


def test_close_ends_it_in_order(node: Node) -> None:
    deploy(node)
    sender = upstream(node)
    node.harness.send(f.Close(now()))
    assert node.has_ended()
    assert node.ended_with is None
    sender.expect(f.Bye)
    assert node.entries(o.RunEnded) == [], "what lives now stays so in what was observed"


# -- data ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("greets", [True, False], ids=["of a channel", "of nobody"])
def test_a_peer_that_speaks_another_version_is_hung_up_on_and_the_node_lives(node: Node, greets: bool) -> None:
    deploy(node)
    sender = upstream(node) if greets else node.connect(DATA)
    sender.babble()
    assert sender.ends()
    node.answers()
    if greets:
        broke = node.harness.expect(f.Broke)
        assert broke.reason == "a frame begins with 99: this side speaks version 1 of the wire"
        assert node.coordinator.expect(f.Failed).task == MAP


def test_a_frame_of_another_conversation_is_not_understood(node: Node) -> None:
    stranger = node.connect(CONTROL)
    stranger.send(f.Heartbeat(now()))
    assert stranger.ends()
    node.answers()


def test_a_connection_that_breaks_fails_its_receiver_and_is_reported_to_everybody(node: Node) -> None:
    deploy(node, attempt=2)
    sender = upstream(node, attempt=2)
    sender.sock.close()
    broke = node.harness.expect(f.Broke)
    assert (broke.channel, broke.attempt) == (INTO, 2)
    failed = node.coordinator.expect(f.Failed)
    assert (failed.task, failed.attempt, str(failed.cause)) == (
        MAP,
        2,
        "its connection from source-0 broke: it was closed",
    )
    node.harness.expect(f.Down)
    assert [ended.how for ended in node.entries(o.RunEnded)] == [o.RunEnd.FAILED]
    (written,) = node.entries(o.TaskFailed)
    assert (written.task, written.attempt, written.fault) == (MAP, 2, None)


def test_it_reports_what_a_proxied_connection_let_it_feel(node: Node) -> None:
    deploy(node)
    sender = upstream(node)
    sender.send(f.Data(now() - 300_000, Record(1, 2, 3, 0, 0)))
    felt = node.harness.expect(f.Felt)
    assert (felt.channel, felt.attempt) == (INTO, 1)
    assert felt.transit_us >= 300_000


def test_records_go_through_it_to_the_next_task(node: Node) -> None:
    deploy(node)
    sender = upstream(node)
    receiver = node.keep(Peer(accepted(node.downstream, SECRET), DATA))
    assert receiver.expect(f.Open).channel == OUT
    receiver.send(f.Accepted(now(), 4))
    record = Record(1, 2, 3, 0, 256)
    sender.send(f.Data(now(), record))
    assert receiver.expect(f.Data).element == record
    sender.expect(f.Credit)


# -- several tasks ---------------------------------------------------------------------------------------------------


def test_tasks_of_one_node_reach_each_other_through_its_own_port(whole: Node) -> None:
    deploy(whole, *TASKS)
    until(lambda: len(whole.entries(o.RecordApplied)) == 6)
    runs = {one.run: one.task for one in whole.entries(o.TaskStarted)}
    assert sorted(runs[one.run] for one in whole.entries(o.RecordApplied)) == [MAP] * 3 + [SINK] * 3
    assert len(whole.entries(o.RecordRead)) == 3


def test_it_counts_for_each_of_its_tasks(whole: Node) -> None:
    deploy(whole, *TASKS)
    until(lambda: len(whole.entries(o.RecordApplied)) == 6)
    whole.answers()
    whole.harness.send(f.Ask(now(), 5))
    counts = {count.task: count for count in [whole.harness.expect(f.Count) for _ in TASKS]}
    assert list(counts) == list(TASKS)
    assert [count.now for count in counts.values()] == [3, 3, 3]
    assert [count.at_mark for count in counts.values()] == [None, None, None], (
        "no snapshot of that checkpoint was taken"
    )
    assert counts[MAP].sent == {OUT: 3} == counts[SINK].received
    assert counts[MAP].received == {INTO: 3} == counts[SOURCE].sent


def test_one_of_its_tasks_fails_and_the_node_lives(whole: Node) -> None:
    """What it sends to breaks off, and fails too, sooner or later; what it hears from goes on."""
    whole.harness.send(f.RaiseException(now(), MAP, 6, False))
    deploy(whole, *TASKS)
    fired = whole.harness.expect(f.Fired)
    assert (fired.fault, fired.attempt) == (6, 1)
    failed = whole.coordinator.expect(f.Failed)
    assert failed.task == MAP
    whole.answers()
    down = [one.task for one in whole.harness.all(f.Down)]
    assert down[0] == MAP
    assert SOURCE not in down
    assert whole.entries(o.TaskFailed)[0].fault == 6


# -- what breaks in it -----------------------------------------------------------------------------------------------


def test_what_a_machine_raises_fails_its_task_and_not_the_node(tmp_path: Path) -> None:
    with Node(tmp_path, MAP, job=JobOptions(raises=True)) as node:
        send(node, Deploy(job=1, attempt=AttemptId(1)))
        assert node.coordinator.expect(f.Failed).cause == EngineRaised("RuntimeError: of its own")
        node.answers()
        (written,) = node.entries(o.TaskFailed)
        assert (written.reason, written.fault) == ("the engine raised RuntimeError: of its own", None)


def test_an_injected_exception_waits_for_the_next_attempt_if_there_is_none(node: Node) -> None:
    node.harness.send(f.RaiseException(now(), MAP, 2, True))
    for attempt in (1, 2):
        deploy(node, attempt=attempt)
        upstream(node, attempt).send(f.Data(now(), Record(1, 2, 3, 0, 0)))
        assert node.harness.expect(f.Fired).fault == 2
        assert "injected" in str(node.coordinator.expect(f.Failed).cause)


def test_what_is_raised_outside_of_machines_ends_the_process(tmp_path: Path) -> None:
    """Its thread is its process here: what `live` makes of that, its own test says."""
    with Node(tmp_path, MAP) as node:
        node.harness.send(f.Submit(now(), 1, AttemptId(1), 1, (), False))
        assert node.has_ended()
        assert isinstance(node.ended_with, KeyError), "that is the coordinator's to hear"


def test_a_barrier_is_a_mark_and_goes_on(node: Node) -> None:
    deploy(node)
    sender = upstream(node)
    receiver = node.keep(Peer(accepted(node.downstream, SECRET), DATA))
    receiver.expect(f.Open)
    receiver.send(f.Accepted(now(), 4))
    sender.send(f.Data(now(), Record(1, 2, 3, 0, 0)))
    sender.send(f.Data(now(), Barrier(CheckpointId(1))))
    assert [type(receiver.expect(f.Data).element) for _ in range(2)] == [Record, Barrier]
    running, ack = node.coordinator.expect(f.FromTask), node.coordinator.expect(f.FromTask)
    assert isinstance(running.message, Running)
    assert isinstance(ack.message, Ack)
    assert ack.message.checkpoint == 1
    (marked,) = node.entries(o.Marked)
    assert (marked.checkpoint, marked.received, marked.sent) == (1, (1,), (1,))
    (stored,) = [entry.stamp for entry in node.journal if isinstance(entry.event, o.SnapshotStored)]
    assert stored < ack.stamp, "durable first, acknowledged then"
    node.harness.send(f.Ask(now(), 1))
    assert node.harness.expect(f.Count).at_mark == 1
