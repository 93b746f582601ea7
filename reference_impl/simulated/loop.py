"""Virtual time: a heap of due actions, in the order (time in µs, sequence)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[[Any, Any], None]
UNBOUNDED = 1 << 62


class Loop:
    """Carries out actions at their times; those of one time in the order in which they were put in."""

    def __init__(self) -> None:
        self.now = 0
        self.steps = 0
        self.stopped = False
        self._heap: list[tuple[int, int, Action, Any, Any]] = []
        self._sequence = 0

    def at(self, time: int, action: Action, first: Any = None, second: Any = None) -> None:
        """Carry out `action(first, second)` at a time that is not past."""
        self._sequence += 1
        heappush(self._heap, (time, self._sequence, action, first, second))

    def after(self, delay: int, action: Action, first: Any = None, second: Any = None) -> None:
        self._sequence += 1
        heappush(self._heap, (self.now + delay, self._sequence, action, first, second))

    def clear(self) -> None:
        """Drop all actions."""
        self._heap.clear()

    def run(self, until: int, watch: Callable[[], bool] | None = None, steps: int = UNBOUNDED) -> bool:
        """Carry out everything due until nothing is left or `stopped` is set (True), or until a time has come or so
        many steps have been made (False); `watch` is called after each action, for as long as it returns True."""
        heap, count = self._heap, self.steps
        while heap and not self.stopped:
            entry = heappop(heap)
            time, _, action, first, second = entry
            if time > until or count >= steps:
                heappush(heap, entry)
                return False
            self.now = time
            self.steps = count = count + 1
            action(first, second)
            if watch is not None and not watch():
                watch = None
        return True
