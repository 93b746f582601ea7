"""The entries of many journals in one order: by stamp, then process, then position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ....reference_impl.processes import entries as e

Journal = tuple[str, int, Sequence[e.Entry]]
"""A process, its incarnation, and its entries."""


class Placed(NamedTuple):
    """An entry and its place in the order.  No two places are equal, so sorting never compares entries."""

    stamp: int
    source: int
    """the number of the journal"""
    position: float
    entry: e.Entry

    def with_entry(self, entry: e.Entry, shift: float = 0.0) -> Placed:
        """Another entry at this place, or just before or behind it (a `shift` between -1 and 1)."""
        return Placed(self.stamp, self.source, self.position + shift, entry)


class SinkReadBegan(e.Entry):
    """The beginning of a read of the sink; the merge makes it from the `began` of the read."""


NEWS = (e.TaskFailed, e.RunEnded, e.Noted, e.Died, e.CoordinatorChanged, e.JobEnded)
"""Entries that mean nothing once the harness has ended the run."""


class Source(msgspec.Struct, frozen=True):
    process: str
    incarnation: int


def in_order(journals: Sequence[Journal]) -> list[Placed]:
    """Every entry at its place, and the beginning of each read of the sink.

    A death is placed behind all entries of the dead process, because the stamp of the death
    was taken before the kill.
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
                placed.append(Placed(entry.began, source, position - 0.5, SinkReadBegan(entry.began)))
            placed.append(Placed(stamp, source, float(position), entry))
    return without_farewells(sorted(placed))


def without_farewells(placed: Iterable[Placed]) -> list[Placed]:
    """The entries without those that only show that the harness ended the run."""
    kept: list[Placed] = []
    closing = False
    for one in placed:
        closing = closing or isinstance(one.entry, e.Closing)
        if not (closing and isinstance(one.entry, NEWS)):
            kept.append(one)
    return kept
