"""What passes through one proxy from a moment on: bytes that came, and connections that the proxy closed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .connections import CLOSED_FIRST, OPEN, Socket

End = tuple[int, int]
"""the ports of one end of a connection: its own, and that of the other end"""


class Flow:
    """The connections of a proxy, watched from the first `look` on."""

    def __init__(self, listen: int, upstream: int, *, towards_upstream: bool) -> None:
        """`listen` and `upstream` are the proxy's ports; `towards_upstream` says whose bytes are counted: those that
        clients send, or those that come back."""
        self._listen = listen
        self._upstream = upstream
        self._towards_upstream = towards_upstream
        self._came: dict[End, int] = {}
        self._went: dict[End, int] = {}
        """how much each end of the proxy had received, and how much the opposite ends had sent, at the last look that
        found them open"""
        self._before: tuple[Mapping[End, int], Mapping[End, int]] = ({}, {})
        """the same when bytes began to count"""
        self._ends: set[End] = set()
        """the proxy's ends that were ever open"""
        self._gone: set[End] = set()
        """those of them to clients that are open no more"""
        self._closed_first: set[End] = set()
        """the proxy's ends whose other end was closed first"""
        self.connections = 0
        """how many clients are connected"""

    def look(self, sockets: Sequence[Socket], inodes: Collection[int]) -> None:
        """Take in how the connections are now; `inodes` are the sockets of the server."""
        own = {(one.local, one.remote): one for one in sockets if one.inode in inodes and one.state in OPEN}
        of_clients = {end for end in own if end[0] == self._listen}
        of_upstream = {end for end in own if end[1] == self._upstream}
        froms, tos = (of_clients, of_upstream) if self._towards_upstream else (of_upstream, of_clients)
        self._came |= {end: own[end].received for end in froms}
        self._went |= {end: own[end].sent for end in tos}
        self._ends |= of_clients | of_upstream
        self._gone = {end for end in self._ends if end[0] == self._listen} - of_clients
        self._closed_first |= {
            (one.remote, one.local)
            for one in sockets
            if one.state in CLOSED_FIRST and (one.remote, one.local) in self._ends
        }
        self.connections = len(of_clients)

    def count_from_here(self) -> None:
        """Bytes count from the last look on."""
        self._before = (dict(self._came), dict(self._went))

    @property
    def bytes(self) -> int:
        """How many bytes have come since they count."""
        return _since(self._before[0], self._came)

    @property
    def held(self) -> int:
        """How many of them have not gone on."""
        return max(0, self.bytes - _since(self._before[1], self._went))

    @property
    def closed(self) -> int:
        """How many connections the proxy has closed: neither the client did it first, nor the other side."""
        by_upstream = sum(end[1] == self._upstream for end in self._closed_first)
        return max(0, len(self._gone - self._closed_first) - by_upstream)


def _since(before: Mapping[End, int], now: Mapping[End, int]) -> int:
    return sum(count - before.get(end, 0) for end, count in now.items())
