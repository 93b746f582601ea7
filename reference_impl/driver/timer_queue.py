"""What a task sends to itself, and the time, which is told to one that goes by processing time.

It is told before each record, and when the task asked to be woken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.effects import Mail, WakeAt
from ..core.events import Mailed, Ticked

if TYPE_CHECKING:
    from .runner import TaskRunner

WAKE_UP = Mailed("ring")
"""stands in a task's mailbox where it is to be told the time: that of when its turn comes, not of when it was set"""


class TimerQueue:
    """The mail and the clock of one task, for as long as its runner lives."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self.fired = 0
        """how often it woke the task"""

    def tick(self) -> bool:
        """Tell the task the time; whether it still lives then, as what it does on time may fail."""
        runner = self._runner
        now = runner.world.loop.now
        runner.log.ticked(now)
        runner.feed(Ticked(now))
        return runner.alive

    def post(self, effect: Mail) -> None:
        """A mail of the task to itself: it is in the mailbox a moment later."""
        world = self._runner.world
        world.loop.after(world.settings.mailbox_us, self._came, effect.mail)

    def _came(self, mail: object, _: None) -> None:
        self._runner.take_mail(Mailed(mail))

    def open(self, mail: Mailed) -> None:
        """A mail has its turn; once all its input has ended, there is no time for the task."""
        if mail is not WAKE_UP:
            self._runner.feed(mail)
        elif not self._runner.task.input_ended:
            self.fired += 1
            self.tick()

    def set(self, effect: WakeAt) -> None:
        loop = self._runner.world.loop
        loop.at(max(effect.time, loop.now), self._due)

    def _due(self, *_: object) -> None:
        if self._runner.alive:
            self._runner.take_mail(WAKE_UP)
