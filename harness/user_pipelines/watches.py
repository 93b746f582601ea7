"""What a run of a pipeline waits for: the moment of a fault, and what shows that the pipeline continued behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...faults.plan import AtAim, AtTime
from .aims import Lookout

NOTICED_WITHIN_S = 1.0
"""an output that changes so long after connections broke shows that the pipeline goes on, whatever else is seen: rows
that come sooner may have been under way"""


HELD = "rows were missing"
"""the pipeline was given records whose rows were not visible yet"""


class Watch:
    """A fault that waits for its trigger; `predicate` looks whether its aim is met just now."""

    def __init__(
        self, number: int, trigger: AtTime | AtAim, predicate: Callable[[], bool], noted: Callable[[str], object]
    ) -> None:
        """`noted` is called with the aim's name each time that the aim is met anew."""
        self.number = number
        self.trigger = trigger
        self._predicate = predicate
        self._noted = noted
        self._met = 0
        self._holds = False
        self._due: float | None = None
        self._waits_for = ""

    def is_due(self, now_s: float) -> bool:
        """Whether the fault has to strike now; `now_s` is the time since the run began."""
        if isinstance(self.trigger, AtTime):
            return now_s * 1e6 >= self.trigger.at_us
        if self._due is None:
            holds = self._predicate()
            if holds and not self._holds:
                self._met += 1
                self._noted(self.name)
            self._holds = holds
            if self._met >= self.trigger.occurrence:
                self._due = now_s + self.trigger.after_us / 1e6
        return self._due is not None and now_s >= self._due

    def waits_for(self, what: str) -> None:
        """It does not strike now, because of that (empty: because it is not due)."""
        self._waits_for = what

    def finds_no_work(self) -> None:
        """It is due, and rows of the records so far are all visible: the end of a run, if it has waited before."""
        self._waits_for = self._waits_for or "no row was missing when it was due"

    @property
    def why_not(self) -> str:
        """Why it has not struck, in words."""
        if self._waits_for:
            return self._waits_for
        if isinstance(self.trigger, AtTime):
            return "the run was over before its time"
        if not self._met:
            return f"its aim was never met while {HELD}"
        if self._met < self.trigger.occurrence:
            return f"its aim was met too rarely while {HELD}"
        return "the run was over first"

    @property
    def name(self) -> str:
        return self.trigger.aim if isinstance(self.trigger, AtAim) else "at a time"


class Recovery:
    """What shows that the pipeline continued after a kill.

    Lines of a log are those since the kill.  Anything else (files, a query, a URL) has to begin to show behind the
    kill: what was there before shows nothing of what came after.
    """

    def __init__(self, lookout: Lookout, printed: Callable[[], str]) -> None:
        """`printed` gives the lines since the kill of the process that the aim names."""
        self.lookout = lookout
        self._printed = printed
        self._was_there = not lookout.aim.log and lookout.sees(printed)

    def is_seen(self) -> bool:
        there = self.lookout.sees(self._printed)
        if self._was_there:
            self._was_there = there
            return False
        return there


class Interrupted(NamedTuple):
    """The last fault that ended no command: a pause, a kill of what listens at a port, or a fault of a proxy that
    connections felt."""

    cause: str
    recovery: Recovery
    """what shows that the pipeline noticed it, and continued"""
    broke: bool = False
    """whether connections broke, or a process was killed: another fault waits until the pipeline has continued"""
