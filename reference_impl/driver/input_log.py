"""Which elements of persistent input channels a task's machine, which has them logged, still has to learn of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.vocabulary.events import Came
from .ports import Inbound
from .queues import NEVER, arrival_at


class InputLog:
    """Gives each element that has entered one task's input queues once, in order, from its opening on."""

    def __init__(self, inputs: Sequence[Inbound]) -> None:
        self._inputs = inputs
        self._reported: list[int] | None = None
        """by channel: how many of the elements that entered were given; None until the task is open"""
        self.coming = NEVER
        """when the next element arrives, as far as was known when `arrived` ended"""

    def arrived(self, now: int) -> Iterator[Came]:
        """The elements that have arrived by now."""
        if self._reported is None:
            self._reported = [channel.taken for channel in self._inputs]
        reported = self._reported
        self.coming = NEVER
        for number, channel in enumerate(self._inputs):
            queue = channel.queue
            if not queue:
                continue
            place = reported[number] - channel.taken
            while place < len(queue):
                arrival = arrival_at(channel, place)
                if arrival > now:
                    if arrival < self.coming:
                        self.coming = arrival
                    break
                element = queue[place][1]
                place += 1
                reported[number] += 1
                yield Came(number, element)

    def overtook(self, channel: int) -> None:
        """A barrier was taken from the middle of a queue."""
        if self._reported is not None:
            self._reported[channel] -= 1
