"""The receiving end of a data channel that outlives the attempts at its ends; see `numbered_output`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...core.decisions.local_recovery import End, LocalRecovery
from ...core.extensions.local_recovery import ENDS
from ...core.vocabulary.ids import AttemptId, Ends
from ...core.vocabulary.messages import Barrier, Element
from ...driver.inputs import HandOver, InputQueue
from ...driver.numbered import NumberedSender, Numbering
from ...trace import ChannelLog
from ..disk.determinants import DiskDeterminants
from .channels import Feeling
from .connections import Connection, Outbox
from .frames import Bye, DataFrame, Durable, Numbered, Open, Taken, Welcome

if TYPE_CHECKING:
    from ...driver.runner import TaskRunner


class NumberedInput(Numbering, Feeling, InputQueue):
    """The receiving end of one attempt; `driver.numbered.NumberedIn`."""

    def __init__(
        self,
        ends: Ends,
        number: int,
        attempt: AttemptId,
        outbox: Outbox,
        order: DiskDeterminants,
        part: LocalRecovery,
        opened: Callable[[], ChannelLog],
        stored: Callable[[], dict[int, Element]],
        *,
        returns: bool,
    ) -> None:
        """`number` is its number among the task's inputs; `stored` gives what is durable in the channel's log."""
        InputQueue.__init__(self)
        Feeling.__init__(self)
        self.name: str = ends.name
        self.stalled_until = 0
        self.sender = NumberedSender(ends.sender)
        self.receiver: TaskRunner | None = None
        self.connection: Connection | None = None
        self.is_over = False
        self.on_broken: Callable[[str], None] = lambda reason: None
        self.when_ready: Callable[[], None] = lambda: None
        self.received: dict[int, Element] = {}
        self.next_number = 0
        self.is_open = False
        self.is_ready = not returns
        """it knows from which number on it expects elements"""
        self.logged = 0
        self.sender_attempt: AttemptId | None = None
        """the attempt that sends; None: none has connected"""
        self._received_place = 0
        self._number = number
        self.attempt = attempt
        self._outbox = outbox
        self._order = order
        self._part = part
        self._opened = opened
        self._stored = stored
        self._expected = 0
        """one more than the number of the last element that has arrived, as senders count"""
        self._ends: list[End] = []

    @property
    def now(self) -> int:
        return self._outbox.loop.now

    @property
    def ends(self) -> Sequence[End]:
        return self._ends

    @property
    def restored(self) -> int:
        return self._order.restored.get(self._number, 0)

    @property
    def consumed(self) -> int:
        """How many elements were taken, as senders count."""
        return self.next_number - self.restored

    # -- the connection ----------------------------------------------------------------

    def admits(self, asked: Open) -> bool:
        """Whether this sender is the one that the channel waits for.

        Once another attempt has taken the place of this one, no sender is admitted: the other has read the log as it
        was then.
        """
        is_older = self.sender_attempt is not None and asked.attempt < self.sender_attempt
        return not self.is_over and not is_older and self._order.surely_holds

    def accept(self, connection: Connection, asked: Open) -> None:
        """An attempt of the sender has connected, the same as before or a later one."""
        if self.connection is not None:
            self.connection.close()
        if asked.attempt != self.sender_attempt:
            self.sender_attempt, self._received_place = asked.attempt, 0
        self.connection = connection
        connection.send(
            Welcome(
                self._outbox.clock.tick(),
                self.attempt,
                self._expected,
                max(0, self.consumed),
                max(0, self.logged - self.restored),
                self._received_place,
            )
        )

    def ended(self, reason: str) -> None:
        """The connection has ended: an attempt of the sender will connect again."""
        self.connection = None
        if not self.is_over:
            self.on_broken(reason)

    def take(self, frame: DataFrame) -> None:
        if isinstance(frame, Bye) and self.connection is not None:
            self.connection.close()
            self.connection = None
        elif isinstance(frame, Numbered):
            self._received_place = frame.place + 1
            if self.connection is not None:
                self.feel(frame.stamp, self.connection, self._outbox.clock)
            if frame.number is not None:
                self._take_numbered(frame.number, frame.element)
            else:
                self._take_other(frame.element)

    def _take_numbered(self, number: int, element: Element) -> None:
        if self._part.is_repeat(number, self._expected):
            return
        self._expected = max(self._expected, number + 1)
        self.take_in(self.restored + number, element)

    def _take_other(self, element: Element) -> None:
        end = ENDS.get(type(element))
        if end in self._ends:
            return
        if end is not None:
            self._ends.append(end)
        if not self.is_open:
            return  # barriers that come while the task repeats its work are of checkpoints that were aborted
        self.queue.append((self.now, element))
        if type(element) is Barrier:
            self.timed_barriers += element.alignment_timeout_us is not None
        if self.receiver is not None:
            self.receiver.schedule(self.now)

    def close(self) -> None:
        self.is_over = True
        if self.connection is not None:
            self.connection.send(Bye(self._outbox.clock.tick()))
            self.connection.close()

    # -- what is taken -----------------------------------------------------------------

    def refill(self, elements: Sequence[Element], handed_over: HandOver, replays: Sequence[int] = ()) -> None:
        """For an attempt that was deployed with all others: the elements that are put back have the first numbers."""
        self._order.began_with(self._number, len(elements))
        self.put_back(elements, handed_over, self._opened(), replays)
        if self.receiver is not None:
            self.receiver.schedule(self.now)

    def begin_at(self, number: int) -> None:
        """Senders must send a locally recovered attempt every element that is durable nowhere."""
        stored = self._stored()
        self.next_number = number
        self.received = {at: one for at, one in {**stored, **self.received}.items() if at >= number}
        self.logged = max(number, *(at + 1 for at in stored)) if stored else number
        self._expected = max(0, self.logged - self.restored)
        self.is_ready = True
        self.when_ready()

    def has_ended(self, end: End) -> None:
        if end not in self._ends:
            self._ends.append(end)

    def is_expected(self, number: int) -> bool:
        return number - self.restored >= self._expected

    def trim(self, before: int) -> None:
        """The task trims the log itself."""

    def took(self) -> int:
        number, self.next_number = self.next_number, self.next_number + 1
        if self.connection is not None:
            self.connection.send(Taken(self._outbox.clock.tick(), max(0, self.consumed), self._expected))
        return number

    def flushed(self, end: int) -> None:
        """Below this number everything is durable in the log.

        No sender is notified of that, now or later, once another attempt has taken the place of this one: that attempt
        may have read the log before.
        """
        if not self._order.surely_holds:
            return
        self.logged = max(self.logged, end)
        if self.connection is not None:
            self.connection.send(Durable(self._outbox.clock.tick(), max(0, self.logged - self.restored)))
