"""Logs of persistent channels in memory, as a log store or files would hold them.

Durable parts and others are kept apart: elements that were not flushed are lost with their writer.  A deleted log stays
deleted, since a writer that has not noticed it goes on into a file without a name.

The two ends of a channel between tasks with local recovery (UNA-4) see its log as `AnyLog`.  Senders number what they
send from 0.  Receivers, and the logs that they write, count on from the elements with which they were `restored`.
"""

from __future__ import annotations

from ..core.vocabulary.messages import Element
from ..core.vocabulary.state import Ref

Rows = dict[int, Element]


class ShelvedLog:
    """One log: its appended elements, those that are being flushed, and the durable parts, oldest first."""

    def __init__(self) -> None:
        self.open: Rows = {}
        self.flushing: dict[int, Rows] = {}
        self.durable: list[Rows] = []
        self.end = 0
        """one more than the number of the last element that was ever durable"""
        self.torn = 0
        """how many torn parts there are as well: their checksums keep readers from them"""


class LogShelf:
    """All logs; `whole_files`: a part can only be deleted as a whole."""

    def __init__(self, *, whole_files: bool) -> None:
        self.logs: dict[str, ShelvedLog] = {}
        self._whole_files = whole_files
        self._deleted: dict[str, None] = {}
        self._marks = 0

    def append(self, log: str, number: int, element: Element) -> None:
        if log not in self._deleted:
            self.logs.setdefault(log, ShelvedLog()).open[number] = element

    def begin(self, log: str) -> int:
        """Begin to flush all appended elements; returns the mark with which to finish the flush."""
        self._marks += 1
        shelved = self.logs.get(log)
        if shelved is not None:
            shelved.flushing[self._marks], shelved.open = shelved.open, {}
        return self._marks

    def finish(self, log: str, mark: int) -> None:
        """The flush with this mark is durable."""
        shelved = self.logs.get(log)
        rows = shelved.flushing.pop(mark, {}) if shelved is not None else {}
        if shelved is None or not rows:
            return
        shelved.end = max(shelved.end, max(rows) + 1)
        if self._whole_files or not shelved.durable:
            shelved.durable.append(rows)
        else:
            shelved.durable[0].update(rows)

    def tear(self, log: str, mark: int) -> None:
        """Half of the bytes that are being flushed is written."""
        shelved = self.logs.get(log)
        if shelved is not None and shelved.flushing.pop(mark, {}):
            shelved.torn += 1

    def lose(self, log: str) -> None:
        """Its writer has died, and with it what was not flushed."""
        shelved = self.logs.get(log)
        if shelved is None:
            return
        shelved.open, shelved.flushing = {}, {}
        if not shelved.durable and not shelved.torn:
            del self.logs[log]

    def read(self, ref: Ref) -> list[tuple[int, Element]]:
        """The durable elements that a reference names, with their numbers, in order."""
        found = self.durable(ref.log)
        return [(number, found[number]) for number in range(ref.first, ref.end) if number in found]

    def durable(self, log: str) -> Rows:
        """All durable elements of a log."""
        shelved = self.logs.get(log)
        return {
            number: one for rows in (shelved.durable if shelved is not None else ()) for number, one in rows.items()
        }

    def end(self, log: str) -> int:
        """One more than the number of the last durable element; only for a log that is written in the order of its
        numbers."""
        shelved = self.logs.get(log)
        return shelved.end if shelved is not None else 0

    def trim(self, log: str, before: int) -> int:
        """Discard elements below a number, as far as the store can.

        Returns the number below which nothing remains (0: nothing was discarded).
        """
        shelved = self.logs.get(log)
        if shelved is None:
            return 0
        if self._whole_files:
            deleted = [rows for rows in shelved.durable if max(rows) < before]
            shelved.durable = [rows for rows in shelved.durable if max(rows) >= before]
            return 1 + max((max(rows) for rows in deleted), default=-1)
        there = any(number < before for rows in shelved.durable for number in rows)
        kept = [{number: one for number, one in rows.items() if number >= before} for rows in shelved.durable]
        shelved.durable = [rows for rows in kept if rows]
        return before if there else 0

    def delete(self, log: str) -> None:
        self.logs.pop(log, None)
        self._deleted[log] = None

    def names(self) -> list[str]:
        """Every existing log, with durable elements or without."""
        return list(self.logs)


class OwnLog:
    """The channel's own log: an element that enters the channel is durable in it."""

    def __init__(self) -> None:
        self._rows: Rows = {}
        """by the sender's numbers"""
        self._end = 0

    def entered(self, number: int, element: Element) -> None:
        self._rows[number] = element
        self._end = max(self._end, number + 1)

    def end(self, restored: int) -> int:
        """One more than the number of the last durable element, as the receiver counts."""
        return restored + self._end

    def read(self, restored: int) -> Rows:
        """The durable elements, by the receiver's numbers."""
        return {restored + number: element for number, element in self._rows.items()}

    def trim(self, before: int, restored: int) -> None:
        """Elements below this number, as the receiver counts, are not needed any more."""
        for number in [number for number in self._rows if restored + number < before]:
            del self._rows[number]


class SpilledLog:
    """The log that the receiver writes, flushes and trims; snapshots refer to it by `name`."""

    def __init__(self, shelf: LogShelf, name: str) -> None:
        self._shelf = shelf
        self._name = name

    def entered(self, number: int, element: Element) -> None:
        """The element is in the log once the receiver has written it."""

    def end(self, restored: int) -> int:
        return self._shelf.end(self._name)

    def read(self, restored: int) -> Rows:
        return self._shelf.durable(self._name)

    def trim(self, before: int, restored: int) -> None:
        """The receiver trims the log."""


AnyLog = OwnLog | SpilledLog
