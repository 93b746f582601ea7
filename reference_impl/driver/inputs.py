"""The receiving end of a data channel: the part that both worlds share."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from ..core.vocabulary.messages import Element, Record
from ..trace import ChannelLog

HandOver = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""From restored elements and those in the channel by then, to what the channel holds afterwards."""


def before_all_times(replays: int) -> int:
    """The arrival of an element that was restored, `replays` times before: below 0, where no time is.  Such elements
    come first, and before each other those that were restored more often."""
    return -1 - replays


def was_restored(arrival: int) -> bool:
    return arrival < 0


class InputQueue:
    """The elements that have arrived and were not taken; `queue` holds (arrival, element), the arrival of a restored
    element being before all times."""

    __slots__ = ("_restored", "_taken_early", "queue", "taken", "timed_barriers")

    def __init__(self) -> None:
        self.queue: deque[tuple[int, Element]] = deque()
        self.taken = 0
        """elements that were taken in order, restored ones included"""
        self.timed_barriers = 0
        """how many of its barriers may overtake"""
        self._taken_early: list[int] = []
        """the numbers of the barriers that were taken out of order"""
        self._restored = 0
        """how many elements were put back into it"""

    def position(self, place: int) -> int:
        """The number of the element at this place of the queue, among all that arrived."""
        number = self.taken - self._restored + place
        for early in self._taken_early:
            number += early <= number
        return number

    @property
    def last_position(self) -> int:
        """The number of the element that was taken last, in order."""
        return self.position(-1)

    def take_overtaking(self, place: int) -> None:
        """Take the barrier at this place of the queue out of order."""
        insort(self._taken_early, self.position(place))
        del self.queue[place]
        self.timed_barriers -= 1

    def put_back(
        self, elements: Sequence[Element], handed_over: HandOver, log: ChannelLog, replays: Sequence[int] = ()
    ) -> None:
        """Put restored elements back: `handed_over` gives what the channel holds then, and all else is dropped.
        `replays`: how often each of the first ones was put back before."""
        self._restored += len(elements)
        for element in elements:
            if type(element) is Record:
                log.recovered.append(element.origin)
            else:
                log.recovered_watermarks.append((getattr(element, "time", None), len(log.recovered)))
        live = tuple(self.queue)
        self.queue.clear()
        restored = [(before_all_times(times), one) for times, one in zip_longest(replays, elements, fillvalue=0)]
        self.queue.extend(handed_over(restored, live))
        self.taken += len(elements) + len(live) - len(self.queue)
