"""What a task reports: its restored state to the history, everything else to the coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import observed as o
from ..core.vocabulary.effects import Report, Restored
from ..core.vocabulary.messages import Barrier, Element, EndOfData, EndOfPartition, kind_of
from ..core.vocabulary.state import text

if TYPE_CHECKING:
    from .runner import TaskRunner

POINTS = {"ack": "ack-sent", "running": "task-running"}
"""By kind of message, the protocol point at which it is sent; the other kinds have none."""


class Words:
    """The reports of one task, for as long as its runner lives."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner

    def restored(self, effect: Restored) -> None:
        runner = self._runner
        if not runner.world.point("state-loaded", runner.name, "before", runner):
            return
        runner.world.observer.saw(o.StateRestored(runner.log.run, effect.checkpoint, text(effect.state)))
        runner.world.point("state-loaded", runner.name, "after", runner)

    def report(self, effect: Report) -> None:
        runner = self._runner
        point = POINTS.get(kind_of(effect.message))
        if point is not None and not runner.world.point(point, runner.name, "before", runner):
            return
        runner.world.control.to_coordinator(runner.name, effect.message)
        if point is not None:
            runner.world.point(point, runner.name, "after", runner)

    def announce(self, element: Element) -> bool:
        """Reach the protocol point of an element about to be sent; False if the task dies there."""
        runner = self._runner
        if isinstance(element, Barrier):
            return runner.world.point("barrier-sent", runner.name, "before", runner)
        if isinstance(element, EndOfData):
            if not runner.world.point("end-of-data-sent", runner.name, "before", runner):
                return False
            runner.world.observer.saw(o.InputEnded(runner.log.run))
            return runner.world.point("end-of-data-sent", runner.name, "after", runner)
        if isinstance(element, EndOfPartition):
            before = runner.world.point("end-of-partition-sent", runner.name, "before", runner)
            return before and runner.world.point("end-of-partition-sent", runner.name, "after", runner)
        return True
