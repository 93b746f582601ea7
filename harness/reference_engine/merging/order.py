"""The entries of many journals in one order: by stamp, then process, then position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ....reference_impl import observed as o
from ....reference_impl.processes.disk.journal import Entry

Journal = tuple[str, int, Sequence[Entry]]
"""A process, its incarnation, and its entries."""


class Placed(NamedTuple):
    """An event and its place in the order.  No two places are equal, so sorting never compares entries."""

    stamp: int
    source: int
    """the number of the journal"""
    position: float
    event: o.Observed

    def with_event(self, event: o.Observed, shift: float = 0.0) -> Placed:
        """Another event at this place, or just before or behind it (a `shift` between -1 and 1)."""
        return Placed(self.stamp, self.source, self.position + shift, event)


class SinkReadBegan(o.Observed):
    """The beginning of a read of the sink; the merge makes it from the `began` of the read."""


NEWS = (o.TaskFailed, o.RunEnded, o.StatusChanged, o.Died, o.CoordinatorChanged, o.JobEnded)
"""Events that mean nothing once the harness has ended the run."""


class Source(msgspec.Struct, frozen=True):
    process: str
    incarnation: int


def in_order(journals: Sequence[Journal]) -> list[Placed]:
    """Every event at its place, and the beginning of each read of the sink.

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
            stamp, event = entry.stamp, entry.event
            if isinstance(event, o.Died):
                stamp = max(stamp, last.get(Source(event.process, event.incarnation), 0) + 1)
            elif isinstance(event, o.Seen | o.Looked):
                placed.append(Placed(event.began, source, position - 0.5, SinkReadBegan()))
            placed.append(Placed(stamp, source, float(position), event))
    return without_farewells(sorted(placed))


def without_farewells(placed: Iterable[Placed]) -> list[Placed]:
    """The events without those that only show that the harness ended the run."""
    kept: list[Placed] = []
    closing = False
    for one in placed:
        closing = closing or isinstance(one.event, o.Closing)
        if not (closing and isinstance(one.event, NEWS)):
            kept.append(one)
    return kept
