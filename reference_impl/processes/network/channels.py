"""Data channels over TCP: first in, first out, with credits (ABS-12).

A sender may put in as many elements as the receiver has granted.  The receiver grants one more for each element of the
sender that its task takes.  Elements that were restored and put back into the channel use no credit.  A barrier that
overtakes asks for no credit: it is sent at once, and the credits may fall below 0.

A sender dials again and again until the receiver's process has the attempt.  Afterwards the end of the connection
without a `Bye` is a failure, which the receiver reports as its own.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ...core.vocabulary.ids import AttemptId, Ends, TaskId
from ...core.vocabulary.messages import Barrier, Element, Idle, Record, Watermark
from ...driver.inputs import HandOver, InputQueue
from ...driver.perturbations import Lateness
from ...driver.timeline import show_sent
from ...trace import ChannelLog
from ...wire import Codec
from ..clock import Clock
from .connections import Connection, Outbox, dial
from .entrance import Entrance
from .frames import Accepted, Bye, Credit, Data, DataFrame, Open, Refused

if TYPE_CHECKING:
    from ...driver.runner import TaskRunner

CODEC: Codec[DataFrame] = Codec(DataFrame)

RETRY_US = 4_000
"""of the machine's clock, between two tries to connect"""
GONE = "there is no such channel any more"
FELT_US = 5_000
"""an element that was under way for longer than this is reported"""


class OutputChannel:
    """The sending end of one channel of one attempt; `driver.ports.Outbound`."""

    def __init__(
        self, ends: Ends, attempt: AttemptId, port: int, outbox: Outbox, log: ChannelLog, late: Lateness | None
    ) -> None:
        self.name: str = ends.name
        self.receiver = ends.receiver
        self.sender: TaskRunner | None = None
        self.sent = 0
        """elements so far, barriers included"""
        self.credits = 0
        """elements that may still enter; below 0 where barriers overtook"""
        self.connection: Connection | None = None
        self._attempt = attempt
        self._port = port
        self._outbox = outbox
        self._log = log
        self._late = late
        self._held: deque[Element] = deque()
        """the element that a schedule perturbation delays, and those behind it"""
        self._held_until = 0
        self._early: list[Element] = []
        """barriers that overtook everything before the receiver had accepted the connection"""
        self._accepted = False
        self._closed = False
        self._connect()

    @property
    def is_full(self) -> bool:
        return self.credits <= len(self._held)

    @property
    def is_idle(self) -> bool:
        """Nothing waits here to be sent."""
        return not self._held and not self._early

    def push(self, element: Element) -> None:
        """Put an element in; the caller has seen that there is room, or it is a barrier that overtakes."""
        self.sent += 1
        self._show(element, self.sent - 1)
        late = self._late.next() if self._late is not None else 0
        if late or self._held:
            self._held.append(element)
            self._held_until = max(self._held_until, self._outbox.loop.now + late)
            self._outbox.loop.at(self._held_until, self._release_next)
        else:
            self._put(element)

    def _show(self, element: Element, place: int) -> None:
        """Write the element into the network's log; `place` counts all elements that this attempt has sent."""
        if type(element) is Record:
            self._log.sent.append(element.origin)
        elif type(element) is Barrier:
            self._log.barriers.append((element.checkpoint, len(self._log.sent)))
        elif isinstance(element, Watermark | Idle):
            self._log.watermarks.append((getattr(element, "time", None), len(self._log.sent)))
        if self.sender is not None and self.sender.world.detailed:
            show_sent(self.sender.world.observer, self.sender, self.receiver, self.name, place, element)

    def close(self) -> None:
        """The sender ends in order."""
        self._closed = True
        if self.connection is not None:
            self.connection.send(Bye(self._outbox.clock.tick()))
            self.connection.close()

    def _release_next(self, *_: object) -> None:
        if self._held and not self._closed:
            self._put(self._held.popleft())

    def _put(self, element: Element) -> None:
        self.credits -= 1
        if not self._accepted:
            self._early.append(element)
        elif self.connection is not None:
            self.connection.send(Data(self._outbox.clock.tick(), element))

    def _connect(self, *_: object) -> None:
        if self._closed:
            return
        self.connection = Connection(dial(self._port), CODEC, self._outbox, self._take, self._ended, greets=True)
        self.connection.send(self._opening())

    def _opening(self) -> Open:
        return Open(self._outbox.clock.tick(), self.name, self._attempt)

    def _retry(self) -> None:
        self._outbox.loop.after_real(RETRY_US, self._connect)

    def _take(self, frame: DataFrame) -> None:
        if isinstance(frame, Accepted):
            self._accepted = True
            self._send_early()
            self._grant(frame.credits)
        elif isinstance(frame, Credit):
            self._grant(frame.count)
        elif isinstance(frame, Refused | Bye) and self.connection is not None:
            self.connection.close()
            self._ended(getattr(frame, "reason", "the receiver has gone"))

    def _send_early(self) -> None:
        """Their credits have been taken already."""
        early, self._early = self._early, []
        for element in early:
            if self.connection is not None:
                self.connection.send(Data(self._outbox.clock.tick(), element))

    def _grant(self, more: int) -> None:
        self.credits += more
        if self.sender is not None:
            self.sender.drain()

    def _ended(self, reason: str) -> None:
        """Before the receiver accepted the connection: dial again.  Afterwards nothing more is put in; the receiver
        reports the failure."""
        self.connection = None
        if not self._accepted:
            self._retry()
        else:
            self.credits = 0


