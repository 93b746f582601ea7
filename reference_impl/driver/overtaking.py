"""Barriers that overtake: in outputs the elements that wait to be sent, in inputs those in front of them (FLIP-76)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ..core.vocabulary.effects import Overtake
from ..core.vocabulary.events import BarrierOvertook, OutputsOvertaken
from ..core.vocabulary.messages import Barrier, Element
from .queues import NEVER, most_urgent
from .timeline import show_taken

if TYPE_CHECKING:
    from .input_log import InputLog
    from .ports import Outbound
    from .runner import TaskRunner


class Overtaking:
    """The overtaking barriers of one task; `outbox` holds the elements that wait to be sent."""

    def __init__(
        self, runner: TaskRunner, outbox: deque[tuple[Outbound, Element]], input_log: InputLog | None = None
    ) -> None:
        self._runner = runner
        self._input_log = input_log
        self._outbox = outbox

    def take(self, now: int) -> bool:
        """Take a barrier whose alignment timeout is over, also when an output is full.

        That takes no time.  Otherwise barriers that come faster than records are processed would leave no time for
        records.
        """
        runner = self._runner
        due, chosen, place = most_urgent(runner.inputs)
        if due > now:
            if due < NEVER:
                runner.schedule(due)
            return False
        channel = runner.inputs[chosen]
        barrier = channel.queue[place][1]
        assert isinstance(barrier, Barrier)
        if not runner.world.point("barrier-received", runner.name, "before", runner) or not channel.queue:
            return True
        passed = tuple(channel.queue[number][1] for number in range(place))
        if runner.world.detailed:
            show_taken(runner, "barrier-received", channel, barrier, place)
        channel.take_overtaking(place)
        if self._input_log is not None:
            self._input_log.overtook(chosen)
        runner.feed(BarrierOvertook(chosen, barrier, passed))
        runner.world.point("barrier-received", runner.name, "after", runner)
        runner.schedule(now)
        return True

    def put(self, effect: Overtake) -> None:
        """Put barriers into the outputs in front of the waiting elements, and report these to the machine."""
        runner = self._runner
        passed: dict[int, tuple[Element, ...]] = {}
        for number in effect.channels:
            if not runner.words.announce(effect.barrier):
                return
            channel = runner.outputs[number]
            passed[number] = tuple(element for into, element in self._outbox if into is channel)
            channel.push(effect.barrier)
            if not runner.world.point("barrier-sent", runner.name, "after", runner):
                return
        runner.feed(OutputsOvertaken(effect.barrier.checkpoint, passed))
