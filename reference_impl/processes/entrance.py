"""A listening socket's door: who connects proves first to be of the run, and only then is heard."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from .connections import Outbox
from .greeting import Accepting, ForeignPeer

GREETED_WITHIN_US = 10_000_000
"""of the machine's clock: for longer nobody is waited for who has not proved to be of the run"""
MOST_CALLERS = 64
"""who have not yet: for one more the oldest has to go"""
FULL_FOR_US = 100_000
"""of the machine's clock: for how long nobody is taken in when the process has no descriptor left"""


class _Caller:
    """Somebody who has connected."""

    def __init__(self, sock: socket.socket, secret: bytes) -> None:
        self.sock = sock
        self.greeting = Accepting(secret)


class Entrance:
    """Takes connections and gives those of the run to `welcome`, with nothing read from them but their proof.

    A foreign one is closed and counted.  One that says nothing, or breaks off in the middle of a proof, is closed in
    time and not counted: one of the run looks no different while its process stands still or its link is stalled.
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
            return  # another process shares the port and was faster, or the other side has gone
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
        """Take nobody in for a while: whoever waits to be would wake this process again and again."""
        loop = self._outbox.loop
        loop.unwatch(self._listener)
        loop.after_real(FULL_FOR_US, lambda *_: loop.watch(self._listener, self._accept))

    def _send(self, caller: _Caller, what: bytes) -> None:
        """So little fits into what the kernel holds; who has gone meanwhile is heard to have."""
        with contextlib.suppress(OSError):
            caller.sock.send(what)

    def _receive(self, caller: _Caller) -> None:
        if caller not in self._callers:
            return  # it had to go in this turn of the loop
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
            self._let_in(caller)

    def _let_in(self, caller: _Caller) -> None:
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
        """No more will be heard of it."""
        try:
            caller.greeting.end()
        except ForeignPeer:
            self._outbox.met_foreign()
        self._close(caller)

    def _close(self, caller: _Caller) -> None:
        self._callers.pop(caller, None)
        self._outbox.loop.unwatch(caller.sock)
        caller.sock.close()
