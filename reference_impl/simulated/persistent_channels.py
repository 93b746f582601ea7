"""Channels that outlive their two ends (UNA-4): what entered one is in its log, under its number.

A channel is of one attempt of the whole dataflow.  Attempts of single tasks come and go at its ends:
each sender's has an `Outlet`, each receiver's an `Inlet`, and only the newest of each counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.local_recovery import end_code, end_of, is_numbered
from ..core.messages import Barrier, Element, Idle, Record, Watermark
from ..core.parts import Parts
from ..driver.decisions import Lateness
from ..driver.inputs import HandOver
from ..trace import ChannelLog
from .links import DataChannel
from .loop import Loop

if TYPE_CHECKING:
    from ..driver.runner import TaskRunner


class PersistentChannel:
    """The log of one channel.  An element has entered when the log has it."""

    def __init__(self, name: str, parts: Parts, capacity: int, log: ChannelLog) -> None:
        """`log` is the network's account of it, of the first attempt of its sender."""
        self.name = name
        self.log = log
        self.inlet: Inlet | None = None
        self.outlet: Outlet | None = None
        self.taken = 0
        """how many were taken at most, by any attempt of the receiver"""
        self._parts = parts
        self._capacity = capacity
        self._restored: list[Element] = []
        """what the receiver's first attempt was restored with: it comes before what was sent"""
        self._elements: list[Element] = []
        self._trimmed = 0
        self._ends: list[int] = []

    @property
    def entered(self) -> int:
        """How many of those that were sent have."""
        return self._trimmed + len(self._elements)

    @property
    def end(self) -> int:
        """The number, to its receiver, of the next one to enter."""
        return len(self._restored) + self.entered

    @property
    def is_full(self) -> bool:
        waiting = len(self.inlet.queue) if self.inlet is not None else 0
        return max(self.end - self.taken, waiting) >= self._capacity

    def begins_with(self, elements: Sequence[Element]) -> None:
        self._restored = list(elements)

    def at(self, number: int) -> Element | None:
        """The element of this number, as the receiver counts; None where the log does not have it."""
        restored = len(self._restored)
        if number < restored:
            return self._restored[number]
        place = number - restored - self._trimmed
        return self._elements[place] if 0 <= place < len(self._elements) else None

    @property
    def ends(self) -> tuple[int, ...]:
        """The codes of the ends that have come."""
        return tuple(self._ends)

    def trim(self, before: int) -> None:
        """Nothing before this number, as the receiver counts, is needed."""
        drop = before - len(self._restored) - self._trimmed
        if drop > 0:
            del self._elements[:drop]
            self._trimmed += drop

    def is_repeat(self, number: int) -> bool:
        return self._parts.local_recovery.is_repeat(number, self.entered)

    def enter(self, element: Element, log: ChannelLog) -> None:
        """A numbered element that has not come before."""
        self._elements.append(element)
        self.pass_on(element, log)

    def end_with(self, element: Element, log: ChannelLog) -> None:
        """An end of data; whoever comes up again says it again."""
        code = end_code(element)
        if code not in self._ends:
            self._ends.append(code)
            self.pass_on(element, log)

    def pass_on(self, element: Element, log: ChannelLog) -> None:
        """To the receiver, if there is one."""
        inlet = self.inlet
        if inlet is None or inlet.broken:
            note(element, log)
            return
        inlet.log = log
        inlet.push(element)


def note(element: Element, log: ChannelLog) -> None:
    """The network's account of something that entered while nobody was there to receive it."""
    if isinstance(element, Record):
        log.sent.append(element.origin)
    elif isinstance(element, Barrier):
        log.barriers.append((element.checkpoint, len(log.sent)))
    elif isinstance(element, Watermark | Idle):
        log.watermarks.append((getattr(element, "time", None), len(log.sent)))


class Inlet(DataChannel):
    """The receiving end of one attempt: what has arrived and was not taken yet."""

    __slots__ = ("channel", "next_number")

    def __init__(self, channel: PersistentChannel, loop: Loop, *, latency: int, late: Lateness | None) -> None:
        super().__init__(channel.name, loop, channel.log, capacity=0, latency=latency, late=late)
        self.channel = channel
        self.next_number = 0
        """of the numbered element to be taken next"""

    def refill(self, elements: Sequence[Element], handed_over: HandOver, replays: Sequence[int] = ()) -> None:
        """Of an attempt that came up with all others: what it was restored with has the first numbers."""
        self.channel.begins_with(elements)
        super().refill(elements, handed_over, replays)

    def fill(self, now: int, ended: Sequence[int]) -> None:
        """From now on all that the log has from the next number on can be taken, with the ends that are not among
        `ended`.  Barriers that came meanwhile are of checkpoints that were given up."""
        lying = [self.channel.at(number) for number in range(self.next_number, self.channel.end)]
        ends = [end_of(code) for code in self.channel.ends if code not in ended]
        self.queue.clear()
        self.impatient = 0
        self.queue.extend((now, element) for element in (*lying, *ends) if element is not None)

    def took(self) -> int:
        """The next numbered element is taken: its number."""
        number, self.next_number = self.next_number, self.next_number + 1
        self.channel.taken = max(self.channel.taken, self.next_number)
        return number


class Outlet:
    """The sending end of one attempt; `next_number` is that of the element to be sent next."""

    def __init__(self, channel: PersistentChannel, log: ChannelLog) -> None:
        self.name = channel.name
        self.channel = channel
        self.log = log
        self.sender: TaskRunner | None = None
        self.next_number = 0
        self.is_closed = False
        """another attempt sends"""

    @property
    def is_full(self) -> bool:
        """What is dropped needs no room."""
        return not self.is_behind and self.channel.is_full

    @property
    def is_behind(self) -> bool:
        """The receiver has more than was sent here."""
        return self.next_number < self.channel.entered

    def push(self, element: Element) -> None:
        channel = self.channel
        if self.is_closed:
            return
        if is_numbered(element):
            number, self.next_number = self.next_number, self.next_number + 1
            if not channel.is_repeat(number):
                channel.enter(element, self.log)
            elif isinstance(element, Record):
                self.log.repeated.append(element.origin)
        elif end_code(element):
            channel.end_with(element, self.log)
        else:
            channel.pass_on(element, self.log)
