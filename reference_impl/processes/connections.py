"""Connections between processes: frames in, frames out, over non-blocking sockets."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from typing import Any

from ..wire import Codec, Reader, WireError
from .clock import Clock
from .frames import Frame
from .loop import Loop

CHUNK = 1 << 16


class Connection:
    """One connection; what is sent leaves with `flush`, after the journal was written.

    `on_end(reason)` is called once when the other side is gone, resets, or talks
    nonsense; not after `close`.
    """

    def __init__(
        self,
        sock: socket.socket,
        codec: Codec[Any],
        outbox: Outbox,
        on_frame: Callable[[Any], None],
        on_end: Callable[[str], None],
    ) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.is_open = True
        self.nonsense = ""
        """what could not be read, when that is what has ended it"""
        self.partial_reads = 0
        """how many reads ended within a frame"""
        self._codec = codec
        self._reader = Reader(codec)
        self._outbox = outbox
        self._on_frame = on_frame
        self._on_end = on_end
        self._unsent = bytearray()
        self._writing = False
        outbox.loop.watch(sock, self._ready)

    def send(self, frame: Frame) -> None:
        """Put a frame in line."""
        if self.is_open:
            self._unsent += self._codec.encode(frame)
            self._outbox.add(self)

    def flush(self) -> None:
        """Let go what the kernel takes; the rest when it takes more."""
        if not self.is_open:
            return
        try:
            while self._unsent:
                sent = self.sock.send(self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads any more; what they had said before is still to be read, and then the end
            self._unsent.clear()
        if bool(self._unsent) != self._writing:
            self._writing = bool(self._unsent)
            self._outbox.loop.watch(self.sock, self._ready, writing=self._writing)

    def close(self) -> None:
        """Let go what is in line, as far as the kernel takes it, and close."""
        if self.is_open:
            self.flush()
        if self.is_open:
            self.is_open = False
            self._outbox.loop.unwatch(self.sock)
            self.sock.close()

    def _ready(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self.flush()
        if events & selectors.EVENT_READ and self.is_open:
            self.read()

    def read(self) -> None:
        """Take what has arrived."""
        try:
            data = self.sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(str(error))
            return
        try:
            frames = self._reader.feed(data)
        except WireError as error:
            self.nonsense = str(error)
            self._end(self.nonsense)
            return
        if self._reader.pending:
            self.partial_reads += 1
        for frame in frames:
            self._outbox.clock.heard(frame.stamp)
            self._on_frame(frame)
            if not self.is_open:
                return
        if not data:
            self._end("it was closed")

    def _end(self, reason: str) -> None:
        self.is_open = False
        self._outbox.loop.unwatch(self.sock)
        self.sock.close()
        self._on_end(reason)


class Outbox:
    """What all connections of a process share: the loop, the clock, and who has something in line."""

    def __init__(self, loop: Loop, clock: Clock) -> None:
        self.loop = loop
        self.clock = clock
        self._waiting: dict[Connection, None] = {}

    def add(self, connection: Connection) -> None:
        self._waiting[connection] = None

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for connection in waiting:
            connection.flush()


def dial(port: int) -> socket.socket:
    """A connection to a port of this machine, under way or made."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.connect_ex(("127.0.0.1", port))
    return sock


def accepting(sock: socket.socket, loop: Loop, taken: Callable[[socket.socket], None]) -> None:
    """Take every connection that comes in at a listening socket."""
    sock.setblocking(False)

    def ready(_: int) -> None:
        try:
            accepted, _address = sock.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # another process shares the port and was faster, or the other side has gone
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        taken(accepted)

    loop.watch(sock, ready)
