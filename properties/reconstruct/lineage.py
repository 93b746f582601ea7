"""A lineage: the events that led to a snapshot or to a run's end, and the epoch of each.

When an attempt restores a checkpoint, what the failed attempt did after that checkpoint
is undone.  So the judges do not look at all events of an exactly-once engine, but at one
*lineage*: for each task, the events of the attempts that led to the end.  Each attempt
is cut at the mark of the snapshot that the next attempt restored, also where the next
attempt belongs to a resumed job.  Attempts from which no later one restored are off the
lineage.  `lineages` draws them from a history.

The *epoch* of an event on a lineage is the first completed checkpoint on the lineage
whose mark its task set after the event; `INFINITE` when there is none.  A checkpoint
that was aborted bounds no epoch: its events belong to the epoch of the next completed
checkpoint.  A task that had finished took no part in a checkpoint: all its events are on
the lineage, and its last snapshot counts for the checkpoint.

The theory is Chandy and Lamport, "Distributed Snapshots" (1985): a cut is consistent
when no event in it depends on one outside.  The part of one attempt of a task that lies
on a lineage is a `Segment`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from ..model.history import Mark, TaskRun

INFINITE = 1 << 62
"""The epoch of an event that no completed checkpoint of its lineage covers."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one attempt of a task that lies on a lineage.

    `reads`, `applies` and `sent` (by output channel) say how many of the run's
    events are in the segment.  `cut` is the checkpoint whose mark ends the segment
    (None: all of the run is on the lineage).  `marks` are the run's marks of the
    lineage's completed checkpoints, in program order.
    """

    run: TaskRun
    reads: int
    applies: int
    sent: tuple[int, ...]
    cut: int | None
    marks: tuple[Mark, ...]

    def read_epochs(self) -> list[int]:
        """The epoch of each read of the segment, in program order."""
        return _epochs(((mark.checkpoint, mark.reads) for mark in self.marks), self.reads)

    def apply_epochs(self) -> list[int]:
        """The epoch of each applied record of the segment, in program order."""
        return _epochs(((mark.checkpoint, mark.applies) for mark in self.marks), self.applies)

    def mark_at(self, epoch: int) -> Mark | None:
        """The last mark of a checkpoint up to an epoch: the events of later epochs begin at this mark."""
        found = None
        for mark in self.marks:
            if mark.checkpoint <= epoch:
                found = mark
        return found

    def reads_up_to(self, epoch: int) -> int:
        """How many of its reads have at most this epoch."""
        mark = self.mark_at(epoch)
        return self.reads if epoch >= INFINITE else mark.reads if mark else 0

    def advances_up_to(self, epoch: int, clocked: bool) -> int:
        """How many advances of its watermark, or of its clock, have at most this epoch."""
        mark, run = self.mark_at(epoch), self.run
        if epoch >= INFINITE and self.cut is None:
            return len(run.ticks if clocked else run.watermarks)
        return (mark.ticks if clocked else mark.watermarks) if mark else 0

    def applies_up_to(self, epoch: int) -> int:
        """How many of its applies have at most this epoch."""
        mark = self.mark_at(epoch)
        return self.applies if epoch >= INFINITE else mark.applies if mark else 0


def _epochs(bounds: Iterator[tuple[int, int]], total: int) -> list[int]:
    epochs: list[int] = []
    for checkpoint, before in bounds:
        epochs.extend([checkpoint] * (min(before, total) - len(epochs)))
    epochs.extend([INFINITE] * (total - len(epochs)))
    return epochs


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """One record taken by an operator on a lineage.

    `segment` is the attempt, `sequence` the record's number (from 0) among those
    that this attempt of the subtask took.
    """

    operator: str
    subtask: int
    segment: int
    sequence: int
    origin: int
    epoch: int


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """A lineage that ends with attempt `tip`.

    `attempts` and `checkpoints` are ordered oldest first, `segments` by task and oldest first.
    """

    tip: int
    attempts: tuple[int, ...]
    checkpoints: tuple[int, ...]
    segments: dict[str, tuple[Segment, ...]]
    by_operator: dict[str, list[Segment]]
    """the same segments"""

    def of_operator(self, operator: str) -> Sequence[Segment]:
        """The segments of all subtasks of an input, node or sink."""
        return self.by_operator.get(operator, ())

    def applied(self, operator: str) -> Iterator[Applied]:
        """The records that the operator took on the lineage, by subtask and in program order."""
        for segment in self.of_operator(operator):
            run = segment.run
            for sequence, epoch in enumerate(segment.apply_epochs()):
                yield Applied(
                    operator=operator,
                    subtask=run.subtask,
                    segment=run.attempt,
                    sequence=sequence,
                    origin=run.applies[sequence][1],
                    epoch=epoch,
                )

    def segment(self, task: str, attempt: int) -> Segment | None:
        """The segment of a task's attempt; None when the attempt is off the lineage."""
        for segment in self.segments.get(task, ()):
            if segment.run.attempt == attempt:
                return segment
        return None

    def epochs_of(self, task: str, attempt: int, taken: Sequence[int]) -> list[int | None]:
        """The epoch of the n-th record (from 1) of a task's attempt, for each n of `taken`; None when the record is off
        the lineage."""
        segment = self.segment(task, attempt)
        if segment is None:
            return [None] * len(taken)
        ends = list(accumulate((mark.applies for mark in segment.marks), max))
        epochs = [*(mark.checkpoint for mark in segment.marks), INFINITE]
        return [epochs[bisect_left(ends, one)] if one <= segment.applies else None for one in taken]


def by_channel(run: TaskRun, applies: int) -> list[list[int]]:
    """By input channel, the origins of the first records that a run took, in order."""
    taken: list[list[int]] = [[] for _ in run.inputs]
    for channel, origin in run.applies[:applies]:
        taken[channel].append(origin)
    return taken


def mark_of(run: TaskRun, checkpoint: int) -> Mark | None:
    """The mark of a run's snapshot of a checkpoint; None when the run took none."""
    for mark in run.marks:
        if mark.checkpoint == checkpoint:
            return mark
    return None
