"""Data channels over TCP that outlive the attempts at their ends (UNA-4): the sending end; `numbered_input` has the
receiving one.

A channel belongs to one attempt of the whole dataflow.  Each element has a *place*, which counts what one attempt of
the sender has sent.  An element that can be in flight in a snapshot also has a *number*, which counts what was ever
sent into the channel.

When the receiver accepts a connection it reports four positions: the number it expects, how many it has taken, how many
are durable in the channel's log, and the last place that it has received from this attempt.  It reports again when it
takes an element, and when its log has been flushed.

The sender keeps every element that is not durable.  When its connection ends, it connects again, to the same attempt of
the receiver or to the next one, and sends again what that attempt lacks.  The receiver waits for the attempt that sends
next, and drops elements that have arrived before: a locally recovered attempt sends everything again from its snapshot
on.  Ends are sent to each attempt of the receiver, and taken once.

Room is counted in numbers too: a sender may be as many elements ahead of the receiver as the channel holds.  Elements
that were sent before need no room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ...core.decisions.local_recovery import LocalRecovery
from ...core.extensions.local_recovery import is_numbered
from ...core.vocabulary.ids import AttemptId, Ends
from ...core.vocabulary.messages import Element
from ...driver.perturbations import Lateness
from ...trace import SenderLog
from .channels import OutputChannel
from .connections import Outbox
from .frames import Bye, DataFrame, Durable, Numbered, Open, Refused, Taken, Welcome

Kept = tuple[int, int | None, Element]
"""(place, number, element) of what was sent; a barrier, a cancel barrier, an end has no number"""


class NumberedOutput(OutputChannel):
    """The sending end of one attempt; `driver.numbered.NumberedOut`."""

    def __init__(
        self,
        ends: Ends,
        attempt: AttemptId,
        port: int,
        outbox: Outbox,
        log: SenderLog,
        late: Lateness | None,
        *,
        whole: AttemptId,
        capacity: int,
        part: LocalRecovery,
    ) -> None:
        """`whole`: the attempt of all tasks to which the channel belongs."""
        self.next_number = 0
        self.kept: deque[Kept] = deque()
        self.is_known = False
        self.when_known: Callable[[], None] = lambda: None
        self._whole = whole
        self._capacity = capacity
        self._part = part
        self._account = log
        self._first = 0
        self._has_begun = attempt == whole
        """it knows the number of the first element that it sends; before that it dials nobody"""
        self._pushed = 0
        self._sent_before = 0
        """every element below this number had arrived when the receiver was asked"""
        self._taken = 0
        self._received = 0
        self._durable = 0
        self._early_barriers: list[Element] = []
        """barriers that were sent before the receiver reported where the channel stands; they overtook everything"""
        self._waiting: deque[Kept] = deque()
        """the element that a schedule perturbation delays, and those behind it"""
        self._receiver: AttemptId | None = None
        """the newest known attempt of the receiver"""
        self.accepted_by: AttemptId | None = None
        """the attempt of the receiver that has accepted the connection"""
        super().__init__(ends, attempt, port, outbox, log, late)

    def begin_at(self, number: int) -> None:
        self._first = self.next_number = self.sent = number
        self._has_begun = True
        self._connect()

    @property
    def is_behind(self) -> bool:
        return not self.is_known or self.next_number < self._sent_before

    @property
    def is_full(self) -> bool:
        """Whether there is no room; elements that were sent before need none."""
        if not self.is_known:
            return True
        return self.next_number >= self._sent_before and self.next_number - self._taken >= self._capacity

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._early_barriers and self.accepted_by is not None

    # -- sending -----------------------------------------------------------------------

    def push(self, element: Element) -> None:
        if self._closed:
            return
        if not self.is_known:
            self._early_barriers.append(element)
            return
        self._show(element, self._pushed)
        number = None
        if is_numbered(element):
            number, self.next_number = self.next_number, self.next_number + 1
            self.sent = self.next_number
        one = (self._pushed, number, element)
        self._pushed += 1
        self.kept.append(one)
        late = self._late.next() if self._late is not None else 0
        if late or self._waiting:
            self._waiting.append(one)
            self._held_until = max(self._held_until, self._outbox.loop.now + late)
            self._outbox.loop.at(self._held_until, self._release_next)
        else:
            self._send(one)

    def _release_next(self, *_: object) -> None:
        if self._waiting and not self._closed:
            self._send(self._waiting.popleft())

    def _send(self, one: Kept) -> None:
        if self.accepted_by is not None and self.connection is not None:
            self.connection.send(Numbered(self._outbox.clock.tick(), *one))

    def _forget(self) -> None:
        """Drop what nobody will ask for any more; an element without a number goes with those behind it."""
        while self.kept:
            numbered = ((at, number) for at, (_, number, _) in enumerate(self.kept) if number is not None)
            at, number = next(numbered, (0, None))
            if number is None or not self._part.may_forget(number, self._durable, self._received):
                return
            for _ in range(at + 1):
                self.kept.popleft()

    # -- the connection ----------------------------------------------------------------

    def receiver_moved(self, attempt: AttemptId) -> None:
        """Another attempt of the receiver starts: what an earlier one has accepted does not count any more."""
        if not self._is_former(attempt):
            self._receiver = attempt
        if self.accepted_by is None or self._is_former(self.accepted_by):
            self._hang_up()

    def _is_former(self, attempt: AttemptId) -> bool:
        """Whether a later attempt of the receiver is known."""
        return self._receiver is not None and attempt < self._receiver

    def _hang_up(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self._ended("the receiver is another")

    def _opening(self) -> Open:
        return Open(self._outbox.clock.tick(), self.name, self._attempt, self._whole)

    def _connect(self, *_: object) -> None:
        if self._has_begun and self.connection is None:
            super()._connect()

    def _ended(self, reason: str) -> None:
        """Whatever ended the connection: an attempt of the receiver will accept again."""
        self.connection = None
        self.accepted_by = None
        if not self._closed:
            self._retry()

    def _take(self, frame: DataFrame) -> None:
        if isinstance(frame, Welcome):
            self._accept(frame)
        elif isinstance(frame, Taken):
            self._taken, self._received = frame.number, frame.expects
            self._forget()
            if self.sender is not None:
                self.sender.drain()
        elif isinstance(frame, Durable):
            self._durable = frame.number
            self._forget()
        elif isinstance(frame, Refused | Bye):
            self._hang_up()

    def _accept(self, welcome: Welcome) -> None:
        if self._is_former(welcome.attempt):
            self._hang_up()
            return
        self._receiver = self.accepted_by = welcome.attempt
        if not self.is_known:
            self.is_known = True
            if self._attempt != self._whole:
                self._account.continued(self._whole, self._first, welcome.expects)
        self._sent_before = max(self._sent_before, welcome.expects)
        self._taken, self._durable, self._received = welcome.taken, welcome.durable, welcome.expects
        self._waiting.clear()
        for one in self._asked_for(welcome):
            self._send(one)
        self._forget()
        early_barriers, self._early_barriers = self._early_barriers, []
        for element in early_barriers:
            self.push(element)
        self.when_known()

    def _asked_for(self, welcome: Welcome) -> list[Kept]:
        """Every kept element that the receiver lacks.

        Of this attempt that is what follows the last place that has arrived.  Of an earlier attempt the receiver drops
        repeated elements by their numbers; those without a number may be new to it.
        """
        return [one for one in self.kept if one[0] >= welcome.received_place]
