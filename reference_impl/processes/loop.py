"""The loop of a process: actions that are due by its clock, and sockets that are ready."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[[Any, Any], None]

LONGEST_WAIT_S = 0.5
LATE_US = 250_000
"""if an action is this late (by the machine's clock), the machine is too slow"""


def monotonic_us() -> int:
    """The machine's monotonic clock, the same for all its processes."""
    return time.monotonic_ns() // 1_000


class Loop:
    """Fulfils `driver.ports.Loop` in scaled real time.

    `before_wait` is called once in each round, when every due action is done: first what was observed is written, then
    what was sent leaves.
    """

    def __init__(self, scale: int, epoch_us: int) -> None:
        self.stopped = False
        self.before_wait: Callable[[], None] = lambda: None
        self.on_late: Callable[[int], None] = lambda late_us: None
        self._scale = scale
        self._epoch_us = epoch_us
        self._heap: list[tuple[int, int, Action, Any, Any]] = []
        self._sequence = 0
        self._selector = selectors.DefaultSelector()

    @property
    def now(self) -> int:
        return (monotonic_us() - self._epoch_us) // self._scale

    def at(self, time: int, action: Action, first: Any = None, second: Any = None) -> None:
        self._sequence += 1
        heappush(self._heap, (time, self._sequence, action, first, second))

    def after(self, delay: int, action: Action, first: Any = None, second: Any = None) -> None:
        self.at(self.now + delay, action, first, second)

    def after_real(self, delay_us: int, action: Action, first: Any = None, second: Any = None) -> None:
        """After a time of the machine's clock."""
        self.after(delay_us // self._scale, action, first, second)

    def watch(self, sock: socket.socket, ready: Callable[[int], None], *, writing: bool = False) -> None:
        """Call `ready(events)` when the socket can be read (and, with `writing`, written)."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writing else 0)
        if sock.fileno() in self._selector.get_map():
            self._selector.modify(sock, events, ready)
        else:
            self._selector.register(sock, events, ready)

    def unwatch(self, sock: socket.socket) -> None:
        if sock.fileno() >= 0 and sock.fileno() in self._selector.get_map():
            self._selector.unregister(sock)

    def close(self) -> None:
        """Close every socket that is still watched, and watch none any more."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                self.unwatch(key.fileobj)
                key.fileobj.close()
        self._selector.close()

    def run(self) -> None:
        """Go on until `stopped` is set."""
        while not self.stopped:
            self.do_what_is_due()
            self.before_wait()
            for key, events in [] if self.stopped else self._selector.select(self._wait_s()):
                self._call(key, events)

    def _call(self, key: selectors.SelectorKey, events: int) -> None:
        """Call the callback, unless an earlier callback of this round has ended the watch, or has closed the socket
        (another one may have its number by now)."""
        now = self._selector.get_map().get(key.fd)
        if now is not None and now.fileobj is key.fileobj and now.data == key.data:
            key.data(events)

    @property
    def next_due(self) -> int | None:
        """When the next action is due; None: none is."""
        return self._heap[0][0] if self._heap else None

    def do_what_is_due(self) -> None:
        """Do the actions whose time has come, in the order of their times."""
        heap = self._heap
        now = self.now
        while heap and heap[0][0] <= now and not self.stopped:
            due, _, action, first, second = heappop(heap)
            late_us = (now - due) * self._scale
            if late_us > LATE_US:
                self.on_late(late_us)
            action(first, second)

    def _wait_s(self) -> float:
        due = self.next_due
        if due is None:
            return LONGEST_WAIT_S
        wait_us = due * self._scale + self._epoch_us - monotonic_us()
        return min(max(wait_us, 0) / 1e6, LONGEST_WAIT_S)
