"""Timers in processing time: what is decided about them (OPS-1).

The core has no clock.  Whoever drives a task tells it the time, before each
record and when the earliest of its timers is due, and a timer fires in the
first such step at or behind its time.  It is kept with its key's state, in the
snapshot, and goes where the key goes.  At the end of all input nothing would
ever look at the clock again: what is pending fires then, before the end goes
on, so that the last snapshot holds no timer.  Without an end (a stop without
drain) it stays in the savepoint.
"""

from __future__ import annotations

from .part import Part
from .timers import Timer, Timers
from .watermarks import END_OF_TIME


class ProcessingTime(Part):
    """What becomes of a task's timers in processing time."""

    def due(self, alarms: Timers, now: int) -> list[Timer]:
        """Those whose time has come: taken out in the step that fires them."""
        return alarms.take(now)

    def kept(self, alarms: Timers) -> list[Timer]:
        """What a snapshot holds of them."""
        return alarms.pending()

    def wakes(self, alarms: Timers) -> int | None:
        """The time of the first tick that a restored task needs; None: no timer is pending."""
        return alarms.earliest()

    def at_end(self, alarms: Timers) -> list[Timer]:
        """Those that fire because all input has ended, whatever their time: every one."""
        return alarms.take(END_OF_TIME)
