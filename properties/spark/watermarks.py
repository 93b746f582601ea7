"""The watermarks that a window received on a lineage, from its subtasks' program order: for `questions`.

For an operator in processing time, a received time counts as a watermark of that time
minus 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model.history import Mark
from ..model.workload import BEGINNING, is_clocked
from ..quick_checker.case import Case
from ..reconstruct.lineage import INFINITE, Lineage, Segment, mark_of
from .tables import Advance


def by_attempt(lineage: Lineage, node: str) -> list[Segment]:
    """The segments of a node's subtasks on a lineage, by attempt: in earlier attempts another subtask may have owned
    a key."""
    return sorted(lineage.of_operator(node), key=lambda one: one.run.attempt)


def watermarks(case: Case, lineage: Lineage, window: str) -> dict[tuple[str, int], list[int]]:
    """By task and attempt, the watermark just before each record that a window took."""
    found: dict[tuple[str, int], list[int]] = {}
    time: dict[str, int] = {}
    for segment in lineage.of_operator(window):
        run = segment.run
        now = time.get(run.task, BEGINNING)
        advances = _advances(case, segment)
        before = found[run.task, run.attempt] = []
        received = 0
        for taken in range(segment.applies):
            while received < len(advances) and advances[received][0] <= taken:
                now = max(now, advances[received][1])
                received += 1
            before.append(now)
        time[run.task] = max([now, *(moment for _, moment in advances[received:])])
    return found


def advances_of(case: Case, window: str, numbers: dict[int, int]) -> Iterator[Advance]:
    """The advances of a window's watermark, on the lineages of all attempts through which the run's lineage goes.

    `numbers` has the index of the cut of each epoch.
    """
    place = 0
    for attempt in case.lineage.attempts:
        lineage = case.lineages.of_attempt(attempt)
        time: dict[str, int] = {}
        for segment in by_attempt(lineage, window):
            run = segment.run
            for number, (taken, moment) in enumerate(_advances(case, segment)):
                before = time.get(run.task, BEGINNING)
                if moment > before:
                    time[run.task] = moment
                    yield Advance(
                        lane=run.subtask,
                        lineage=attempt,
                        attempt=run.attempt,
                        place=place + min(taken, segment.applies),
                        before=before,
                        time=moment,
                        epoch=numbers[_epoch(case, segment, number)] if lineage.tip == case.lineage.tip else 0,
                    )
            place += segment.applies


def _advances(case: Case, segment: Segment) -> list[tuple[int, int]]:
    """(records taken before it, watermark) of each advance in a segment."""
    run = segment.run
    clocked = is_clocked(case.workload.node(run.operator).operator)
    advances = [(taken, time - 1) for taken, time in run.ticks] if clocked else run.watermarks
    if segment.cut is None or case.lineages.snapshots.finished(run.task, segment.cut):
        return advances
    mark = mark_of(run, segment.cut)
    return advances[: _received(mark, clocked)] if mark is not None else []


def _epoch(case: Case, segment: Segment, number: int) -> int:
    """The epoch of an advance: the first completed checkpoint whose mark counts it."""
    clocked = is_clocked(case.workload.node(segment.run.operator).operator)
    return next((mark.checkpoint for mark in segment.marks if _received(mark, clocked) > number), INFINITE)


def _received(mark: Mark, clocked: bool) -> int:
    return mark.ticks if clocked else mark.watermarks
