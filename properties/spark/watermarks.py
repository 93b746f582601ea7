"""What a window heard of event time on a line, from its subtasks' program order: for `questions`.

To what goes by processing time, being told a time is as hearing that all
before it has come: a watermark of that less 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model.history import Mark
from ..model.workload import BEGINNING, is_clocked
from ..quick_checker.case import Case
from ..reconstruct.lineage import INFINITE, Line, Segment, mark_of
from .tables import Advance


def in_turn(line: Line, node: str) -> list[Segment]:
    """What a node's subtasks did on a line, attempt by attempt: a key may have had another subtask before."""
    return sorted(line.of_operator(node), key=lambda one: one.run.attempt)


def watermarks(case: Case, line: Line, window: str) -> dict[tuple[str, int], list[int]]:
    """By task and attempt, the watermark just before each record that a window took."""
    found: dict[tuple[str, int], list[int]] = {}
    time: dict[str, int] = {}
    for segment in line.of_operator(window):
        run = segment.run
        now = time.get(run.task, BEGINNING)
        advances = _advances(case, segment)
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
        for segment in in_turn(line, window):
            run = segment.run
            for number, (taken, moment) in enumerate(_advances(case, segment)):
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
                        epoch=numbers[_epoch(case, segment, number)] if line.tip == case.line.tip else 0,
                    )
            place += segment.applies


def _advances(case: Case, segment: Segment) -> list[tuple[int, int]]:
    """(records taken before it, watermark) of each advance of a segment's attempt that is on its line."""
    run = segment.run
    clocked = is_clocked(case.workload.node(run.operator).operator)
    advances = [(taken, told - 1) for taken, told in run.ticks] if clocked else run.watermarks
    if segment.cut is None or case.lines.finished(run.task, segment.cut):
        return advances
    mark = mark_of(run, segment.cut)
    return advances[: _heard(mark, clocked)] if mark is not None else []


def _epoch(case: Case, segment: Segment, number: int) -> int:
    """That of an advance: the first completed checkpoint whose mark counts it."""
    clocked = is_clocked(case.workload.node(segment.run.operator).operator)
    return next((mark.checkpoint for mark in segment.marks if _heard(mark, clocked) > number), INFINITE)


def _heard(mark: Mark, clocked: bool) -> int:
    return mark.ticks if clocked else mark.watermarks
