"""A part of a line: what one attempt of a task did of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..model.history import Mark, TaskRun

INFINITE = 1 << 62
"""The epoch of an event that no completed checkpoint of its line covers."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one attempt of a task that lies on a line.

    `reads`, `applies` and `sent` (by output channel) say how many of the run's
    events are on it; `cut` is the checkpoint whose mark ends it (None: all of
    the run is on the line); `marks` are those of the line's completed
    checkpoints, in program order.
    """

    run: TaskRun
    reads: int
    applies: int
    sent: tuple[int, ...]
    cut: int | None
    marks: tuple[Mark, ...]

    def read_epochs(self) -> list[int]:
        """The epoch of each read on the line, in program order."""
        return _epochs(((mark.checkpoint, mark.reads) for mark in self.marks), self.reads)

    def apply_epochs(self) -> list[int]:
        """The epoch of each applied record on the line, in program order."""
        return _epochs(((mark.checkpoint, mark.applies) for mark in self.marks), self.applies)

    def mark_at(self, epoch: int) -> Mark | None:
        """The last mark of a checkpoint up to an epoch: where the events of later epochs begin."""
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
