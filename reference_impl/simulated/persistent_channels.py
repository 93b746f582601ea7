"""Channels that outlive the attempts at their ends (UNA-4): the elements of a channel are in its log, with their
numbers.

A channel belongs to one attempt of the whole dataflow.  Attempts of single tasks begin and end at its ends: each
attempt of the sender has an `Outlet`, each attempt of the receiver an `Inlet`, and only the newest of each counts.

A channel has one log.  Where snapshots hold the in-flight data, the log is the channel's own, and an element that
enters is durable in it.  With continuous spilling it is the log to which snapshots refer.  The receiver writes it, and
what the receiver has not flushed is lost with the receiver.  So the sender keeps the elements that are not durable.  If
the sender is lost too, the attempt that replaces it produces them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.decisions.local_recovery import End
from ..core.decisions.parts import Parts
from ..core.extensions.local_recovery import ENDS, is_numbered
from ..core.vocabulary.messages import Barrier, Element, Idle, Record, Watermark
from ..driver.inputs import HandOver
from ..driver.numbered import Numbering
from ..driver.perturbations import Lateness
from ..trace import ChannelLog
from .links import DataChannel
from .logs import AnyLog
from .loop import Loop

if TYPE_CHECKING:
    from ..driver.runner import TaskRunner


class PersistentChannel:
    """What all attempts at the ends of one channel have sent, received and taken.

    Senders number what they send from 0.  Receivers count on from the elements with which the channel began.
    """

    def __init__(self, name: str, parts: Parts, capacity: int, account: ChannelLog, log: AnyLog) -> None:
        """`account` is the network's record of the channel, for the first attempt of its sender."""
        self.name = name
        self.account = account
        self.log = log
        self.inlet: Inlet | None = None
        self.outlet: Outlet | None = None
        self.restored = 0
        """with how many elements the receiver's first attempt was restored; they come before all that was sent"""
        self.taken = 0
        """how many elements were taken at most, by any attempt of the receiver"""
        self.sent = 0
        """how many numbered elements were sent at most, by any attempt of the sender"""
        self.entered = 0
        """how many of them exist: received, kept by a sender that lives, or in the log"""
        self._part = parts.local_recovery
        self._capacity = capacity
        self._ends: list[End] = []

    @property
    def is_full(self) -> bool:
        waiting = len(self.inlet.queue) if self.inlet is not None else 0
        return max(self.restored + self.entered - self.taken, waiting) >= self._capacity

    @property
    def ends(self) -> tuple[End, ...]:
        """The ends that have arrived."""
        return tuple(self._ends)

    @property
    def durable(self) -> int:
        """How many of the sent elements are durable, in the log."""
        return max(0, self.logged - self.restored)

    @property
    def logged(self) -> int:
        """Every element below this number, as the receiver counts, is durable if it may still be asked for."""
        return self.log.end(self.restored)

    def may_forget(self, number: int) -> bool:
        return self._part.may_forget(number, self.durable, self.entered)

    def is_expected(self, number: int) -> bool:
        """Whether the element of this number, as the receiver counts, is still to be sent, or sent again."""
        sender = self.outlet
        return sender is None or not sender.is_there or sender.next_number <= number - self.restored

    def trim(self, before: int) -> None:
        """Elements below this number, as the receiver counts, are not needed any more."""
        self.log.trim(before, self.restored)
        if self.outlet is not None:
            self.outlet.forget(before - self.restored)

    # -- the receiver ------------------------------------------------------------------

    def receive_at(self, inlet: Inlet) -> None:
        """Another attempt receives: it finds the durable elements in the log, and the sender still has others.

        What the attempt before it had besides these is lost.
        """
        self.inlet = inlet
        inlet.received = self.log.read(self.restored)
        self.entered, self._ends = self.durable, []
        sender = self.outlet
        if sender is not None and sender.is_there:
            self.entered, self._ends = max(self.entered, sender.next_number), list(sender.ends)
            for number, element in sender.kept:
                inlet.received.setdefault(self.restored + number, element)

    def has_ended(self, end: End) -> None:
        """The receiver has taken this end."""
        if end not in self._ends:
            self._ends.append(end)

    # -- the sender --------------------------------------------------------------------

    def send(self, number: int, element: Element, account: ChannelLog) -> None:
        """A numbered element is sent, perhaps again: one that has arrived before is dropped, one that was lost is
        taken in."""
        lost = self.entered <= number < self.sent
        if lost or self._part.is_repeat(number, self.entered):
            if isinstance(element, Record):
                account.repeated.append(element.origin)
            if not lost:
                return
        self.entered = max(self.entered, number + 1)
        self.sent = max(self.sent, self.entered)
        self.log.entered(number, element)
        if not lost:
            self._pass_on(element, account, self.restored + number)
        elif self.inlet is not None:
            self.inlet.take_in(self.restored + number, element)

    def end_with(self, element: Element, account: ChannelLog) -> None:
        """An end of data is sent; a new attempt of the sender sends it again."""
        end = ENDS[type(element)]
        if end not in self._ends:
            self._ends.append(end)
            self._pass_on(element, account)

    def pass_on(self, element: Element, account: ChannelLog) -> None:
        """Pass an element without a number to the receiver, if there is one."""
        self._pass_on(element, account)

    def _pass_on(self, element: Element, account: ChannelLog, number: int | None = None) -> None:
        inlet = self.inlet
        if inlet is None or inlet.broken or not inlet.is_open:
            note(element, account)
            if inlet is not None and number is not None:
                inlet.take_in(number, element)
            return
        inlet.log = account
        inlet.push(element)


