"""What a task says of itself: to the history that it took its state over, to the coordinator the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.effects import Report, Restored
from ..core.messages import kind_of
from ..core.state import text

if TYPE_CHECKING:
    from .runner import TaskRunner

POINTS = {"ack": "ack-sent", "running": "task-running"}
"""By kind of message, the point at which it is sent; the other kinds have none."""


class Words:
    """The words of one task, for as long as its runner lives."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner

    def restored(self, effect: Restored) -> None:
        runner = self._runner
        if not runner.world.point("state-loaded", runner.name, "before", runner):
            return
        runner.log.restored(effect.checkpoint, text(effect.state))
        runner.world.point("state-loaded", runner.name, "after", runner)

    def report(self, effect: Report) -> None:
        runner = self._runner
        point = POINTS.get(kind_of(effect.message))
        if point is not None and not runner.world.point(point, runner.name, "before", runner):
            return
        runner.world.control.to_coordinator(runner.name, effect.message)
        if point is not None:
            runner.world.point(point, runner.name, "after", runner)
