"""What a reader of the pipeline's output sees while a run goes on, beside the rows that are expected in the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ....properties.model.history import Commit, Computed, History
from ....properties.model.workload import Row, window_of
from ....properties.quick_checker.from_outside import OutsideView
from ....properties.reconstruct.lineage import INFINITE
from ...scenario.model import Scenario
from ..description import LAST_RECORDS, PipelineFile
from ..entries import EntryFailed, Problem
from ..journal import Journal
from .formats import NotReadable, Output

READABLE_WITHIN_S = 30.0
"""how long the output may be out of reach in the end"""
WHOLE_WITHIN_S = 3.0
"""how long a role may take in the end to make whole what is no row"""


class Reader:
    """Reads the committed output again and again, and records each read."""

    def __init__(
        self,
        file: PipelineFile,
        places: Mapping[str, str],
        printed_by: Callable[[], str],
        journal: Journal,
        *,
        records: int,
        expected: Counter[Row],
        by_record: Sequence[Counter[Row]] | None = None,
    ) -> None:
        """`printed_by` runs the command that prints the rows; `records` is how many the workload has.

        `expected` are the rows of a run without faults, `by_record` those of each record (`rows_by_record`).
        """
        self._output = Output(file.read, places, printed_by, file.commits.query)
        self._journal = journal
        self._records = records
        self._given = records + (LAST_RECORDS if file.feed.last_record else 0)
        self._every_s = file.read.every_ms / 1e3
        self._read_at = 0.0
        self.expected = expected
        self._by_record = by_record
        self.rows: list[Row] = []
        """those that the last read has seen"""
        self.broken: list[str] = []
        """what was no row in the end, each in one line"""
        self._has_seen_rows = False
        self.changed_at = time.monotonic()
        """when a read has seen other rows than the one before it"""

    @property
    def absent(self) -> Problem | None:
        """Why the last read found nothing to read; None if it found something."""
        return self._output.absent

    @property
    def misses_rows(self) -> bool:
        """Whether rows are expected that the last read has not seen."""
        return bool(self.expected - Counter(self.rows))

    def misses_rows_of(self, given: int) -> bool:
        """Whether rows of the first `given` records are expected that the last read has not seen; of all records where
        nobody knows which record a row comes from."""
        if self._by_record is None or given >= self._records:
            return self.misses_rows
        return bool(sum(self._by_record[:given], Counter[Row]()) - Counter(self.rows))

    def close(self) -> None:
        self._output.close()

    def is_due(self, now: float) -> bool:
        return now - self._read_at >= self._every_s

    def read(self) -> None:
        """Read what is visible.  A reader that comes while a file is replaced, or a table is locked, reads again."""
        began = self._journal.next()
        self._read_at = time.monotonic()
        broken: list[Problem] = []
        try:
            rows = self._rows(broken)
        except NotReadable:
            return
        self._demand_rows(broken)
        marker = self._output.marker
        if marker > self._given and not self._journal.disturbed:  # else it counts what was processed twice
            raise EntryFailed("commits.query", f"it says {marker}, and there are {self._given} records")
        self._journal.read(began, rows, min(marker, self._records))
        if rows != self.rows:
            self.rows, self.changed_at = rows, self._read_at

    def final_rows(self, wait: Callable[[], None]) -> list[Row]:
        """The committed rows in the end; an output that cannot be read just now is read again for a while.

        `wait` lets time pass until it is tried again.
        """
        began = time.monotonic()
        while True:
            broken: list[Problem] = []
            try:
                rows = self._rows(broken, at_rest=True)
            except NotReadable:
                if time.monotonic() > began + READABLE_WITHIN_S:
                    raise
            else:
                if not broken or time.monotonic() > began + WHOLE_WITHIN_S:
                    self._demand_rows(broken)
                    self.broken = [str(one) for one in broken]
                    self._journal.note("output-read", "reader", "in the end", amount=len(rows))
                    return rows
            wait()

    def _rows(self, broken: list[Problem], *, at_rest: bool = False) -> list[Row]:
        """The committed rows; what is no row is added to `broken`."""
        rows = self._output.rows(at_rest=at_rest, broken=broken)
        self._has_seen_rows = self._has_seen_rows or bool(rows)
        return rows

    def _demand_rows(self, broken: list[Problem]) -> None:
        """Raise SubjectFailed for what is no row, unless a fault may have broken it: then it is judged.

        If no row was ever read, or nothing was disturbed, the file says wrongly what is read.
        """
        if broken and not (self._journal.disturbed and self._has_seen_rows):
            raise EntryFailed(broken[0].entry, broken[0].words)

    def halfway(self) -> Callable[[], bool]:
        """Whether rows are visible that were not when it was asked last."""
        before: list[Row] = []

        def is_met() -> bool:
            nonlocal before
            new = self.rows is not before and bool(Counter(self.rows) - Counter(before))
            before = self.rows
            return new

        return is_met


def expected_rows(file: PipelineFile, scenario: Scenario, computed: Computed | msgspec.UnsetType) -> Counter[Row]:
    """The rows that the output has to hold in the end: what a run without any fault would leave.

    `computed` has the rows of a pipeline whose file has an SQL text.
    """
    promises = file.promises
    stub = History(
        subject="", guarantee=promises.guarantee, sink=promises.sink, identity=promises.identity, computed=computed
    )
    view = OutsideView(scenario.workload, scenario.topology, stub)
    if promises.sink == "idempotent":
        rows = view.last_rows.values() if promises.identity == "key" else view.rows_until(INFINITE)
        return Counter(set(rows))
    return view.rows_until(INFINITE)


def rows_by_record(file: PipelineFile, scenario: Scenario) -> list[Counter[Row]] | None:
    """The rows of each record, in the order in which the records are given.

    None if a row depends on more than the records before it, or replaces another one: a query's rows come from PySpark,
    those of windows wait for later records, and those of an idempotent sink by key follow each other.
    """
    workload, promises = scenario.workload, file.promises
    if workload.query or window_of(workload) is not None or promises.sink == "idempotent":
        return None
    (records,) = workload.inputs[0].splits
    cuts = [Commit(commit=end, order=end, positions={0: end}) for end in range(1, len(records) + 1)]
    stub = History(
        subject="", guarantee=promises.guarantee, sink=promises.sink, identity=promises.identity, commits=cuts
    )
    rows = OutsideView(workload, scenario.topology, stub).rows
    return [Counter(rows.get(record, ())) for record in range(len(records))]
