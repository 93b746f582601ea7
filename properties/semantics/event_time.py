"""Watermarks as a function of positions: they are one wherever no split can become idle.

A split's watermark is the greatest event time below its position, minus the delay, minus
1.  A split of a bounded input that is read to its end no longer holds the watermark
back.  At an aligned cut an operator's watermark is the least watermark of all splits
that feed the operator, if every input reaches all of its subtasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate

from ..model.workload import BEGINNING, END_OF_TIME, Input, Workload, inputs_of


def is_late_free(workload: Workload, node: str) -> bool:
    """Whether no record can come late to a node, however its inputs are merged.

    It holds if no record's event time lies behind the greatest one before it in its split by more than the delay, and
    no split can become idle.
    """
    return all(source.idle_after_us == 0 and _in_bounds(source) for source in inputs_of(workload, node))


def _in_bounds(source: Input) -> bool:
    return all(
        greatest - time <= source.delay
        for times in source.times
        for time, greatest in zip(times, accumulate(times, max), strict=True)
    )


class Clock:
    """The watermarks of a workload's splits at any positions."""

    def __init__(self, workload: Workload) -> None:
        times = workload.times()
        self._splits = {
            split: (source, len(records), list(accumulate(times.get(split, ()), max)))
            for split, source, records in workload.splits()
        }

    def greatest(self, split: int, position: int) -> int | None:
        """The greatest event time below a position; None when no record with a time lies below it."""
        greatest = self._splits[split][2]
        return greatest[min(position, len(greatest)) - 1] if position and greatest else None

    def watermark(self, splits: Iterable[int], positions: Mapping[int, int]) -> int:
        """The watermark at positions: the least one of the splits that are not read to their end."""
        times = [END_OF_TIME]
        for split in splits:
            source, length, _ = self._splits[split]
            position = positions.get(split, 0)
            if not source.bounded or position < length:
                greatest = self.greatest(split, position)
                times.append(BEGINNING if greatest is None else greatest - source.delay - 1)
        return min(times)


def splits_before(workload: Workload, node: str) -> tuple[int, ...]:
    """The splits of all inputs that feed a node."""
    return tuple(split for source in inputs_of(workload, node) for split in workload.splits_of(source.name))
