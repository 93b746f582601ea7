"""Channels that outlive their two ends (UNA-4): what entered one is in its log, under its number.

A channel is of one attempt of the whole dataflow.  Attempts of single tasks come and go at its ends:
each sender's has an `Outlet`, each receiver's an `Inlet`, and only the newest of each counts.

There is one log of a channel.  Where snapshots hold what is in flight it is the channel's own, and what
enters is durable in it.  With continuous spilling it is the one that snapshots refer to: its receiver
writes it, and what that had not flushed is gone with it.  So the sender keeps what is not durable yet; and
where that is gone too, whoever comes up in its place makes it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.local_recovery import end_code, is_numbered
from ..core.messages import Barrier, Element, Idle, Record, Watermark
from ..core.parts import Parts
from ..driver.decisions import Lateness
from ..driver.inputs import HandOver
from ..driver.numbered import Numbering
from ..trace import ChannelLog
from .links import DataChannel
from .logs import AnyLog
from .loop import Loop

if TYPE_CHECKING:
    from ..driver.runner import TaskRunner


class PersistentChannel:
    """What has been sent into one channel, received and taken, by all attempts at its ends.

    Senders number what they send from 0, receivers behind what the channel began with.
    """

    def __init__(self, name: str, parts: Parts, capacity: int, account: ChannelLog, log: AnyLog) -> None:
        """`account` is what the network says of it, in the first attempt of its sender."""
        self.name = name
        self.account = account
        self.log = log
        self.inlet: Inlet | None = None
        self.outlet: Outlet | None = None
        self.restored = 0
        """how many elements the receiver's first attempt was restored with: before all that was sent"""
        self.taken = 0
        """how many were taken at most, by any attempt of the receiver"""
        self.sent = 0
        """how many numbered elements were sent at most, by any attempt of the sender"""
        self.entered = 0
        """how many of them are here: received, or with a sender that lives, or in the log"""
        self._part = parts.local_recovery
        self._capacity = capacity
        self._ends: list[int] = []

    @property
    def is_full(self) -> bool:
        waiting = len(self.inlet.queue) if self.inlet is not None else 0
        return max(self.restored + self.entered - self.taken, waiting) >= self._capacity

    @property
    def ends(self) -> tuple[int, ...]:
        """The codes of the ends that have come."""
        return tuple(self._ends)

    @property
    def durable(self) -> int:
        """How many of those that were sent are, in the log."""
        return max(0, self.logged - self.restored)

    @property
    def logged(self) -> int:
        """Below which number all that may be asked for is durable, as the receiver counts."""
        return self.log.end(self.restored)

    def may_forget(self, number: int) -> bool:
        return self._part.may_forget(number, self.durable, self.entered)

    def is_expected(self, number: int) -> bool:
        """Whether the element of this number, as the receiver counts, is still to be sent (again)."""
        sender = self.outlet
        return sender is None or not sender.is_there or sender.next_number <= number - self.restored

    def trim(self, before: int) -> None:
        """Nothing before this number, as the receiver counts, is needed."""
        self.log.trim(before, self.restored)
        if self.outlet is not None:
            self.outlet.forget(before - self.restored)

    # -- the receiver ------------------------------------------------------------------

    def receive_at(self, inlet: Inlet) -> None:
        """Another attempt receives: it finds what is durable in the log, and what the sender still has.  What the one
        before it had besides is gone."""
        self.inlet = inlet
        inlet.received = self.log.read(self.restored)
        self.entered, self._ends = self.durable, []
        sender = self.outlet
        if sender is not None and sender.is_there:
            self.entered, self._ends = max(self.entered, sender.next_number), list(sender.ends)
            for number, element in sender.kept:
                inlet.received.setdefault(self.restored + number, element)

    def has_ended(self, code: int) -> None:
        """The receiver had taken this end."""
        if code not in self._ends:
            self._ends.append(code)

    # -- the sender --------------------------------------------------------------------

    def send(self, number: int, element: Element, account: ChannelLog) -> None:
        """A numbered element is sent, perhaps again: what came before is dropped, what was lost is taken in."""
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
        """An end of data; whoever comes up again says it again."""
        code = end_code(element)
        if code not in self._ends:
            self._ends.append(code)
            self._pass_on(element, account)

    def pass_on(self, element: Element, account: ChannelLog) -> None:
        """What has no number, to the receiver, if there is one."""
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
    """The network's account of something that entered while nobody was there to take it."""
    if isinstance(element, Record):
        account.sent.append(element.origin)
    elif isinstance(element, Barrier):
        account.barriers.append((element.checkpoint, len(account.sent)))
    elif isinstance(element, Watermark | Idle):
        account.watermarks.append((getattr(element, "time", None), len(account.sent)))


