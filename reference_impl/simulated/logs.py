"""Logs of persistent channels in memory, as a log store or as files would hold them.

What is durable and what is not are apart: what its writer had not flushed is gone
with it.  A log that was deleted stays so, for a writer that does not know it yet goes
on into a file without a name.

The two ends of a channel between tasks that recover alone (UNA-4) see its log as `AnyLog`:
senders number what they send from 0; receivers, and the logs that they write, behind what
they were `restored` with.
"""

from __future__ import annotations

from ..core.messages import Element
from ..core.state import Ref

Rows = dict[int, Element]


class ShelvedLog:
    """One log: what is open yet, what is being flushed, and the durable parts, oldest first."""

    def __init__(self) -> None:
        self.open: Rows = {}
        self.flushing: dict[int, Rows] = {}
        self.durable: list[Rows] = []
        self.end = 0
        """the number behind the last that was ever durable"""
        self.torn = 0
        """how many halves of parts there are besides: by their checksums nobody reads them"""


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
        """Begin to flush all that was appended; the mark to finish it with."""
        self._marks += 1
        shelved = self.logs.get(log)
        if shelved is not None:
            shelved.flushing[self._marks], shelved.open = shelved.open, {}
        return self._marks

    def finish(self, log: str, mark: int) -> None:
        """It is durable."""
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
        """Half of what is flushed is written."""
        shelved = self.logs.get(log)
        if shelved is not None and shelved.flushing.pop(mark, {}):
            shelved.torn += 1

    def lose(self, log: str) -> None:
        """Its writer is gone, and with it what was not flushed."""
        shelved = self.logs.get(log)
        if shelved is None:
            return
        shelved.open, shelved.flushing = {}, {}
        if not shelved.durable and not shelved.torn:
            del self.logs[log]

    def read(self, ref: Ref) -> list[tuple[int, Element]]:
        """What is durable of the elements that a reference names, with their numbers, in order."""
        found = self.durable(ref.log)
        return [(number, found[number]) for number in range(ref.first, ref.end) if number in found]

    def durable(self, log: str) -> Rows:
        """All that is durable of a log."""
        shelved = self.logs.get(log)
        return {
            number: one for rows in (shelved.durable if shelved is not None else ()) for number, one in rows.items()
        }

    def end(self, log: str) -> int:
        """The number behind the last that was durable; of a log that is written in the order of its numbers."""
        shelved = self.logs.get(log)
        return shelved.end if shelved is not None else 0

    def trim(self, log: str, before: int) -> int:
        """Discard what lies before a number, as far as the store can; below which number nothing is left (0: all is
        as it was)."""
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
        """Every log that is there, whether something of it is durable or not."""
        return list(self.logs)


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
        """The number behind the last that is durable, as the receiver counts."""
        return restored + self._end

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
        return self._shelf.end(self._name)

    def read(self, restored: int) -> Rows:
        return self._shelf.durable(self._name)

    def trim(self, before: int, restored: int) -> None:
        """The receiver does."""


AnyLog = OwnLog | SpilledLog
