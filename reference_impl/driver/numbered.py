"""The two ends of a channel that outlives its attempts, as the driver of a task with local recovery sees them (UNA-4).

Every element of such a channel has a number.  A sender counts from 0; a receiver counts on from the elements that the
channel began with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ..core.ids import TaskId
from ..core.local_recovery import DeterminantLog, end_of
from ..core.messages import Element
from .ports import Inbound, Outbound

if TYPE_CHECKING:
    from .runner import TaskRunner


class NumberedIn(Inbound, Protocol):
    """The receiving end of one attempt.

    It is open once the attempt takes what comes in its turn; until then, what it has `received` lies there by number.
    """

    received: dict[int, Element]
    next_number: int
    """of the numbered element to be taken next"""

    @property
    def logged(self) -> int:
        """Below which number all that may be asked for is durable in the channel's log."""

    def took(self) -> int:
        """The next numbered element is taken: its number."""

    def take_in(self, number: int, element: Element) -> None: ...

    def begin_at(self, number: int) -> None:
        """Elements below this number are not taken again; of the others the durable ones are received from the log."""

    def open(self, ended: Sequence[int]) -> None:
        """From now on all that was received and not taken can be, with the ends that are not among `ended`."""

    def has_ended(self, code: int) -> None:
        """An attempt before this one had taken this end."""

    def is_expected(self, number: int) -> bool:
        """Whether the element of this number has still to come (again)."""

    def trim(self, before: int) -> None:
        """Nothing before this number is needed."""

    def close(self) -> None: ...


class NumberedOut(Outbound, Protocol):
    """The sending end of one attempt."""

    next_number: int
    """of the element to be sent next"""

    @property
    def is_known(self) -> bool:
        """Whether it is known how much was sent into the channel before."""

    @property
    def is_behind(self) -> bool:
        """Attempts before this one had sent more than this one has, as far as is known."""

    def begin_at(self, number: int) -> None:
        """Earlier attempts have sent the elements below this number; they are not sent again."""

    def close(self) -> None: ...


class Numbering(ABC):
    """The part of a receiving end that is the same in every world."""

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
    def ends(self) -> Sequence[int]:
        """The codes of the ends that have come."""

    def take_in(self, number: int, element: Element) -> None:
        """An element has come during a replay, or has come again after it was lost."""
        if self.is_open:
            self.queue.append((self.now, element))
        else:
            self.received.setdefault(number, element)
        if self.receiver is not None:
            self.receiver.schedule(self.now)

    def open(self, ended: Sequence[int]) -> None:
        """From now on all that was received and not taken can be, with the ends that are not among `ended`."""
        lying = [self.received[number] for number in sorted(self.received) if number >= self.next_number]
        ends = [end_of(code) for code in self.ends if code not in ended]
        now = self.now
        self.queue.extend((now, element) for element in (*lying, *ends))
        self.received = {}
        self.is_open = True


class DurableDeterminants(DeterminantLog):
    """The durable determinants of a task: in this class in memory, for a world without other storage.

    Raises OSError where it cannot be written.
    """

    def write(self) -> None:
        """Let out what was taken down; `settle` makes it durable."""

    def settle(self, end: int) -> bool:
        """All determinants before this are durable; False once another attempt has taken the task's place: what follows
        from them must not leave then."""
        self.flushed(end)
        return True

    def began_with(self, channel: int, count: int) -> None:
        """The task's first attempt put back so many elements into an input."""


class NumberedSender:
    """A sender that needs no report of each element taken; `driver.ports.Upstream`."""

    def __init__(self, name: TaskId) -> None:
        self.name = name

    def drain(self) -> None:
        """Report the number to it."""
