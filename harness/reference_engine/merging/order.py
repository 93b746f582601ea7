"""Journals of many processes in one order: by stamp, then process, then position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ....reference_impl.processes import entries as e

Journal = tuple[str, int, Sequence[e.Entry]]
"""A process, its incarnation, and what it wrote."""


class Placed(NamedTuple):
    """An entry in its place; no two have the same, so that sorting never compares entries."""

    stamp: int
    source: int
    """the journal, by its number"""
    position: float
    entry: e.Entry

    def with_entry(self, entry: e.Entry, shift: float = 0.0) -> Placed:
        """Another entry here, or (with a shift of less than 1) just before or behind."""
        return Placed(self.stamp, self.source, self.position + shift, entry)


class LookBegan(e.Entry):
    """Where a look at the sink began; made by the merge, of the look's own `began`."""


NEWS = (e.TaskFailed, e.RunEnded, e.Noted, e.Died, e.CoordinatorChanged, e.JobEnded)
"""What is no news any more once the harness has ended the run."""


class Source(msgspec.Struct, frozen=True):
    process: str
    incarnation: int


def in_order(journals: Sequence[Journal]) -> list[Placed]:
    """Every entry in its place, beginnings of looks too.

    A death stands behind everything that the dead process wrote: its stamp is from
    before the kill.
    """
    last = {
        Source(process, incarnation): max((entry.stamp for entry in written), default=0)
        for process, incarnation, written in journals
    }
    placed: list[Placed] = []
    for source, (_, _, written) in enumerate(journals):
        for position, entry in enumerate(written):
            stamp = entry.stamp
            if isinstance(entry, e.Died):
                stamp = max(stamp, last.get(Source(entry.process, entry.incarnation), 0) + 1)
            elif isinstance(entry, e.Seen | e.Looked):
                placed.append(Placed(entry.began, source, position - 0.5, LookBegan(entry.began)))
            placed.append(Placed(stamp, source, float(position), entry))
    return without_farewells(sorted(placed))


def without_farewells(placed: Iterable[Placed]) -> list[Placed]:
    """Without the entries that only show that the harness ended the run."""
    kept: list[Placed] = []
    closing = False
    for one in placed:
        closing = closing or isinstance(one.entry, e.Closing)
        if not (closing and isinstance(one.entry, NEWS)):
            kept.append(one)
    return kept
