"""Connections between processes: frames in, frames out, over non-blocking sockets."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from typing import Any

from ...core.vocabulary.errors import require
from ...wire import Codec, Reader, WireError
from ..clock import Clock, StampRefused
from ..loop import Loop
from .frames import Frame
from .greeting import Dialling, ForeignPeer

CHUNK = 1 << 16


class Connection:
    """One connection; what is sent leaves with `flush`, after the journal was written.

    `on_end(reason)` is called once when the other side has ended, resets the connection, or sends what cannot be read;
    it is not called after `close`.  `greets`: this side has dialled, and first both sides prove to be of the run; what
    is sent meanwhile leaves afterwards.
    """

    def __init__(
        self,
        sock: socket.socket,
        codec: Codec[Any],
        outbox: Outbox,
        on_frame: Callable[[Any], None],
        on_end: Callable[[str], None],
        *,
        greets: bool = False,
    ) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.is_open = True
        self.nonsense: str | None = None
        """what could not be read, if that has ended the connection"""
        self.partial_reads = 0
        """how many reads ended within a frame"""
        self._codec = codec
        self._reader = Reader(codec)
        self._outbox = outbox
        self._on_frame = on_frame
        self._on_end = on_end
        self._unsent = bytearray()
        self._writing = False
        self._greeting = Dialling(outbox.secret) if greets else None
        outbox.loop.watch(sock, self._ready)

    def send(self, frame: Frame) -> None:
        """Queue a frame."""
        if self.is_open:
            self._unsent += self._codec.encode(frame)
            self._outbox.add(self)

    def flush(self) -> None:
        """Write as much of the queue as the kernel takes; the rest when it takes more."""
        if not self.is_open or (self._greeting is not None and not self._greeting.proof):
            return
        try:
            while self._unsent:
                sent = self.sock.send(self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:  # the other side reads no more; what it sent before is still to be read, and then the end
            self._unsent.clear()
        if bool(self._unsent) != self._writing:
            self._writing = bool(self._unsent)
            self._outbox.loop.watch(self.sock, self._ready, writing=self._writing)

    def close(self) -> None:
        """Write as much of the queue as the kernel takes, and close."""
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
        greeting = self._greeting
        try:
            data = self.sock.recv(CHUNK if greeting is None else greeting.missing)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(str(error))
            return
        if greeting is not None and data:
            self._greet(greeting, data)
            return
        try:
            frames = self._reader.feed(data)
        except WireError as error:
            self._end_of_nonsense(str(error))
            return
        if self._reader.pending:
            self.partial_reads += 1
        for frame in frames:
            try:
                self._outbox.clock.received(frame.stamp)
            except StampRefused as error:
                self._end_of_nonsense(str(error))
                return
            self._on_frame(frame)
            if not self.is_open:
                return
        if not data:
            self._end("it was closed")

    def _greet(self, greeting: Dialling, data: bytes) -> None:
        had_proof = bool(greeting.proof)
        try:
            if greeting.take(data):
                self._greeting = None
        except ForeignPeer as error:
            self._outbox.met_foreign()
            self._end(str(error))
            return
        if greeting.proof and not had_proof:
            self._unsent[:0] = greeting.proof
            self._outbox.add(self)

    def _end_of_nonsense(self, reason: str) -> None:
        self.nonsense = reason
        self._end(reason)

    def _end(self, reason: str) -> None:
        self.is_open = False
        self._outbox.loop.unwatch(self.sock)
        self.sock.close()
        self._on_end(reason)


class Outbox:
    """What all connections of a process share: the loop, the clock, the run's secret, and the connections that have
    frames queued."""

    def __init__(self, loop: Loop, clock: Clock, secret: bytes = b"") -> None:
        """Without a secret nobody is dialled and nobody is let in; Unix sockets need none."""
        self.loop = loop
        self.clock = clock
        self.foreign = 0
        """connections that were closed because the other end is not of the run"""
        self._secret = secret
        self._waiting: dict[Connection, None] = {}

    @property
    def secret(self) -> bytes:
        require(bool(self._secret), "a connection over TCP begins with the run's secret, and there is none")
        return self._secret

    def met_foreign(self) -> None:
        """Count a connection whose other end is not of the run."""
        self.foreign += 1

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
