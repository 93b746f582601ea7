"""Whether watermarks advanced as they must: with late data they decide what a window holds.

A source's watermark is the least one of its splits that are not read to their end.  The
reads, and the event times of the records read, determine it.  An operator's watermark is
the least one of its input channels.  The elements sent into the channels, in order, give
a lower and an upper bound for it at each record that the operator took.  An operator
need not wait for an idle channel until the channel's next record.  A split is idle only
after its timeout.  If the history has the times of the reads (in virtual time it does),
a source may not leave out, or report as idle, a split that was read within the timeout.

Each task's own program order has the advances, the network's log the channels' content.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from ...model.history import TaskRun
from ...model.verdict import Violated
from ...model.words import journal_until, plural
from ...model.workload import BEGINNING, END_OF_TIME, Input
from ...quick_checker.case import Case
from ...reconstruct.layouts import splits_of_task
from ...semantics.event_time import Clock
from .idleness import idle_too_soon
from .redistributed import before


def mistimed(case: Case) -> Violated | None:
    """An advance of a watermark on the lineage that contradicts the records read or the watermarks received."""
    if not case.workload.times():
        return None
    timed = {source.name: source for source in case.workload.inputs if source.times}
    for segments in case.lineage.segments.values():
        for segment in segments:
            run = segment.run
            if run.operator in timed:
                source = timed[run.operator]
                found = next(_of_source(case, run, source), None) or next(idle_too_soon(case, run, source), None)
            else:
                found = next(_of_operator(case, run), None)
            if found is not None:
                return found
    return None


def _of_source(case: Case, run: TaskRun, source: Input) -> Iterator[Violated]:
    """The advances of a source that contradict its splits' watermarks after the reads before the advance."""
    clock = Clock(case.workload)
    mine = splits_of_task(case.workload, case.layout_of(run), source.name, run.subtask)
    positions = {split: before(case, run).positions.get(split, 0) for split in mine}
    last = before(case, run).watermark
    advances = list(run.watermarks)
    for count in range(len(run.reads) + 1):
        if count:
            split, offset = run.reads[count - 1]
            positions[split] = offset + 1
        least = clock.watermark(positions, positions) if mine else BEGINNING
        most = max((clock.watermark((split,), positions) for split in mine), default=BEGINNING)
        while advances and advances[0][0] == count:
            _, time = advances.pop(0)
            if time < END_OF_TIME and not (least <= time <= (most if source.idle_after_us else least)):
                yield _belied(case, run, count, "read", time, least, most)
            last = max(last, time)
        if count and last < least and count < len(run.reads) and _is_awake(case, run, source, count):
            yield _belied(case, run, count, "read", last, least, most)


def _is_awake(case: Case, run: TaskRun, source: Input, count: int) -> bool:
    """Whether a split was certainly not idle after `count` reads: the one read last, unless it was read to its end."""
    split, offset = run.reads[count - 1]
    ended = source.bounded and offset + 1 == case.ends[split]
    return not source.idle_after_us or not ended


def _of_operator(case: Case, run: TaskRun) -> Iterator[Violated]:
    """The advances of an operator that contradict the watermarks before each taken record in every channel."""
    inputs = [_ReceivedWatermarks(case, run, index) for index in range(len(run.inputs))]
    if not inputs:
        return
    time = before(case, run).watermark
    advances = list(run.watermarks)
    taken = [0] * len(inputs)
    for count in range(len(run.applies) + 1):
        least = min(one.before(received) for one, received in zip(inputs, taken, strict=True))
        most = _most(inputs, taken)
        while advances and advances[0][0] == count:
            time = max(time, advances.pop(0)[1])
            if time > most:
                yield _belied(case, run, count, "taken", time, least, most)
        if time < least and count < len(run.applies) and not _some_idle(inputs, taken):
            yield _belied(case, run, count, "taken", time, least, most)
        if count < len(run.applies):
            taken[run.applies[count][0]] += 1


def _some_idle(inputs: list[_ReceivedWatermarks], taken: list[int]) -> bool:
    """Whether a channel may be idle, or may have been idle before its last record.

    The operator evaluates an idle channel again only at the channel's next watermark.
    """
    channels = zip(inputs, taken, strict=True)
    return any(one.may_be_idle(received) or one.may_be_idle(received - 1) for one, received in channels)


def _most(inputs: list[_ReceivedWatermarks], taken: list[int]) -> int:
    """The greatest possible watermark: the least one of the channels that are not idle."""
    channels = list(zip(inputs, taken, strict=True))
    times = [one.up_to(received) for one, received in channels]
    awake = [one.up_to(received) for one, received in channels if not one.may_be_idle(received)]
    return min(awake, default=max(times))


class _ReceivedWatermarks:
    """The watermarks of one input channel of a run, by how many of its records were taken."""

    def __init__(self, case: Case, run: TaskRun, index: int) -> None:
        log = case.inbound(run, run.inputs[index])
        restored, marks = before(case, run), log.times if log is not None else []
        times = restored.times
        moments = sorted((place, time) for time, place in marks if time is not None)
        self._places = [place for place, _ in moments]
        start = times[index] if index < len(times) else BEGINNING
        self._greatest = list(accumulate((time for _, time in moments), max, initial=start))
        """the watermark before each of these places, and after the last"""
        self._known = log is not None
        self._idle = {place for time, place in marks if time is None} | ({0} if index in restored.idle else set())

    def before(self, received: int) -> int:
        """The watermark that was received before the last of `received` records."""
        return self._greatest[bisect_left(self._places, received)]

    def may_be_idle(self, received: int) -> bool:
        """Whether the channel became idle after exactly `received` records; the next record ends the idleness."""
        return received in self._idle

    def up_to(self, received: int) -> int:
        """The greatest watermark that may have been received before the next record."""
        if not self._known:
            return END_OF_TIME
        return self._greatest[bisect_right(self._places, received)]


def _belied(case: Case, run: TaskRun, count: int, what: str, time: int, least: int, most: int) -> Violated:
    return Violated(
        difference="watermark differs",
        message=f"{run.task} of attempt {run.attempt} had a watermark of {time} when it had {what}"
        f" {plural(count, 'record')}: "
        f"the watermarks that it had received allow {least}" + (f" to {most}" if most != least else ""),
        tasks=(run.task,),
        events=journal_until(case.history, run.ended),
    )
