"""The two ends of a channel that outlives its attempts, for the driver of a task with local recovery (UNA-4).

Every element of such a channel has a number.  A sender counts from 0.  A receiver goes on counting from the elements
with which the channel began.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from ..core.decisions.local_recovery import End
from ..core.extensions.local_recovery import DeterminantLog, element_of
from ..core.vocabulary.ids import TaskId
from ..core.vocabulary.messages import Element
from .ports import Inbound, Outbound
from .runner import TaskRunner


class NumberedIn(Inbound, Protocol):
    """The receiving end of one attempt.

    It is open once the attempt takes elements in order.  Until then `received` keeps those that came, by number.
    """

    received: dict[int, Element]
    next_number: int
    """of the next numbered element to be taken"""

    @property
    def logged(self) -> int:
        """The number below which every element that may be needed is durable in the channel's log."""

    def took(self) -> int:
        """Count the next numbered element as taken; returns its number."""

    def take_in(self, number: int, element: Element) -> None: ...

    def begin_at(self, number: int) -> None:
        """Elements below this number are not taken again; the durable ones of the others come from the log."""

    def open(self, ended: Sequence[End]) -> None:
        """From now on what was received and not taken can be taken, and the ends that are not among `ended`."""

    def has_ended(self, end: End) -> None:
        """An earlier attempt had taken this end."""

    def is_expected(self, number: int) -> bool:
        """Whether the element with this number has still to come, or to come again."""

    def trim(self, before: int) -> None:
        """No element before this number is needed."""

    def close(self) -> None: ...


class NumberedOut(Outbound, Protocol):
    """The sending end of one attempt."""

    next_number: int
    """of the next element to be sent"""

    @property
    def is_known(self) -> bool:
        """Whether it is known how many elements were sent into the channel before."""

    @property
    def is_behind(self) -> bool:
        """Whether earlier attempts sent more elements than this one has, as far as is known."""

    def begin_at(self, number: int) -> None:
        """Earlier attempts have sent the elements below this number; they are not sent again."""

    def close(self) -> None: ...


class Numbering(ABC):
    """The part of a receiving end that both worlds share."""

    queue: deque[tuple[int, Element]]
    receiver: TaskRunner | None
    received: dict[int, Element]
    is_open: bool
    next_number: int

    @property
    @abstractmethod
    def now(self) -> int:
        """The world's time, in µs."""

    @property
    @abstractmethod
    def ends(self) -> Sequence[End]:
        """The ends that have come."""

    def take_in(self, number: int, element: Element) -> None:
        """An element came during a replay, or came again after a loss."""
        if self.is_open:
            self.queue.append((self.now, element))
        else:
            self.received.setdefault(number, element)
        if self.receiver is not None:
            self.receiver.schedule(self.now)

    def open(self, ended: Sequence[End]) -> None:
        """From now on what was received and not taken can be taken, and the ends that are not among `ended`."""
        not_taken = [self.received[number] for number in sorted(self.received) if number >= self.next_number]
        ends = [element_of(end) for end in self.ends if end not in ended]
        now = self.now
        self.queue.extend((now, element) for element in (*not_taken, *ends))
        self.received = {}
        self.is_open = True


class DurableDeterminants(DeterminantLog):
    """A task's determinants and how far they are durable; this class keeps them in memory, for a world without disks.

    Raises OSError where it cannot be written.
    """

    def write(self) -> None:
        """Write the determinants logged so far; `settle` makes them durable."""

    def settle(self, end: int) -> bool:
        """All determinants before `end` are durable.  False if another attempt has replaced this one: then no output
        that depends on them may leave."""
        self.flushed(end)
        return True

    def began_with(self, channel: int, count: int) -> None:
        """The task's first attempt put back this many elements into an input."""


class NumberedSender:
    """A sender that needs no report of taken elements; a `driver.ports.Upstream`."""

    def __init__(self, name: TaskId) -> None:
        self.name = name

    def drain(self) -> None:
        """Nothing: a receiver reports numbers instead."""
