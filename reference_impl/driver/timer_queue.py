"""A task's mails to itself, and the ticks of a task that uses processing time.

Such a task gets a tick before each record, and at the times for which it asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import observed as o
from ..core.vocabulary.effects import Mail, WakeAt
from ..core.vocabulary.events import Mailed, Ticked

if TYPE_CHECKING:
    from .runner import TaskRunner

WAKE_UP = Mailed("ring")
"""a tick in a task's mailbox; its time is the time at which it is opened, not that at which it was set"""


class TimerQueue:
    """The mails and the processing-time timers of one task, for as long as its runner lives."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self.fired = 0
        """how often a timer has woken the task"""

    def tick(self) -> bool:
        """Feed a tick to the task; False if the task has failed in it."""
        runner = self._runner
        now = runner.world.loop.now
        runner.world.observer.saw(o.Ticked(runner.log.run, now))
        runner.feed(Ticked(now))
        return runner.alive

    def post(self, effect: Mail) -> None:
        """Send a mail of the task to itself; it is in the mailbox a moment later."""
        world = self._runner.world
        world.loop.after(world.settings.mailbox_us, self._came, effect.mail)

    def _came(self, mail: object, _: None) -> None:
        self._runner.take_mail(Mailed(mail))

    def open(self, mail: Mailed) -> None:
        """Open a mail; once all its input has ended, the task gets no tick any more."""
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
