"""Virtual time: due actions in the order of their times; those of one time in the order in which they were put in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[[Any, Any], None]
UNBOUNDED = 1 << 62


class Loop:
    """Carries out actions at their times.

    A heap holds the times alone, since many actions share one: comparing numbers costs less than comparing entries.
    """

    def __init__(self) -> None:
        self.now = 0
        self.steps = 0
        self.stopped = False
        self._times: list[int] = []
        self._due: dict[int, deque[tuple[Action, Any, Any]]] = {}

    def at(self, time: int, action: Action, first: Any = None, second: Any = None) -> None:
        """Carry out `action(first, second)` at a time."""
        due = self._due.get(time)
        if due is None:
            self._due[time] = due = deque()
            heappush(self._times, time)
        due.append((action, first, second))

    def after(self, delay: int, action: Action, first: Any = None, second: Any = None) -> None:
        self.at(self.now + delay, action, first, second)

    def run(self, until: int, watch: Callable[[], bool] | None = None, steps: int = UNBOUNDED) -> bool:
        """Carry out everything due until nothing is left or `stopped` is set (True), or until a time has come or so
        many steps have been made (False); `watch` is called after each action, for as long as it returns True."""
        times, all_due = self._times, self._due
        while times and not self.stopped:
            time = times[0]
            if time > until or self.steps >= steps:
                return False
            due = all_due[time]
            while due and times[0] == time:  # an action may put another in at an earlier time, which is next then
                self.now = time
                action, first, second = due.popleft()
                self.steps += 1
                action(first, second)
                if watch is not None and not watch():
                    watch = None
                if self.stopped or self.steps >= steps:
                    break
            if not due and times[0] == time:
                heappop(times)
                del all_due[time]
        return True
