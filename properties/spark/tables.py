"""What the oracle is asked, what it answers, and where the two results differ."""

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

    What an attempt sent behind its last snapshot is off the lineage of the run's end.  Yet a
    receiver may have taken it before its own snapshot (without alignment rightly so).  Hence
    the applications are given for several lineages: for each attempt on the run's lineage,
    the one that ends with it.  A row that was in flight at a checkpoint was made by an
    earlier attempt than the one that took it.
    """

    origin: int
    epoch: int
    """the cut (an index) it is the epoch of; on other lineages than the run's it is not looked at"""
    attempt: int = 0
    """which took it"""
    lineage: int = 0
    lane: int = 0
    """of a window, and of what keeps broadcast state: the subtask that took it"""
    watermark: int = 0
    """of a window: that subtask's just before"""
    moment: int | None = None
    """of what goes by processing time: when it was taken, in the place of an event time"""
    made_by: int | None = None
    """the attempt that made the row, where that is not the one which took it: the row lay in flight at a checkpoint,
    or at several"""


class Advance(NamedTuple):
    """A window's subtask (`lane`) came to a watermark, on the lineage that ends with attempt `lineage`."""

    lane: int
    lineage: int
    attempt: int
    place: int
    """how many of the node's applications, all lineages and lanes counted, stand before it in the job"""
    before: int
    """the greatest watermark that it had had"""
    time: int
    epoch: int
    """as of an application"""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A cut through a workload's splits.

    `name` identifies it for the caller: the checkpoint's number, or for the closing
    cut whatever stands for the end of the run.
    """

    name: int
    positions: tuple[int, ...]
    """the next offset to read, by split"""
    drained: bool = False
    """all input had ended there by a user's wish, read or not"""


class OracleJob(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario's question: what should have come out, and what should be held?

    `cuts` are the completed checkpoints on the lineage, then the closing one where
    that is no checkpoint; the epoch of a record is the first whose position lies
    above it.  `applies` is given for nodes, and the sink, whose rows depend on
    the order of merging or on repeats: the applications of each lineage, each key's
    in order.  A node that is not in it takes its rows by epoch, split and offset.
    `tip` is the attempt that the run's lineage ends with.  `advances` go with the
    applications of a window: its rows depend on both.
    """

    id: str
    workload: Workload
    cuts: tuple[Cut, ...]
    applies: dict[str, tuple[Apply, ...]] = {}
    tip: int = 0
    advances: dict[str, tuple[Advance, ...]] = {}


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a node's state, held at the cuts (indices) from `first` up to before `end`."""

    node: str
    entry: StateEntry
    first: int
    end: int


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What is expected of one workload: its rows by epoch, and its state by intervals of cuts."""

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
        """State(cut) of the keyed nodes that hold any."""
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
    """A row, or with `node` a state entry, that the other side has `count` times more often
    than PySpark (below 0: less often), at a cut by its name."""

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
    """of the quick checker's result with `expected`"""


def disagreements(expected: Expected, other: QuickResult) -> tuple[Difference, ...]:
    """Where another's account of a job differs from PySpark's, row by row."""
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
