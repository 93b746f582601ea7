"""Whether a source's splits became idle only after their timeout.

The times of the reads decide.  A split may be idle only when the timeout has passed
since its last record was read.  Until then the source's watermark may not leave the
split out, and the source may not report itself idle downstream.  For a split that this
attempt has not read yet this is unknown: the split may have been idle before.

The world that drove the engine records the times of the reads, the network's log the
idle marks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from ...model.history import TaskRun
from ...model.verdict import Violated
from ...model.words import journal_until
from ...model.workload import END_OF_TIME, Input
from ...quick_checker.case import Case
from ...semantics.event_time import Clock


def idle_too_soon(case: Case, run: TaskRun, source: Input) -> Iterator[Violated]:
    """Each split for which a source did not wait although it had read the split within the timeout."""
    if not source.idle_after_us or len(run.read_at) != len(run.reads):
        return
    reads = _Reads(case, run, source)
    for (count, time), at in zip(run.watermarks, run.advanced_at, strict=False):
        for split, own in reads.awake(at, count):
            if own < time < END_OF_TIME:
                yield _too_soon(case, run, split, at, f"advanced its watermark to {time} without it")
    for name in run.outputs:
        log = case.channels.get((name, run.attempt))
        reads = _Reads(case, run, source)
        for at in log.idle_at if log is not None else ():
            for split, _ in reads.awake(at, bisect_left(run.read_at, at)):
                yield _too_soon(case, run, split, at, f"reported to {name.partition('>')[2]} that it was idle")


class _Reads:
    """What one run of a source had read of its splits, and when; the questions must come in the order of the reads."""

    def __init__(self, case: Case, run: TaskRun, source: Input) -> None:
        self._run = run
        self._source = source
        self._clock = Clock(case.workload)
        self._lengths = {split: len(records) for split, _, records in case.workload.splits()}
        self._count = 0
        self._last: dict[int, tuple[int, int]] = {}
        """by split: the next offset, and the time of the last read"""

    def awake(self, at: int, count: int) -> Iterator[tuple[int, int]]:
        """(split, watermark) of the splits that were not idle at the time `at`, after `count` reads."""
        for number in range(self._count, count):
            split, offset = self._run.reads[number]
            self._last[split] = (offset + 1, self._run.read_at[number])
        self._count = max(self._count, count)
        for split, (position, moment) in self._last.items():
            ended = self._source.bounded and position == self._lengths[split]
            if not ended and at - moment < self._source.idle_after_us:
                yield split, self._clock.watermark((split,), {split: position})


def _too_soon(case: Case, run: TaskRun, split: int, at: int, clause: str) -> Violated:
    return Violated(
        difference="idle too soon",
        message=f"{run.task} of attempt {run.attempt} had read split {split} within its idle timeout, "
        f"and {clause} at {at} µs",
        tasks=(run.task,),
        events=journal_until(case.history, run.ended),
    )
