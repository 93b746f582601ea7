"""Which elements of persistent input channels a task's machine, which has them logged, still has to learn of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...core.vocabulary.events import Came
from ..ports import Inbound, Loop
from ..queues import NEVER, arrival_at


class InputLog:
    """Gives each element that has entered one task's input queues once, in order, from its opening on.

    `look` is called when the next one arrives.
    """

    def __init__(self, inputs: Sequence[Inbound], loop: Loop, look: Callable[[], None]) -> None:
        self._inputs = inputs
        self._loop = loop
        self._look = look
        self._due = NEVER
        """when `look` is called"""
        self._reported: list[int] | None = None
        """by channel: how many of the elements that entered were given; None until the task is open"""

    def arrived(self) -> Iterator[Came]:
        """The elements that have arrived by now."""
        now, coming = self._loop.now, NEVER
        if self._reported is None:
            self._reported = [channel.taken for channel in self._inputs]
        reported = self._reported
        for number, channel in enumerate(self._inputs):
            queue = channel.queue
            if not queue:
                continue
            place = reported[number] - channel.taken
            while place < len(queue):
                arrival = arrival_at(channel, place)
                if arrival > now:
                    if arrival < coming:
                        coming = arrival
                    break
                element = queue[place][1]
                place += 1
                reported[number] += 1
                yield Came(number, element)
        if coming < self._due:
            self._due = coming
            self._loop.at(coming, self._look_again)

    def _look_again(self, *_: object) -> None:
        self._due = NEVER
        self._look()

    def overtook(self, channel: int) -> None:
        """A barrier was taken from the middle of a queue."""
        if self._reported is not None:
            self._reported[channel] -= 1