class Feeling:
    """Reports what is done to a connection, as the receiver of its elements notices it."""

    def __init__(self) -> None:
        self.on_felt: Callable[[int, int], None] | None = None
        self._pieces = 0

    def feel(self, stamp: int, connection: Connection, clock: Clock) -> None:
        """An element has arrived that was sent at this stamp."""
        if self.on_felt is None:
            return
        transit_us = clock.tick() - stamp
        pieces = connection.partial_reads
        if transit_us >= FELT_US or pieces != self._pieces:
            self._pieces = pieces
            self.on_felt(transit_us, pieces)


class InputChannel(Feeling, InputQueue):
    """The receiving end of one channel of one attempt; `driver.ports.Inbound`."""

    is_ready = True
    """a sender may connect at any time"""

    def __init__(self, ends: Ends, capacity: int, outbox: Outbox, opened: Callable[[], ChannelLog]) -> None:
        """`opened` gives the log for the elements that are put back into the channel."""
        Feeling.__init__(self)
        InputQueue.__init__(self)
        self.name: str = ends.name
        self.stalled_until = 0
        self.consumed = 0
        """elements that its sender has sent and that were taken, barriers included"""
        self.received = 0
        """elements that have arrived, barriers included"""
        self.sender = _Peer(ends.sender, self)
        self.receiver: TaskRunner | None = None
        self.connection: Connection | None = None
        self.is_over = False
        """its sender has sent `Bye`, or this end has been closed"""
        self.on_broken: Callable[[str], None] = lambda reason: None
        self._capacity = capacity
        self._outbox = outbox
        self._opened = opened
        self._refilled = 0
        """elements that were put back and have not been taken again"""

    def admits(self, asked: Open) -> bool:
        """Whether this is the sender that the channel waits for."""
        return not self.is_over and self.connection is None

    def accept(self, connection: Connection, asked: Open) -> None:
        """The sender has connected: grant it credits for the room there is."""
        self.connection = connection
        connection.send(Accepted(self._outbox.clock.tick(), self._capacity))

    def take(self, frame: DataFrame) -> None:
        if isinstance(frame, Bye):
            self.is_over = True
        elif isinstance(frame, Data):
            now = self._outbox.loop.now
            self.received += 1
            self.queue.append((now, frame.element))
            if type(frame.element) is Barrier:
                self.timed_barriers += frame.element.alignment_timeout_us is not None
            if self.on_felt is not None and self.connection is not None:
                self.feel(frame.stamp, self.connection, self._outbox.clock)
            if self.receiver is not None:
                self.receiver.schedule(now)

    def ended(self, reason: str) -> None:
        """The connection has ended: a failure, unless the sender sent `Bye` before."""
        if not self.is_over:
            self.is_over = True
            self.on_broken(reason)

    def refill(self, elements: Sequence[Element], handed_over: HandOver, replays: Sequence[int] = ()) -> None:
        """Put restored elements back; they do not use the credits of the sender."""
        self._refilled += len(elements)
        self.put_back(elements, handed_over, self._opened(), replays)
        if self.receiver is not None:
            self.receiver.schedule(self._outbox.loop.now)

    def take_overtaking(self, place: int) -> None:
        super().take_overtaking(place)
        self._grant()

    def was_taken(self) -> None:
        """The task has taken an element: grant the sender one more credit, if the element was the sender's.

        Elements that were put back are counted first, wherever they stand in the channel; in the end the sender has
        been granted the same number.
        """
        if self._refilled:
            self._refilled -= 1
        else:
            self._grant()

    def _grant(self) -> None:
        self.consumed += 1
        if self.connection is not None:
            self.connection.send(Credit(self._outbox.clock.tick(), 1))

    def close(self) -> None:
        self.is_over = True
        if self.connection is not None:
            self.connection.send(Bye(self._outbox.clock.tick()))
            self.connection.close()


