"""What every kind of feed does: it gives the records in their order, some at a time, and tells how many are there."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ....properties.model.workload import InputRecord
from ..description import LAST_RECORDS, RECORD, Feed
from ..entries import EntryFailed, Problem

AGAIN_S = 0.02
ALL_WITHIN_S = 60.0
"""how long it may take until all records are there, if they have to be there before the pipeline starts"""


class Feeder(ABC):
    """The records of one run.  A record that has been given is there for good."""

    def __init__(self, feed: Feed, records: Sequence[InputRecord]) -> None:
        self._feed = feed
        self._names = {name: feed.columns.get(name, name) for name in RECORD}
        self._records = list(records)
        """with those that come behind the workload's"""
        self._workload = len(records)
        # Twice, each by itself: Spark moves its watermark behind a micro-batch, and a driver that was killed then puts
        # out what the watermark has closed with its next input, and with no other.
        if feed.last_record:
            key, value, tag = (feed.last_record.get(name, 0) for name in RECORD)
            self._records += [(key, value, tag)] * LAST_RECORDS
        self._rows = [self._row(record) for record in self._records]
        self.given = 0
        """how many records are there"""
        self.problem: Problem | None = None
        """why the last ones could not be given; None if they could"""

    @property
    def is_over(self) -> bool:
        return self.given == len(self._rows)

    def give(self) -> None:
        """Give the next records; nothing if all are there.  Those that cannot be given just now are the next again."""
        if not self.is_over:
            whole = self.given < self._workload
            upto = min(self.given + self._feed.records_per_file, self._workload) if whole else self.given + 1
            part = self._rows[self.given : upto]
            self.given += len(part) if self._put(part) else 0

    def give_all(self) -> None:
        """Give all records; raises SubjectFailed if that takes too long."""
        deadline = time.monotonic() + ALL_WITHIN_S
        while not self.is_over:
            before = self.given
            self.give()
            if self.given == before:
                if time.monotonic() > deadline:
                    raise EntryFailed("feed", self.problem or "the records cannot be given")
                time.sleep(AGAIN_S)

    def open(self) -> None:
        """Before any process is started; raises SubjectFailed if the records could never be given."""
        return

    @abstractmethod
    def _put(self, rows: Sequence[dict[str, Any]]) -> bool:
        """Whether these rows are there now.  If not, the same ones are handed in again."""

    def close(self) -> None:
        """Give back what the feed holds."""
        return

    def _row(self, record: InputRecord) -> dict[str, Any]:
        """A record by the names of its columns; one that is named "" is left out."""
        return {self._names[name]: value for name, value in zip(RECORD, record, strict=True) if self._names[name]}
