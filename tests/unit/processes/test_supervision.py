"""What ties a process to its harness: it stands still when told, obeys in order, and does not outlive it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl.core.vocabulary.events import CommandKind
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.loop import Loop, monotonic_us
from cutproof.reference_impl.processes.network import frames as f
from cutproof.reference_impl.processes.network.connections import Outbox
from cutproof.reference_impl.processes.supervision import Supervision
from unit.processes.disks import end, forked
from unit.processes.rig import SUPERVISION, Peer, now, until


class Supervised:
    """Both ends of a supervision; `obeyed` is what the process was handed."""

    def __init__(self, folder: Path) -> None:
        self.loop = Loop(1, monotonic_us())
        self.outbox = Outbox(self.loop, Clock(monotonic_us))
        self.obeyed: list[f.Frame] = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(folder / "s"))
            listener.listen()
            self.supervision = Supervision(str(folder / "s"), self.outbox, self.obeyed.append)
            self.harness = Peer(listener.accept()[0], SUPERVISION)

    def run_once(self) -> None:
        """One turn of the process's loop, and of what has come by then."""
        self.loop.stopped = False
        self.loop.before_wait = self.outbox.flush
        self.loop.after(1_000, lambda *_: setattr(self.loop, "stopped", True))
        self.loop.run()


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    made = Supervised(tmp_path)
    yield made
    made.loop.close()
    made.harness.sock.close()


class Standing:
    """A process that has reached a point, in a thread."""

    def __init__(self, supervised: Supervised) -> None:
        self._thread = threading.Thread(
            target=supervised.supervision.announce, args=("ack-sent", "map-0", "before"), daemon=True
        )
        self._thread.start()
        self.reached = supervised.harness.expect(f.Reached)

    @property
    def stands(self) -> bool:
        return self._thread.is_alive()

    def has_resumed(self) -> bool:
        self._thread.join(5)
        return not self._thread.is_alive()


def test_it_names_itself(supervised: Supervised) -> None:
    supervised.supervision.ready("node-1", 3)
    supervised.outbox.flush()
    hello = supervised.harness.expect(f.Ready)
    assert (hello.process, hello.incarnation) == ("node-1", 3)
    assert hello.stamp > 0


def test_at_a_point_it_stands_still_until_it_may_go_on(supervised: Supervised) -> None:
    standing = Standing(supervised)
    assert (standing.reached.point, standing.reached.task, standing.reached.side) == ("ack-sent", "map-0", "before")
    injection = f.RaiseException(now(), TaskId("map-0"), 0, False)
    supervised.harness.send(injection)
    until(lambda: supervised.obeyed)
    assert standing.stands, "another order is no permission"
    supervised.harness.send(f.Go(now()))
    assert standing.has_resumed()


@pytest.mark.parametrize("done", [True, False])
def test_before_a_commit_it_stands_still_until_it_learns_whether_the_store_gave_it_up(
    supervised: Supervised, done: bool
) -> None:
    arrived: list[bool] = []
    thread = threading.Thread(
        target=lambda: arrived.append(supervised.supervision.expire(2, "job-1/sink-0/1-1", 3)), daemon=True
    )
    thread.start()
    asked = supervised.harness.expect(f.Expiring)
    assert (asked.fault, asked.name, asked.attempt) == (2, "job-1/sink-0/1-1", 3)
    assert thread.is_alive()
    supervised.harness.send(f.Go(now(), done))
    thread.join(5)
    assert arrived == [done]


def test_a_permission_is_good_for_one_point(supervised: Supervised) -> None:
    first = Standing(supervised)
    supervised.harness.send(f.Go(now()))
    assert first.has_resumed()
    second = Standing(supervised)
    supervised.harness.send(f.Disarm(now(), 1))
    until(lambda: supervised.obeyed)
    assert second.stands
    supervised.harness.send(f.Go(now()))
    assert second.has_resumed()


def test_faults_that_wait_are_armed_while_it_stands_and_other_orders_wait_for_the_step(supervised: Supervised) -> None:
    standing = Standing(supervised)
    ask, issue = f.Ask(now(), 7), f.Issue(now(), 1, 0, CommandKind.SAVEPOINT, False)
    at_once = [
        f.Arm(now(), "fail-write", "map-0", 0, 1),
        f.Meddle(now(), "lose", "ack", None, 2, 0),
        f.RaiseException(now(), TaskId("map-0"), 3, True),
        f.Disarm(now(), 0),
    ]
    for frame in (ask, *at_once[:2], issue, *at_once[2:]):
        supervised.harness.send(frame)
    until(lambda: len(supervised.obeyed) >= len(at_once))
    assert supervised.obeyed == at_once
    supervised.harness.send(f.Go(now()))
    assert standing.has_resumed()
    assert supervised.obeyed == at_once, "the step is not over before the loop has its turn"
    supervised.run_once()
    assert supervised.obeyed == [*at_once, ask, issue]


def test_nothing_is_behind_a_point(supervised: Supervised) -> None:
    """What was seen and said before is out before the harness hears of the point."""
    seen: list[list[f.Reached]] = []

    def flush() -> None:
        seen.append(supervised.harness.all(f.Reached))
        supervised.outbox.flush()

    supervised.supervision.flush_all = flush
    standing = Standing(supervised)
    assert seen == [[]], "written first, then told"
    supervised.harness.send(f.Go(now()))
    assert standing.has_resumed()


def test_a_process_that_dies_of_a_fault_first_sends_what_it_had_to_send(supervised: Supervised) -> None:
    def die() -> None:
        supervised.supervision.send(f.Fired(now(), 4, "half of it is written", None))
        supervised.supervision.die()

    child = forked(die)
    assert supervised.harness.expect(f.Fired).fault == 4
    assert end(child) == -signal.SIGKILL


@pytest.mark.parametrize("stands", [False, True], ids=["at work", "at a point"])
def test_a_process_whose_harness_has_ended_ends_at_once(tmp_path: Path, stands: bool) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def live() -> None:
            listener.close()
            loop = Loop(1, monotonic_us())
            outbox = Outbox(loop, Clock(monotonic_us))
            supervision = Supervision(str(path), outbox, lambda frame: None)
            loop.before_wait = outbox.flush
            if stands:
                supervision.announce("ack-sent", None, "before")
            supervision.ready("node-1", 0)
            loop.run()
            os._exit(9)

        child = forked(live)
        harness = Peer(listener.accept()[0], SUPERVISION)
        harness.expect(f.Reached if stands else f.Ready)
        harness.sock.close()
        assert end(child) == 1
