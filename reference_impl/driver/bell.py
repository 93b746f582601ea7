"""Tells a task that goes by processing time how late it is: before each record, and when it asked to be woken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.effects import WakeAt
from ..core.events import Mailed, Ticked

if TYPE_CHECKING:
    from .runner import TaskRunner

RING = Mailed("ring")
"""stands in a task's mailbox where it is to be told the time: that of when its turn comes, not of when it was set"""


class Bell:
    """The clock of one task, for as long as its runner lives."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self.rung = 0
        """how often it woke the task"""

    def tell(self) -> None:
        runner = self._runner
        now = runner.world.loop.now
        runner.log.ticked(now)
        runner.feed(Ticked(now))

    def ring(self) -> None:
        """The mail that says so has its turn; once all its input has ended, there is no time for the task."""
        if not self._runner.task.input_ended:
            self.rung += 1
            self.tell()

    def set(self, effect: WakeAt) -> None:
        loop = self._runner.world.loop
        loop.at(max(effect.time, loop.now), self._due)

    def _due(self, *_: object) -> None:
        if self._runner.alive:
            self._runner.take_mail(RING)
