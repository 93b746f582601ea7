"""A process's side of its supervision: it reports what it reaches, and stands still where the harness orders it to.

A process whose harness has ended ends at once.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable
from typing import NoReturn

from ..wire import Codec
from .network.connections import Connection, Outbox
from .network.frames import Arm, Disarm, Expiring, Go, Meddle, RaiseException, Reached, Ready, SupervisionFrame

CODEC: Codec[SupervisionFrame] = Codec(SupervisionFrame)


AT_ONCE = (Arm, Disarm, Meddle, RaiseException)
"""Orders that are carried out even while the process stands still at a point; others wait for the end of the step."""


class Supervision:
    """The connection to the harness; `on_frame` is given what it sends."""

    def __init__(self, path: str, outbox: Outbox, on_frame: Callable[[SupervisionFrame], None]) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(path)
        self._on_frame = on_frame
        self._outbox = outbox
        self._answers: list[Go] = []
        self.flush_all: Callable[[], None] = outbox.flush
        """writes what was observed and sends what was queued: at a point nothing may be pending"""
        self._connection = Connection(sock, CODEC, outbox, self._take, supervisor_ended)

    def ready(self, process: str, incarnation: int) -> None:
        self.send(Ready(self.stamp(), process, incarnation))

    def stamp(self) -> int:
        return self._outbox.clock.tick()

    def send(self, frame: SupervisionFrame) -> None:
        self._connection.send(frame)

    def announce(self, point: str, task: str | None, side: str) -> None:
        """Stand still at a protocol point until the harness releases it; the harness may kill this process
        meanwhile."""
        self._wait_for(Reached(self.stamp(), point, task, side))

    def expire(self, fault: int, name: str, attempt: int | None) -> bool:
        """Stand still while the harness has the store abort a transaction; returns whether that was done."""
        return self._wait_for(Expiring(self.stamp(), fault, name, attempt)).done

    def _wait_for(self, frame: SupervisionFrame) -> Go:
        self.send(frame)
        self.flush_all()
        self._answers.clear()
        while not self._answers:
            select.select([self._connection.sock], [], [])
            self._connection.read()
            self._connection.flush()
        return self._answers[0]

    def die(self) -> NoReturn:
        """Die of a fault: at once, as by SIGKILL."""
        self.flush_all()
        os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit(1)

    def _take(self, frame: SupervisionFrame) -> None:
        if isinstance(frame, Go):
            self._answers.append(frame)
        elif isinstance(frame, AT_ONCE):
            self._on_frame(frame)
        else:
            self._outbox.loop.after(0, self._later, frame)

    def _later(self, frame: SupervisionFrame, _: None) -> None:
        self._on_frame(frame)


def supervisor_ended(reason: str) -> None:
    """The harness is gone: end this process at once."""
    os._exit(1)
