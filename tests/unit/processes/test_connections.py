"""Connections between processes: what one side said before it died is heard, whatever is sent to it then."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.loop import Loop, monotonic_us
from cutproof.reference_impl.processes.network.connections import Connection, Outbox, dial
from cutproof.reference_impl.processes.network.frames import Echo, Frame, SupervisionFrame
from cutproof.reference_impl.processes.supervision import CODEC


class Side:
    """One end of a pair; the other is a bare socket, whose process may die."""

    def __init__(self, own: socket.socket | None = None) -> None:
        self.loop = Loop(1, monotonic_us())
        self.outbox = Outbox(self.loop, Clock(monotonic_us))
        pair, self.other = socket.socketpair()
        if own is not None:
            pair.close()
        self.arrived: list[Frame] = []
        self.ends: list[str] = []
        self.connection = Connection(own or pair, CODEC, self.outbox, self.arrived.append, self.ends.append)

    def sends(self, frame: SupervisionFrame) -> None:
        """The other end does."""
        self.other.sendall(CODEC.encode(frame))

    def until_it_ends(self) -> None:
        def look(*_: object) -> None:
            self.loop.stopped = bool(self.ends) or self.loop.now > 5_000_000
            self.loop.after(500, look)

        self.loop.before_wait = self.outbox.flush
        look()
        self.loop.run()
        assert len(self.ends) == 1

    def close(self) -> None:
        self.connection.close()
        self.other.close()
        self.loop.close()


@pytest.fixture
def side() -> Iterator[Side]:
    made = Side()
    yield made
    made.close()


def test_last_words_are_received_though_what_was_sent_to_the_dead_is_lost(side: Side) -> None:
    side.connection.send(Echo(1, 1))
    side.connection.flush()
    side.sends(Echo(2, 7))
    side.other.close()  # with something in it that it has not read
    side.connection.send(Echo(3, 2))
    side.until_it_ends()
    assert [frame.number for frame in side.arrived] == [7]  # type: ignore[attr-defined]


def test_whom_nobody_listens_to_is_notified_of_the_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
    refused = Side(dial(port))
    refused.connection.send(Echo(1, 1))
    refused.until_it_ends()
    refused.close()
    assert refused.arrived == []