class Inlet(Numbering, DataChannel):
    """The receiving end of one attempt: what has arrived and was not taken yet.

    It is open once the attempt takes what comes in its turn.  Until then, what it has `received` lies there
    by its number; barriers that come are of checkpoints that were given up.
    """

    __slots__ = ("channel", "is_open", "next_number", "received")

    def __init__(self, channel: PersistentChannel, loop: Loop, *, latency: int, late: Lateness | None) -> None:
        super().__init__(channel.name, loop, channel.account, capacity=0, latency=latency, late=late)
        self.channel = channel
        self.received: dict[int, Element] = {}
        self.is_open = False
        self.next_number = 0
        """of the numbered element to be taken next"""

    def refill(self, elements: Sequence[Element], handed_over: HandOver, replays: Sequence[int] = ()) -> None:
        """Of an attempt that came up with all others: what it was restored with has the first numbers."""
        self.channel.restored = len(elements)
        super().refill(elements, handed_over, replays)

    @property
    def now(self) -> int:
        return self._loop.now

    @property
    def ends(self) -> Sequence[int]:
        return self.channel.ends

    @property
    def logged(self) -> int:
        return self.channel.logged

    def begin_at(self, number: int) -> None:
        """What comes before this number is not taken again."""
        self.next_number = number
        self.received = {at: element for at, element in self.received.items() if at >= number}

    def took(self) -> int:
        """The next numbered element is taken: its number."""
        number, self.next_number = self.next_number, self.next_number + 1
        self.channel.taken = max(self.channel.taken, self.next_number)
        return number

    def has_ended(self, code: int) -> None:
        self.channel.has_ended(code)

    def is_expected(self, number: int) -> bool:
        return self.channel.is_expected(number)

    def trim(self, before: int) -> None:
        self.channel.trim(before)

    def close(self) -> None:
        """Another attempt takes what comes."""
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
        """what was sent and may be asked for again"""
        self.ends: list[int] = []
        """the codes of the ends that it has sent"""
        self.is_closed = False
        """another attempt sends"""

    is_known = True

    def begin_at(self, number: int) -> None:
        self.next_number = number

    def close(self) -> None:
        """Another attempt sends."""
        self.is_closed = True

    @property
    def is_there(self) -> bool:
        """It has what it kept."""
        return not self.is_closed and self.sender is not None and self.sender.alive

    @property
    def is_full(self) -> bool:
        """What is sent again needs no room."""
        return not self.is_behind and self.channel.is_full

    @property
    def is_behind(self) -> bool:
        """More was sent than was sent here."""
        return self.next_number < self.channel.sent

    def push(self, element: Element) -> None:
        channel = self.channel
        if self.is_closed:
            return
        if is_numbered(element):
            number, self.next_number = self.next_number, self.next_number + 1
            channel.send(number, element, self.account)
            self.kept.append((number, element))
            self._let_go()
        elif code := end_code(element):
            self.ends.append(code)
            channel.end_with(element, self.account)
        else:
            channel.pass_on(element, self.account)

    def forget(self, before: int) -> None:
        """Nobody asks for what was sent under a number below this."""
        while self.kept and self.kept[0][0] < before:
            self.kept.popleft()

    def _let_go(self) -> None:
        while self.kept and self.channel.may_forget(self.kept[0][0]):
            self.kept.popleft()
