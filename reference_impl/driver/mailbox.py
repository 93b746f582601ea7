"""A task's mailbox: what it sends itself, and the times at which it asked to be woken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..core.vocabulary.effects import Mail, WakeAt
from ..core.vocabulary.events import Mailed
from .ports import Loop


class WakeUp:
    """A tick is due; its time is the time at which it is opened, not that at which it was set."""


class Mailbox:
    """Mails are opened one at a time, in the order in which they came; `came` is called for each."""

    __slots__ = ("_came", "_loop", "_mailbox_us", "waiting")

    def __init__(self, loop: Loop, mailbox_us: int, came: Callable[[], None]) -> None:
        self.waiting: deque[Mailed | WakeUp] = deque()
        self._loop = loop
        self._mailbox_us = mailbox_us
        self._came = came

    def post(self, effect: Mail) -> None:
        """It comes a moment later."""
        self._loop.after(self._mailbox_us, self._take, Mailed(effect.letter))

    def wake_at(self, effect: WakeAt) -> None:
        self._loop.at(max(effect.time, self._loop.now), self._take, WakeUp())

    def _take(self, mail: Mailed | WakeUp, _: None) -> None:
        self.waiting.append(mail)
        self._came()
