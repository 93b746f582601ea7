"""The accepting end of a listening socket: a connection first proves to be of the run, and only then is read."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from .connections import Outbox
from .greeting import Accepting, ForeignPeer

GREETED_WITHIN_US = 10_000_000
"""of the machine's clock: how long a connection may take to prove that it is of the run"""
MOST_CALLERS = 64
"""connections that have not proved it yet; for one more the oldest is closed"""
FULL_FOR_US = 100_000
"""of the machine's clock: the pause in accepting after the process ran out of descriptors"""


class _Caller:
    """A connection that has not proved yet that it is of the run."""

    def __init__(self, sock: socket.socket, secret: bytes) -> None:
        self.sock = sock
        self.greeting = Accepting(secret)


class Entrance:
    """Accepts connections and gives those of the run to `welcome`; nothing but the proof has been read from them.

    A foreign connection is closed and counted.  One that sends nothing, or breaks off in the middle of its proof, is
    closed in time and not counted: a connection of the run looks the same while its process stands still or its link is
    stalled.
    """

    def __init__(self, listener: socket.socket, outbox: Outbox, welcome: Callable[[socket.socket], None]) -> None:
        self._outbox = outbox
        self._welcome = welcome
        self._listener = listener
        self._callers: dict[_Caller, None] = {}
        listener.setblocking(False)
        outbox.loop.watch(listener, self._accept)

    def _accept(self, _: int) -> None:
        try:
            sock, _address = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # another process shares the port and was faster, or the other side has closed
        except OSError:  # the process has no descriptor left
            self._make_room()
            self._rest()
            return
        while len(self._callers) >= MOST_CALLERS:
            self._make_room()
        caller = _Caller(sock, self._outbox.secret)
        self._callers[caller] = None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = self._outbox.loop
        loop.watch(sock, lambda _: self._receive(caller))
        loop.after_real(GREETED_WITHIN_US, self._time_is_up, caller)
        self._send(caller, caller.greeting.challenge)

    def _rest(self) -> None:
        """Accept nobody for a while: the waiting connections would wake this process again and again."""
        loop = self._outbox.loop
        loop.unwatch(self._listener)
        loop.after_real(FULL_FOR_US, lambda *_: loop.watch(self._listener, self._accept))

    def _send(self, caller: _Caller, what: bytes) -> None:
        """So few bytes fit into the kernel's buffer; if the other side has closed, a read shows it."""
        with contextlib.suppress(OSError):
            caller.sock.send(what)

    def _receive(self, caller: _Caller) -> None:
        if caller not in self._callers:
            return  # it was closed in this round of the loop
        greeting = caller.greeting
        try:
            data = caller.sock.recv(greeting.missing)  # no byte more: what follows is the connection's
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._give_up(caller)
            return
        try:
            is_known = greeting.take(data)
        except ForeignPeer:
            self._outbox.met_foreign()
            self._close(caller)
            return
        if is_known:
            self._admit(caller)

    def _admit(self, caller: _Caller) -> None:
        del self._callers[caller]
        self._outbox.loop.unwatch(caller.sock)
        self._send(caller, caller.greeting.proof)
        self._welcome(caller.sock)

    def _time_is_up(self, caller: _Caller, _: object) -> None:
        if caller in self._callers:
            self._receive(caller)  # this process may have stood still itself
        if caller in self._callers:
            self._give_up(caller)

    def _make_room(self) -> None:
        oldest = next(iter(self._callers), None)
        if oldest is not None:
            self._give_up(oldest)

    def _give_up(self, caller: _Caller) -> None:
        """Close the connection; nothing more is read from it."""
        try:
            caller.greeting.end()
        except ForeignPeer:
            self._outbox.met_foreign()
        self._close(caller)

    def _close(self, caller: _Caller) -> None:
        self._callers.pop(caller, None)
        self._outbox.loop.unwatch(caller.sock)
        caller.sock.close()
