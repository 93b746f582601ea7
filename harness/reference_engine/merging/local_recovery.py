"""Channels that outlive the attempts of tasks at their ends (UNA-4), as their senders wrote of them.

With local recovery, an attempt records what it sends and the number of its first element.  An element that an earlier
attempt had sent and that had arrived is recorded as repeated.  An element that was durable nowhere when this attempt
began was lost with the earlier attempt and does not count.  Nor does what an earlier attempt writes later, because it
does not know that it has been replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ....properties.model.history import Channel

Item = TypeVar("Item", contravariant=True)
Marked = tuple[int | None, int]


class Taker(Generic[Item]):
    """What takes an append as a list does."""

    def __init__(self, take: Callable[[Item], None]) -> None:
        self.append = take


class Continued:
    """The account of an attempt of local recovery: `log` gets the elements that it was the first to send."""

    def __init__(self, log: Channel, first: int, expects: int) -> None:
        self._log = log
        self._next = first
        self._new = expects
        self.sent: Taker[int] = Taker(self._send)
        self.barriers: Taker[tuple[int, int]] = Taker(self._bar)
        self.watermarks: Taker[Marked] = Taker(self._mark)

    def _is_new(self) -> bool:
        self._next += 1
        return self._next > self._new

    def _send(self, origin: int) -> None:
        (self._log.sent if self._is_new() else self._log.repeated).append(origin)

    def _mark(self, mark: Marked) -> None:
        if self._is_new():
            self._log.watermarks.append((mark[0], len(self._log.sent)))

    def _bar(self, barrier: tuple[int, int]) -> None:
        self._log.barriers.append((barrier[0], len(self._log.sent)))


class Replaced:
    """The account of an attempt when another has its place: nothing more goes into it."""

    def __init__(self) -> None:
        nothing: Callable[[object], None] = lambda item: None  # noqa: E731
        self.sent: Taker[int] = Taker(nothing)
        self.barriers: Taker[tuple[int, int]] = Taker(nothing)
        self.watermarks: Taker[Marked] = Taker(nothing)


class Opened:
    """What was opened of one channel, by which attempt of its sender."""

    def __init__(self, attempt: int, key: tuple[int, int], log: Channel) -> None:
        self.attempt = attempt
        self.key = key
        self.log = log


def cut(logs: Sequence[Channel], numbered: int) -> None:
    """Leave of what attempts sent, one after the other, so many records and watermarks."""
    for log in logs:
        records, marks = _within(log, numbered)
        numbered -= records + marks
        if records < len(log.sent):
            log.barriers[:] = [one for one in log.barriers if one[1] <= records]
        del log.sent[records:]
        del log.watermarks[marks:]


def _within(log: Channel, numbered: int) -> tuple[int, int]:
    """How many of the first so many elements are records, and how many watermarks."""
    marks = 0
    for at in range(len(log.sent) + 1):
        while marks < len(log.watermarks) and log.watermarks[marks][1] == at:
            if at + marks == numbered:
                return at, marks
            marks += 1
        if at + marks == numbered:
            return at, marks
    return len(log.sent), marks
