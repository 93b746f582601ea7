"""What a window heard of event time on a line, from its subtasks' program order: for `questions`."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..line import INFINITE, Line, Segment, mark_of
from ..workload import BEGINNING
from .tables import Advance


def watermarks(case: Case, line: Line, window: str) -> dict[tuple[str, int], list[int]]:
    """By task and attempt, the watermark just before each record that a window took."""
    found: dict[tuple[str, int], list[int]] = {}
    time: dict[str, int] = {}
    for segment in line.of_operator(window):
        run = segment.run
        now = time.get(run.task, BEGINNING)
        advances = run.watermarks[: _on_line(case, segment)]
        before = found[run.task, run.attempt] = []
        heard = 0
        for taken in range(segment.applies):
            while heard < len(advances) and advances[heard][0] <= taken:
                now = max(now, advances[heard][1])
                heard += 1
            before.append(now)
        time[run.task] = max([now, *(moment for _, moment in advances[heard:])])
    return found


def advances_of(case: Case, window: str, numbers: dict[int, int]) -> Iterator[Advance]:
    """The advances of a window's watermark on the line of each attempt that the run's line goes through.

    `numbers` says which cut an epoch is that of.
    """
    place = 0
    for attempt in case.line.attempts:
        line = case.lines.of_attempt(attempt)
        time: dict[str, int] = {}
        for segment in line.of_operator(window):
            run = segment.run
            for number, (taken, moment) in enumerate(run.watermarks[: _on_line(case, segment)]):
                before = time.get(run.task, BEGINNING)
                if moment > before:
                    time[run.task] = moment
                    yield Advance(
                        lane=run.subtask,
                        line=attempt,
                        attempt=run.attempt,
                        place=place + min(taken, segment.applies),
                        before=before,
                        time=moment,
                        epoch=numbers[_epoch(segment, number)] if line.tip == case.line.tip else 0,
                    )
            place += segment.applies


def _on_line(case: Case, segment: Segment) -> int:
    """How many advances of a segment's attempt are on its line."""
    if segment.cut is None or case.lines.finished(segment.run.task, segment.cut):
        return len(segment.run.watermarks)
    mark = mark_of(segment.run, segment.cut)
    return mark.watermarks if mark is not None else 0


def _epoch(segment: Segment, number: int) -> int:
    """That of an advance: the first completed checkpoint whose mark counts it."""
    return next((mark.checkpoint for mark in segment.marks if mark.watermarks > number), INFINITE)
