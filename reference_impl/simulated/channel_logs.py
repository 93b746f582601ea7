"""The log of a persistent channel, as its two ends see it: the channel's own, or that of continuous spilling (UNA-4).

Senders number what they send from 0; receivers, and the logs that they write, behind what they were
`restored` with.
"""

from __future__ import annotations

from ..core.messages import Element
from .logs import LogShelf, Rows


class OwnLog:
    """What enters the channel is durable in it."""

    def __init__(self) -> None:
        self._rows: Rows = {}
        """by the sender's numbers"""
        self._end = 0

    def entered(self, number: int, element: Element) -> None:
        self._rows[number] = element
        self._end = max(self._end, number + 1)

    def end(self, restored: int) -> int:
        """The sender's number behind the last that is durable."""
        return self._end

    def read(self, restored: int) -> Rows:
        """What is durable, by the receiver's numbers."""
        return {restored + number: element for number, element in self._rows.items()}

    def trim(self, before: int, restored: int) -> None:
        """Nothing before this number, as the receiver counts, is needed."""
        for number in [number for number in self._rows if restored + number < before]:
            del self._rows[number]


class SpilledLog:
    """The receiver writes it, flushes it and trims it; `name` is how snapshots refer to it."""

    def __init__(self, shelf: LogShelf, name: str) -> None:
        self._shelf = shelf
        self._name = name

    def entered(self, number: int, element: Element) -> None:
        """It is in the log once the receiver has written it."""

    def end(self, restored: int) -> int:
        return max(0, self._shelf.end(self._name) - restored)

    def read(self, restored: int) -> Rows:
        return self._shelf.durable(self._name)

    def trim(self, before: int, restored: int) -> None:
        """The receiver does."""


AnyLog = OwnLog | SpilledLog
