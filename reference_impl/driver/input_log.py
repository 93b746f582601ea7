"""Reports the elements that enter persistent input channels to the task's machine, which has them logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.vocabulary.events import Came
from .queues import NEVER, arrival_at

if TYPE_CHECKING:
    from .runner import TaskRunner


class InputLog:
    """Reports each element that has entered one task's input queues to its machine, once, in order."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self._reported: list[int] | None = None
        """by channel: how many of the elements that entered were reported; None until the task is open"""
        self._due = NEVER

    def report_arrivals(self, now: int) -> None:
        """Report the elements that have arrived by now, and look again when the next one arrives."""
        runner = self._runner
        if not runner.opened:
            return
        if self._reported is None:
            self._reported = [channel.taken for channel in runner.inputs]
        coming = NEVER
        for number, channel in enumerate(runner.inputs):
            place = self._reported[number] - channel.taken
            while place < len(channel.queue):
                arrival = arrival_at(channel, place)
                if arrival > now:
                    coming = min(arrival, coming)
                    break
                element = channel.queue[place][1]
                place += 1
                self._reported[number] += 1
                runner.feed(Came(number, element))
                if not runner.alive:
                    return
        if coming < self._due:
            self._due = coming
            runner.world.loop.at(coming, self._again)

    def overtook(self, channel: int) -> None:
        """A barrier was taken from the middle of a queue."""
        if self._reported is not None:
            self._reported[channel] -= 1

    def _again(self, *_: object) -> None:
        runner = self._runner
        self._due = NEVER
        if runner.alive and not runner.paused and not runner.frozen:
            self.report_arrivals(runner.world.loop.now)
