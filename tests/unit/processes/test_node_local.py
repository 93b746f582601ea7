"""A node whose tasks recover locally: what it does with what it cannot read or write, and whom its senders believe."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Barrier, Complete, Deploy
from cutproof.reference_impl.processes.disk import determinants as determinants
from cutproof.reference_impl.processes.disk.determinants import ORDER, DiskDeterminants
from cutproof.reference_impl.processes.network import frames as f
from unit.processes.greeted import SECRET, accepted
from unit.processes.rig import CHANNELS, DATA, SLOW, TASKS, JobOptions, Node, Peer, lives_without_harness, now

__all__ = ["lives_without_harness"]

SOURCE, MAP, SINK = TASKS
JOB = JobOptions(config=msgspec.structs.replace(SLOW, alignment="unaligned", spilling="continuous", failover="local"))
NO_SPACE = OSError(errno.ENOSPC, "No space left on device")
FIRST = AttemptId(1)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """One that `map-0` lives in, alone."""
    with Node(tmp_path, MAP, job=JOB) as made:
        yield made


def send(node: Node, message: Deploy | Complete) -> None:
    node.coordinator.send(f.ForTask(now(), node.world.node.tasks[0], message))


def comes_up(node: Node) -> None:
    send(node, Deploy(job=1, attempt=FIRST))
    node.harness.expect(f.Up, attempt=1)


def failure(node: Node, attempt: int) -> str:
    """Why an attempt failed: it says so in one line, in its journal too, and its process lives."""
    failed = node.coordinator.expect(f.Failed, task=MAP, attempt=attempt)
    assert "\n" not in str(failed.cause)
    node.answers()
    assert [(one.attempt, one.reason) for one in node.entries(o.TaskFailed)] == [(attempt, str(failed.cause))]
    return str(failed.cause)


def full(*_: object) -> None:
    raise NO_SPACE


def open_logs(node: Node) -> list[str]:
    """The files of determinants that the node has open."""
    paths: list[Path] = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # another thread has closed it since
            paths.append(Path(os.readlink(f"/proc/self/fd/{number}")))
    return sorted(path.name for path in paths if path.is_relative_to(node.folder) and path.parent.name == ORDER)


def cannot(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(DiskDeterminants, what, full)


# -- what cannot be read or written ----------------------------------------------------------------


def test_a_determinant_log_that_is_altered_is_a_failure_of_its_task(node: Node) -> None:
    comes_up(node)
    (path,) = node.folder.glob("**/order/00000001.*")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    send(node, Deploy(job=1, attempt=AttemptId(2), channels_of=FIRST))
    assert "the determinant log 00000001.0001 is altered" in failure(node, 2)


def test_a_determinant_log_that_cannot_be_begun_is_a_failure_of_its_task(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(determinants, "sync", full)
    send(node, Deploy(job=1, attempt=FIRST))
    assert "No space left" in failure(node, 1)
    assert node.harness.all(f.Up) == []


def test_a_task_whose_beginning_cannot_be_written_leaves_nothing_open(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def full_now(*_: object) -> None:
        opened.extend(open_logs(node))
        raise NO_SPACE

    monkeypatch.setattr(DiskDeterminants, "mark", full_now)
    send(node, Deploy(job=1, attempt=FIRST))
    assert "No space left" in failure(node, 1)
    assert opened == ["00000001.0001"]
    assert open_logs(node) == []
    (run,) = node.entries(o.RunEnded)
    assert run.how is o.RunEnd.FAILED
    downstream = Peer(node.downstream.accept()[0], DATA)
    assert downstream.ends(), "its output is closed"
    downstream.sock.close()


def test_a_determinant_log_that_cannot_be_trimmed_is_a_failure_of_its_task(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes_up(node)
    cannot(monkeypatch, "trim")
    send(node, Complete(job=1, attempt=FIRST, checkpoint=CheckpointId(1), oldest=CheckpointId(1)))
    assert "No space left" in failure(node, 1)


def test_a_snapshot_whose_place_cannot_be_written_is_a_failure_of_its_task(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes_up(node)
    cannot(monkeypatch, "mark")
    sender = node.connect(DATA)
    sender.send(f.Open(now(), CHANNELS[0], FIRST, FIRST))
    sender.expect(f.Welcome)
    sender.send(f.Numbered(now(), 0, None, Barrier(CheckpointId(1))))
    assert "No space left" in failure(node, 1)


def test_a_log_that_cannot_be_taken_over_is_a_failure_of_its_task(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    comes_up(node)

    def unreadable(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(node.world.logs, "take_over", unreadable)
    send(node, Deploy(job=1, attempt=AttemptId(2), channels_of=FIRST))
    assert "Input/output error" in failure(node, 2)


def test_a_place_that_is_not_known_any_more_is_a_failure_of_its_task(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(determinants, "REWRITTEN_BEHIND", 0)
    comes_up(node)
    node.coordinator.expect(f.FromTask)  # it runs
    sender = node.connect(DATA)
    sender.send(f.Open(now(), CHANNELS[0], FIRST, FIRST))
    sender.expect(f.Welcome)
    sender.send(f.Numbered(now(), 0, None, Barrier(CheckpointId(1))))
    node.coordinator.expect(f.FromTask)  # its snapshot is durable
    send(node, Complete(job=1, attempt=FIRST, checkpoint=CheckpointId(1), oldest=CheckpointId(1)))
    send(node, Deploy(job=1, attempt=AttemptId(2), channels_of=FIRST))
    assert failure(node, 2) == "the place in its determinant log at which it began is not known"


def test_whoever_has_come_too_late_leaves_nothing_open(node: Node) -> None:
    comes_up(node)
    assert open_logs(node) == ["00000001.0001"]
    (fence,) = node.folder.glob("**/order/00000001")
    fence.with_name("00000003").touch()
    send(node, Deploy(job=1, attempt=AttemptId(2), channels_of=FIRST))
    node.answers()
    assert [up.attempt for up in node.harness.all(f.Up)] == [1]
    assert fence.with_name("00000002.0001").exists(), "it had begun"
    assert open_logs(node) == []


def test_nobody_recovers_locally_between_channels_that_have_no_log(tmp_path: Path) -> None:
    with Node(tmp_path, MAP) as plain:
        with pytest.raises(ProtocolViolated, match="channels that have no log"):
            plain.world.come_up(MAP, AttemptId(2), channels_of=FIRST)
        assert plain.world.attempt_of(MAP) is None


# -- whom senders believe --------------------------------------------------------------------------


def test_a_sender_that_comes_up_later_takes_no_word_of_a_receiver_that_was_replaced(tmp_path: Path) -> None:
    with Node(tmp_path, SOURCE, job=JOB) as node:
        comes_up(node)
        node.coordinator.send(f.Moved(now(), MAP, AttemptId(2)))
        send(node, Deploy(job=1, attempt=AttemptId(3), channels_of=FIRST))
        node.harness.expect(f.Up, attempt=3)
        zombie = connected(node, 3)
        zombie.send(f.Welcome(now(), FIRST, 0, 0, 0, 0))
        assert zombie.ends()
        receiver = connected(node, 3)
        receiver.send(f.Welcome(now(), AttemptId(2), 0, 0, 0, 0))
        receiver.expect(f.Numbered, number=0)


def connected(node: Node, attempt: int) -> Peer:
    """The next connection of that attempt of the sender."""
    while True:
        peer = node.keep(Peer(accepted(node.downstream, SECRET), DATA))
        if peer.expect(f.Open).attempt == attempt:
            return peer
