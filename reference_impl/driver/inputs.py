"""The receiving end of a data channel, as far as it is the same in every world."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from ..core.messages import Element, Record
from ..trace import ChannelLog

RESTORED = -1
"""When a restored element arrived: before all that came from its sender; and before other restored ones, the more
often it was put back."""

HandOver = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""From restored elements and those that a channel holds by then, to what it holds from then on."""


class InputQueue:
    """What has arrived and was not taken yet; `queue` holds (arrival time, element)."""

    __slots__ = ("_restored", "_taken_early", "queue", "taken", "timed_barriers")

    def __init__(self) -> None:
        self.queue: deque[tuple[int, Element]] = deque()
        self.taken = 0
        """elements that were taken in their turn, restored ones included"""
        self.timed_barriers = 0
        """how many barriers lie in it that may overtake"""
        self._taken_early: list[int] = []
        """the numbers of the barriers that were taken before their turn"""
        self._restored = 0
        """how many elements were put back into it"""

    def position(self, place: int) -> int:
        """The number of the element at this place of the queue among all that entered."""
        number = self.taken - self._restored + place
        for early in self._taken_early:
            number += early <= number
        return number

    def take_overtaking(self, place: int) -> None:
        """The barrier at this place of the queue is taken before its turn."""
        insort(self._taken_early, self.position(place))
        del self.queue[place]
        self.timed_barriers -= 1

    def put_back(
        self, elements: Sequence[Element], handed_over: HandOver, log: ChannelLog, replays: Sequence[int] = ()
    ) -> None:
        """Restored elements come beside what the channel holds, as `handed_over` says; what it leaves out is gone.
        `replays`: of the first ones, how often they were put back before."""
        self._restored += len(elements)
        for element in elements:
            if type(element) is Record:
                log.recovered.append(element.origin)
            else:
                log.recovered_watermarks.append((getattr(element, "time", None), len(log.recovered)))
        live = tuple(self.queue)
        self.queue.clear()
        restored = [(RESTORED - times, one) for times, one in zip_longest(replays, elements, fillvalue=0)]
        self.queue.extend(handed_over(restored, live))
        self.taken += len(elements) + len(live) - len(self.queue)
