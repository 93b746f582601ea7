"""Channels that outlive the attempts of the tasks at their ends (UNA-4), as recorded by their senders.

With local recovery, an attempt records what it sends and the number of its first element.  An element that an earlier
attempt had sent and that had arrived is recorded as repeated.  An element that was durable nowhere when this attempt
began was lost with the earlier attempt and does not count.  A replaced attempt may not know that it is replaced; what
it records from then on does not count either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ....properties.model.history import Channel

Item = TypeVar("Item", contravariant=True)
Marked = tuple[int | None, int]


class Taker(Generic[Item]):
    """An object with a method `append`, as a list has."""

    def __init__(self, take: Callable[[Item], None]) -> None:
        self.append = take


class Continued:
    """The record of an attempt that local recovery started: `log` gets the elements that it was the first to send."""

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
    """The record of an attempt that was replaced: it ignores everything."""

    def __init__(self) -> None:
        nothing: Callable[[object], None] = lambda item: None  # noqa: E731
        self.sent: Taker[int] = Taker(nothing)
        self.barriers: Taker[tuple[int, int]] = Taker(nothing)
        self.watermarks: Taker[Marked] = Taker(nothing)


class Opened:
    """The log of one channel that one attempt of its sender opened."""

    def __init__(self, attempt: int, key: tuple[int, int], log: Channel) -> None:
        self.attempt = attempt
        self.key = key
        self.log = log


def cut(logs: Sequence[Channel], numbered: int) -> None:
    """Cut the logs of successive attempts: of all elements together, only the first `numbered` stay."""
    for log in logs:
        records, marks = _within(log, numbered)
        numbered -= records + marks
        if records < len(log.sent):
            log.barriers[:] = [one for one in log.barriers if one[1] <= records]
        del log.sent[records:]
        del log.watermarks[marks:]


def _within(log: Channel, numbered: int) -> tuple[int, int]:
    """Of the first `numbered` elements, how many are records and how many are watermarks."""
    marks = 0
    for at in range(len(log.sent) + 1):
        while marks < len(log.watermarks) and log.watermarks[marks][1] == at:
            if at + marks == numbered:
                return at, marks
            marks += 1
        if at + marks == numbered:
            return at, marks
    return len(log.sent), marks
