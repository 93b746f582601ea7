"""Timers of one machine, by what it waits for: setting one again replaces it."""

from __future__ import annotations

from collections.abc import Callable

from ..core.vocabulary.effects import SetTimer
from ..core.vocabulary.events import TimerFired
from ..core.vocabulary.timeouts import Timeout
from .ports import Loop


class MachineTimers:
    """Calls `due` when a timer has run out."""

    def __init__(self, loop: Loop, due: Callable[[TimerFired], None]) -> None:
        self._loop = loop
        self._due = due
        self._times: dict[Timeout, int] = {}

    def set(self, effect: SetTimer) -> None:
        time = self._loop.now + effect.after_us
        self._times[effect.timeout] = time
        self._loop.at(time, self._fire, effect.timeout, time)

    def _fire(self, timeout: Timeout, time: int) -> None:
        if self._times.get(timeout) == time:
            del self._times[timeout]
            self._due(TimerFired(timeout))
