"""What the harness records of a run: every entry in one order."""

from __future__ import annotations

import time

from ...properties.model.history import AnyJournalEntry, AttemptStarted, FaultFired, JobEnded, Read
from ...properties.model.workload import Row


class Journal:
    """The journal and the reads of one run."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._order = 0
        self.entries: list[AnyJournalEntry] = []
        self.reads: list[Read] = []

    def next(self) -> int:
        self._order += 1
        return self._order

    def attempt(self, number: int, cause: str) -> AttemptStarted:
        """The process is started; `restores` is set once it is seen that it continued from something of its own."""
        entry = AttemptStarted(order=self.next(), at_us=self._at_us(), attempt=number, job=1, cause=cause)
        self.entries.append(entry)
        return entry

    def fired(self, fault: int, kind: str, phase: str, detail: str, attempt: int) -> None:
        self.entries.append(
            FaultFired(
                order=self.next(),
                at_us=self._at_us(),
                fault=fault,
                kind=kind,
                phase=phase,
                detail=detail,
                attempt=attempt,
            )
        )

    def ended(self, status: str, reason: str = "") -> None:
        self.entries.append(JobEnded(order=self.next(), at_us=self._at_us(), job=1, status=status, reason=reason))

    def read(self, began: int, rows: list[Row]) -> None:
        """A reader has read; `began` is the order at which it began."""
        self.reads.append(Read(began=began, ended=self.next(), rows=len(rows), seen=rows))

    def _at_us(self) -> int:
        return int((time.monotonic() - self._began) * 1e6)
