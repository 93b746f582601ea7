"""Timers of one machine, by name: setting one again replaces it."""

from __future__ import annotations

from collections.abc import Callable

from ..core.vocabulary.effects import SetTimer
from ..core.vocabulary.events import TimerFired
from .ports import Loop


class Timers:
    """Calls `due` when a timer has run out."""

    def __init__(self, loop: Loop, due: Callable[[TimerFired], None]) -> None:
        self._loop = loop
        self._due = due
        self._times: dict[str, int] = {}

    def set(self, effect: SetTimer) -> None:
        time = self._loop.now + effect.after_us
        self._times[effect.name] = time
        self._loop.at(time, self._fire, effect.name, time)

    def _fire(self, name: str, time: int) -> None:
        if self._times.get(name) == time:
            del self._times[name]
            self._due(TimerFired(name))
