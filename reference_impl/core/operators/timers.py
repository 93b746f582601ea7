"""Timers in event time or in processing time, kept with an operator's state (OPS-1).

A timer in processing time fires when the clock has reached its time.  The core has no clock.  The driver of a task
passes it the time, before each record and when the earliest of its timers is due; a timer fires in the first such step
at or after its time.  A timer is kept with its key's state, in the snapshot, and moves with the key.  At the end of all
input nothing would look at the clock again, so pending timers fire then, before the end is sent on, and the last
snapshot holds no timer.  Without an end (a stop without drain) a timer stays in the savepoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from ..vocabulary.state import Timer


class Timers:
    """The timers of one operator; setting one twice has the effect of setting it once.

    A task in processing time asks for the earliest before each record.  A heap gives it; a timer
    that was dropped stays in the heap until it comes first.
    """

    def __init__(self, timers: Iterable[Timer] = ()) -> None:
        self._timers: dict[Timer, None] = dict.fromkeys(timers)
        self._heap = [(_order(timer), timer) for timer in self._timers]
        heapify(self._heap)

    def set(self, timer: Timer) -> None:
        if timer not in self._timers:
            self._timers[timer] = None
            heappush(self._heap, (_order(timer), timer))

    def drop(self, timer: Timer) -> None:
        self._timers.pop(timer, None)

    def keep(self, timers: Iterable[Timer]) -> None:
        """Drop all others."""
        self._timers = dict.fromkeys(timers)

    def due(self, time: int) -> list[Timer]:
        """The timers that are due, in the order of their times; a NULL key comes first."""
        earliest = self.earliest()
        if earliest is None or earliest > time:
            return []
        return sorted((timer for timer in self._timers if timer[0] <= time), key=_order)

    def take(self, time: int) -> list[Timer]:
        """Take out the timers that are due, in the same order."""
        due = self.due(time)
        for timer in due:
            self.drop(timer)
        return due

    def earliest(self) -> int | None:
        """The time of the first timer; None if there is none."""
        while self._heap and self._heap[0][1] not in self._timers:
            heappop(self._heap)
        return self._heap[0][1][0] if self._heap else None

    def pending(self) -> list[Timer]:
        return list(self._timers)


def _order(timer: Timer) -> tuple[int, bool, int, int]:
    time, key, start = timer
    return time, key is not None, key or 0, start
