"""Timers in processing time: the decisions about them (OPS-1).

The core has no clock.  The driver of a task passes it the time, before each record and when the earliest of its timers
is due; a timer fires in the first such step at or after its time.  A timer is kept with its key's state, in the
snapshot, and moves with the key.  At the end of all input nothing would look at the clock again, so pending timers fire
then, before the end is sent on, and the last snapshot holds no timer.  Without an end (a stop without drain) a timer
stays in the savepoint.
"""

from __future__ import annotations

from ..operators.timers import Timer
from .part import Part


class ProcessingTime(Part):
    """What becomes of a task's timers in processing time."""

    def kept(self, pending: list[Timer]) -> list[Timer]:
        """The timers that a snapshot holds."""
        return pending
