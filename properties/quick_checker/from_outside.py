"""What the output of a run must hold, as far as the workload's input and the end of the run alone determine it.

A run that was seen from outside has no witness of what its tasks took, or of what its
snapshots hold.  Its rows can still be compared with the workload if they depend on the
input alone (classes M and S, see `classes`): the end of the job, or the markers of its
commits, say which records the output covers.

The rows of a workload with a query are given with the history (`Computed`): PySpark has
computed them, and they are only compared here.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import msgspec

from ..model.history import AttemptStarted, CommandIssued, CommandReturned, Commit, Computed, History, JobEnded
from ..model.upgrade import Upgrade
from ..model.workload import Row, Topology, Workload, window_of
from ..reconstruct.lineage import INFINITE
from ..semantics.classes import FOLLOWING, class_of
from .expected import Computation, compute


class Cover(msgspec.Struct, frozen=True, kw_only=True):
    """Which records the output of a run covers at its end.

    `epoch` is that of the last records: the number of a commit, or `INFINITE` where all input is covered.
    """

    epoch: int
    drained: bool = False


class OutsideView:
    """The expected rows of a run that was seen from outside."""

    def __init__(self, workload: Workload, topology: Topology, history: History) -> None:
        self.workload = workload
        self._topology = topology
        self._history = history

    @cached_property
    def follows_input(self) -> bool:
        """Whether the input alone determines the rows, whatever order the run took its records in, and whatever job of
        the run took them."""
        return class_of(self.workload, self._topology) not in FOLLOWING and not self._is_upgraded

    @property
    def _is_upgraded(self) -> bool:
        """Whether jobs of the run make other rows of a record than others."""
        issued = (entry.upgrade for entry in self._history.journal if isinstance(entry, CommandIssued))
        upgrades = [one for one in issued if isinstance(one, Upgrade)]
        changed = any(one.retyped or one.removed or one.added for one in upgrades)
        return changed or any(node.later for node in self.workload.nodes)

    @cached_property
    def commits(self) -> tuple[Commit, ...]:
        """The commits in order, each with more records than the one before it."""
        recorded = self._history.commits
        found: list[Commit] = []
        for one in () if isinstance(recorded, msgspec.UnsetType) else sorted(recorded, key=lambda one: one.order):
            if not found or one.positions != found[-1].positions:
                found.append(one)
        return tuple(found)

    @cached_property
    def ended(self) -> JobEnded | None:
        """How the last job ended; None if it is still running, or the journal does not say."""
        marks = [entry for entry in self._history.journal if isinstance(entry, (AttemptStarted, JobEnded))]
        last = marks[-1] if marks else None
        return last if isinstance(last, JobEnded) else None

    @cached_property
    def cover(self) -> Cover | None:
        """What the output covers; None if no witness says it."""
        status = self.ended.status if self.ended is not None else ""
        if status == "finished":
            return None if self._drains_windows else Cover(epoch=INFINITE)
        if status in ("stopped", "drained") and self.cuts:
            return Cover(epoch=len(self.cuts) - 1, drained=status == "drained")
        return None

    @property
    def covers_all(self) -> bool:
        """Whether the output covers all input."""
        return self.cover is not None and self.cover.epoch == INFINITE

    @cached_property
    def everything(self) -> Counter[Row] | None:
        """All rows that the input can yield.

        None if a drain may have emitted windows with a part of their records, or if more records may replace rows and
        the output does not cover all of them.
        """
        if self.cover is not None and self.cover.drained:
            return self.covered
        if self.replaces_rows and not self.covers_all:
            return None
        return None if self._drains_windows else self.rows_until(INFINITE)

    @property
    def _drains_windows(self) -> bool:
        """Whether a drain was requested of a job with windows, and not refused: they may be emitted with a part of
        their records."""
        journal = self._history.journal
        refused = {entry.command for entry in journal if isinstance(entry, CommandReturned) and entry.error}
        drains = any(
            isinstance(entry, CommandIssued) and entry.drain and entry.command not in refused for entry in journal
        )
        return drains and window_of(self.workload) is not None

    @cached_property
    def covered(self) -> Counter[Row]:
        """The rows of the records that the output covers; `cover` must be known."""
        if self.cover is None:
            raise ValueError("no witness says what the output covers")
        return self.rows_until(self.cover.epoch)

    @property
    def due(self) -> Counter[Row]:
        """The rows that the output has to hold in the end; none if no witness says what it covers, and more records
        may replace rows."""
        rows = self.covered if self.cover is not None else self.everything or Counter()
        if self._history.sink != "idempotent":
            return rows
        by_key = self._history.identity == "key" and rows
        return Counter(self.last_rows.values()) if by_key else Counter(set(rows))

    def rows_until(self, epoch: int) -> Counter[Row]:
        """The rows of all records up to an epoch: the place of a commit in `commits`, or `INFINITE`.

        Raises LookupError if the workload has a query and its rows were not given for this epoch.
        """
        if self.workload.query:
            return self._given(self._ends if epoch == INFINITE else dict(self.cuts)[epoch])
        return Counter(row for at, rows in self.rows.items() if at <= epoch for row in rows)

    @property
    def rows(self) -> dict[int, list[Row]]:
        """The rows by epoch; a workload with a query has none."""
        return self._computation.rows

    @property
    def replaces_rows(self) -> bool:
        """Whether a row may change, or go, when more records come: a query says so, operators only add rows."""
        return bool(self.workload.query) and not self._computed.by_record

    @property
    def _computed(self) -> Computed:
        given = self._history.computed
        return Computed() if isinstance(given, msgspec.UnsetType) else given

    def _given(self, positions: dict[int, int]) -> Counter[Row]:
        for one in self._computed.until:
            if {split: one.positions.get(split, 0) for split in positions} == positions:
                return Counter(one.rows)
        raise LookupError(f"the history does not say which rows the query yields below {positions}")

    @cached_property
    def cuts(self) -> tuple[tuple[int, dict[int, int]], ...]:
        """(epoch, the next offset of every split) of each commit, and of what a stopped job had processed."""
        splits = list(self._ends)
        positions = [one.positions for one in self.commits]
        stopped = self.ended.covers if self.ended is not None else None
        if stopped is not None and positions[-1:] != [stopped]:
            positions.append(stopped)
        return tuple((epoch, {split: one.get(split, 0) for split in splits}) for epoch, one in enumerate(positions))

    @cached_property
    def _ends(self) -> dict[int, int]:
        return {split: len(records) for split, _, records in self.workload.splits()}

    @cached_property
    def drained(self) -> frozenset[int]:
        """The epoch at whose end all windows were emitted, if there is one."""
        return frozenset({self.cover.epoch} if self.cover is not None and self.cover.drained else ())

    @cached_property
    def _computation(self) -> Computation:
        return compute(self.workload, self.cuts, rest=not self.drained, drained=self.drained)

    @property
    def last_rows(self) -> dict[int | None, Row]:
        """By key, the last row of what the output covers, in one of the orders that the run may have had."""
        epoch = self.cover.epoch if self.cover is not None else INFINITE
        if self.workload.query:
            return {row[0]: row for row in self.rows_until(epoch)}
        return {row[0]: row for at in sorted(self.rows) if at <= epoch for row in self.rows[at]}