def note(element: Element, account: ChannelLog) -> None:
    """Record in the network's account an element that entered while no receiver was there."""
    if isinstance(element, Record):
        account.sent.append(element.origin)
    elif isinstance(element, Barrier):
        account.barriers.append((element.checkpoint, len(account.sent)))
    elif isinstance(element, Watermark | Idle):
        account.watermarks.append((getattr(element, "time", None), len(account.sent)))


class Inlet(Numbering, DataChannel):
    """The receiving end of one attempt: the elements that have arrived and were not taken yet.

    It is open once the attempt takes elements that are new.  Until then, elements that it has `received` wait by their
    numbers; barriers that come are of checkpoints that were aborted.
    """

    __slots__ = ("channel", "is_open", "next_number", "received")

    def __init__(self, channel: PersistentChannel, loop: Loop, *, latency: int, late: Lateness | None) -> None:
        super().__init__(channel.name, loop, channel.account, capacity=0, latency=latency, late=late)
        self.channel = channel
        self.received: dict[int, Element] = {}
        self.is_open = False
        self.next_number = 0
        """of the next numbered element to be taken"""

    def refill(self, elements: Sequence[Element], handed_over: HandOver, replays: Sequence[int] = ()) -> None:
        """For an attempt that was deployed with all others: the elements that are put back have the first numbers."""
        self.channel.restored = len(elements)
        super().refill(elements, handed_over, replays)

    @property
    def now(self) -> int:
        return self._loop.now

    @property
    def ends(self) -> Sequence[End]:
        return self.channel.ends

    @property
    def logged(self) -> int:
        return self.channel.logged

    def begin_at(self, number: int) -> None:
        """Elements below this number are not taken again."""
        self.next_number = number
        self.received = {at: element for at, element in self.received.items() if at >= number}

    def took(self) -> int:
        """The next numbered element is taken; returns its number."""
        number, self.next_number = self.next_number, self.next_number + 1
        self.channel.taken = max(self.channel.taken, self.next_number)
        return number

    def has_ended(self, end: End) -> None:
        self.channel.has_ended(end)

    def is_expected(self, number: int) -> bool:
        return self.channel.is_expected(number)

    def trim(self, before: int) -> None:
        self.channel.trim(before)

    def close(self) -> None:
        """Another attempt takes the elements from now on."""
        self.queue.clear()
        self.sender = None


class Outlet:
    """The sending end of one attempt; `next_number` is that of the element to be sent next."""

    def __init__(self, channel: PersistentChannel, account: ChannelLog) -> None:
        self.name = channel.name
        self.channel = channel
        self.account = account
        self.sender: TaskRunner | None = None
        self.next_number = 0
        self.kept: deque[tuple[int, Element]] = deque()
        """sent elements that may be asked for again"""
        self.ends: list[End] = []
        """the ends that it has sent"""
        self.is_closed = False
        """another attempt sends now"""

    is_known = True

    def begin_at(self, number: int) -> None:
        self.next_number = number

    def close(self) -> None:
        """Another attempt sends from now on."""
        self.is_closed = True

    @property
    def is_there(self) -> bool:
        """Whether its kept elements still exist."""
        return not self.is_closed and self.sender is not None and self.sender.alive

    @property
    def is_full(self) -> bool:
        """Whether there is no room; elements that are sent again need none."""
        return not self.is_behind and self.channel.is_full

    @property
    def is_behind(self) -> bool:
        """Whether earlier attempts have sent more than this one has so far."""
        return self.next_number < self.channel.sent

    def push(self, element: Element) -> None:
        channel = self.channel
        if self.is_closed:
            return
        if is_numbered(element):
            number, self.next_number = self.next_number, self.next_number + 1
            channel.send(number, element, self.account)
            self.kept.append((number, element))
            self._forget_unneeded()
        elif end := ENDS.get(type(element)):
            self.ends.append(end)
            channel.end_with(element, self.account)
        else:
            channel.pass_on(element, self.account)

    def forget(self, before: int) -> None:
        """Nobody asks any more for elements with a number below this."""
        while self.kept and self.kept[0][0] < before:
            self.kept.popleft()

    def _forget_unneeded(self) -> None:
        while self.kept and self.channel.may_forget(self.kept[0][0]):
            self.kept.popleft()