class _Peer:
    """The sender as its receiver sees it; `driver.ports.Upstream`."""

    def __init__(self, name: TaskId, channel: InputChannel) -> None:
        self.name = name
        self._channel = channel

    def drain(self) -> None:
        self._channel.was_taken()


class AnyInput(Protocol):
    """What `Reception` needs of the receiving end of a channel."""

    name: str

    @property
    def is_ready(self) -> bool: ...

    def admits(self, asked: Open) -> bool: ...

    def accept(self, connection: Connection, asked: Open) -> None: ...

    def take(self, frame: DataFrame) -> None: ...

    def ended(self, reason: str) -> None: ...


class Reception:
    """Accepts connections of senders and hands each to the channel that the sender asks for.

    A sender that connects before the attempt of its receiver is deployed waits for it.  One that connects after that
    attempt was replaced is refused; once `closed` is set, every sender is refused.
    """

    def __init__(self, listener: socket.socket, outbox: Outbox) -> None:
        self._outbox = outbox
        self._channels: dict[str, tuple[AttemptId, AnyInput]] = {}
        self._waiting: list[tuple[Open, _Guest]] = []
        self.closed = False
        Entrance(listener, outbox, self._welcome)

    def _welcome(self, sock: socket.socket) -> None:
        _Guest(sock, self, self._outbox)

    def expect(self, channel: AnyInput, attempt: AttemptId) -> None:
        """From now on this is the channel of that name, for this attempt of its receiver or of all tasks."""
        self._channels[channel.name] = (attempt, channel)
        self.retry_waiting()

    def retry_waiting(self) -> None:
        """Some channel may have become ready: try the waiting senders again."""
        waiting, self._waiting = self._waiting, []
        for asked, guest in waiting:
            self.place(asked, guest)

    def place(self, asked: Open, guest: _Guest) -> None:
        """Hand a connection to its channel, refuse it, or let it wait."""
        of = asked.whole if asked.whole is not None else asked.attempt
        attempt, channel = self._channels.get(asked.channel, (None, None))
        if self.closed:
            guest.refuse(GONE)
        elif attempt is None or channel is None or of > attempt or (of == attempt and not channel.is_ready):
            self._waiting.append((asked, guest))
        elif of < attempt or not channel.admits(asked):
            guest.refuse(GONE)
        else:
            guest.settle(channel, asked)


class _Guest:
    """A connection that has come in; its first frame names the channel that the sender wants."""

    def __init__(self, sock: socket.socket, reception: Reception, outbox: Outbox) -> None:
        self._reception = reception
        self._outbox = outbox
        self._channel: AnyInput | None = None
        self._connection = Connection(sock, CODEC, outbox, self._take, self._ended)

    def settle(self, channel: AnyInput, asked: Open) -> None:
        if self._connection.is_open:
            self._channel = channel
            channel.accept(self._connection, asked)

    def refuse(self, reason: str) -> None:
        self._connection.send(Refused(self._outbox.clock.tick(), reason))
        self._connection.close()

    def _take(self, frame: DataFrame) -> None:
        if self._channel is not None:
            self._channel.take(frame)
        elif isinstance(frame, Open):
            self._reception.place(frame, self)

    def _ended(self, reason: str) -> None:
        if self._channel is not None:
            self._channel.ended(reason)
