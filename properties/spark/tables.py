"""The oracle's questions and answers, and their differences from the quick checker's results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import msgspec

from ..model.workload import Row, Workload

StateEntry = tuple[int, int | None, int | None, int]
"""(side, key, a, b) as in `history.StoredState`."""


class Apply(NamedTuple):
    """One application of a record, on the lineage that ends with attempt `lineage`.

    Rows that an attempt sent after its last snapshot are off the lineage of the run's end.  Yet
    a receiver may have taken them before its own snapshot (without alignment rightly so).  Hence
    the applications are given for several lineages: for each attempt on the run's lineage, the
    lineage that ends with this attempt.  If a row was in flight at a checkpoint, an earlier
    attempt made it than the one that took it.
    """

    origin: int
    epoch: int
    """the index of the epoch's cut; ignored on other lineages than the run's"""
    attempt: int = 0
    """the attempt that took the record"""
    lineage: int = 0
    lane: int = 0
    """for windows, and operators with broadcast state: the subtask that took the record"""
    watermark: int = 0
    """for windows: this subtask's watermark just before the record"""
    moment: int | None = None
    """for operators in processing time: when the record was taken; it replaces the event time"""
    made_by: int | None = None
    """the attempt that made the row, if it is not the one that took it: the row was in flight at a checkpoint"""
    scale: int = 1
    """in how many parts of a whole a sum emits what it makes of the record"""
    period: int = 0
    """of `OracleJob.periods`, in which the record was taken"""


class Advance(NamedTuple):
    """An advance of the watermark of a window's subtask (`lane`), on the lineage that ends with attempt `lineage`."""

    lane: int
    lineage: int
    attempt: int
    place: int
    """how many of the node's applications, of all lineages and lanes, come before the advance in the job"""
    before: int
    """the greatest watermark before the advance"""
    time: int
    epoch: int
    """as in `Apply`"""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A cut through a workload's splits.

    `name` identifies the cut for the caller: the checkpoint's number, or for the closing
    cut a value that stands for the end of the run.
    """

    name: int
    positions: tuple[int, ...]
    """the next offset to read, by split"""
    drained: bool = False
    """whether a user's drain ended all input at this cut"""


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """Epochs, one behind the other, in which the job has the same nodes."""

    first: int
    """the index of the first epoch's cut; the period lasts until the next one begins"""
    absent: tuple[str, ...]
    """the nodes of the workload that the job lacks: their rows go on as they are"""


class OracleJob(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario's question: which rows and which state are expected?

    `cuts` are the completed checkpoints on the lineage, then the closing cut if it is
    no checkpoint; the epoch of a record is the first cut whose position lies above it.
    `applies` has the nodes, and the sink, whose rows depend on the order of merging or
    on repeats: the applications of each lineage, in order for each key.  A node that is
    not in `applies` takes its rows by epoch, split and offset.  `tip` is the attempt
    with which the run's lineage ends.  `advances` belong to the applications of a
    window: its rows depend on both.  A sum with `scales` is in `applies`.
    """

    id: str
    workload: Workload
    cuts: tuple[Cut, ...]
    applies: dict[str, tuple[Apply, ...]] = {}
    tip: int = 0
    advances: dict[str, tuple[Advance, ...]] = {}
    scales: dict[str, tuple[int, ...]] = {}
    """by sum whose state is retyped in a later job: by cut, in how many parts of a whole its state is"""
    periods: tuple[Period, ...] = (Period(first=0, absent=()),)
    """A node that is absent for a period has no state at its cuts, and begins the next period without any."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a node's state; the cuts with indices from `first` to before `end` hold it."""

    node: str
    entry: StateEntry
    first: int
    end: int


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """The expected rows of one workload, by epoch, and its expected state, by intervals of cuts."""

    cuts: tuple[int, ...]
    """the names of the cuts"""
    rows: tuple[tuple[int, Row], ...]
    """(index of the epoch's cut, row), in no order"""
    held: tuple[Held, ...]
    """in no order"""

    def rows_of(self, cut: int) -> Counter[Row]:
        """The rows of one epoch, by the name of its cut."""
        index = self.cuts.index(cut)
        return Counter(row for epoch, row in self.rows if epoch == index)

    def rows_up_to(self, cut: int) -> Counter[Row]:
        """Out(cut)."""
        index = self.cuts.index(cut)
        return Counter(row for epoch, row in self.rows if epoch <= index)

    def state(self, cut: int) -> dict[str, Counter[StateEntry]]:
        """State(cut) of the keyed nodes that hold any state."""
        index = self.cuts.index(cut)
        found: dict[str, Counter[StateEntry]] = {}
        for held in self.held:
            if held.first <= index < held.end:
                found.setdefault(held.node, Counter())[held.entry] += 1
        return found


class QuickResult(msgspec.Struct, frozen=True, kw_only=True):
    """The quick checker's result on a job, to be compared with PySpark's.

    Rows by the cut of their epoch, and state entries by cut and node; only the
    cuts that are named are compared.
    """

    rows: dict[int, list[Row]] = {}
    states: dict[int, dict[str, list[StateEntry]]] = {}


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A row, or with `node` a state entry, that the quick checker has `count` times more often than PySpark.

    Below 0 it has the row less often.  `cut` is the name of a cut.
    """

    cut: int
    row: Row | StateEntry
    count: int
    node: str = ""


class OracleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """PySpark's answer on one job; `problem` says why there is none."""

    id: str
    expected: Expected | None = None
    problem: str = ""
    disagreements: tuple[Difference, ...] = ()
    """the differences of the quick checker's result from `expected`"""


def disagreements(expected: Expected, other: QuickResult) -> tuple[Difference, ...]:
    """The differences of another result on a job from PySpark's, row by row."""
    found: list[Difference] = []
    names = expected.cuts
    rows: dict[int, Counter[Row]] = {index: Counter() for index in range(len(names))}
    for epoch, row in expected.rows:
        rows[epoch][row] += 1
    for index, name in enumerate(names):
        if name in other.rows:
            found.extend(_differing(rows[index], Counter(other.rows[name]), name))
        if name in other.states:
            held = expected.state(name)
            for node, entries in other.states[name].items():
                found.extend(_differing(held.get(node, Counter()), Counter(entries), name, node))
    return tuple(found)


_Kept = TypeVar("_Kept", Row, StateEntry)


def _differing(own: Counter[_Kept], other: Counter[_Kept], cut: int, node: str = "") -> Iterator[Difference]:
    if own == other:
        return
    for row in own | other:
        if own[row] != other[row]:
            yield Difference(cut=cut, row=row, count=other[row] - own[row], node=node)
