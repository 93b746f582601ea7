"""Event times of records, and windows over them.

Mostly there is one right answer (the judge's class M).  In each split the event time of a
record is behind the greatest earlier one by at most the watermark's delay, and no split is
idle, so that no record is late.  `loosened` draws other workloads (class W), in which the
run decides what is late.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec

from ....properties.model.workload import BEGINNING, END_OF_TIME, Burst, Input, Session, Sliding, Tumbling, Workload
from ..choices import Choices

PACE = 10
"""the average event time from one record of a split to the next"""

SORTS = ("tumbling", "sliding", "session")


BURST = Burst(gap_us=1_000)
"""an example, to ask whether a subject knows its kind"""
GAPS_US = (300, 1_000, 3_000, 10_000)
"""from a gap in which a few records of a key arrive to a gap in which all arrive"""


def draw_burst(choices: Choices) -> Burst:
    """An operator in processing time."""
    return Burst(gap_us=choices.pick(GAPS_US), of=choices.pick(("count", "sum")))


def known_windows(operators: frozenset[str] | None) -> tuple[str, ...]:
    """The kinds of window among the operators that a subject knows (None: all)."""
    return tuple(sort for sort in SORTS if operators is None or sort in operators)


def draw_window(
    choices: Choices, sorts: tuple[str, ...], operators: frozenset[str] | None = None
) -> Tumbling | Sliding | Session:
    """A window that is large enough for a few records of a key."""
    sort = choices.pick(sorts)
    of = choices.pick(("count", "sum"))
    lateness = choices.pick((0, 0, 0, 5 * PACE))
    if operators is not None and f"{sort}:late" not in operators:
        lateness = 0
    if sort == "session":
        return Session(gap=choices.pick((PACE, 3 * PACE, 6 * PACE)), of=of, lateness=lateness)
    size = PACE * choices.pick((5, 2, 10, 40))
    if sort == "tumbling":
        return Tumbling(size=size, of=of, lateness=lateness)
    return Sliding(size=size, slide=max(1, size // choices.pick((2, 3, 4))), of=of, lateness=lateness)


def draw_times(choices: Choices, inputs: tuple[Input, ...]) -> tuple[Input, ...]:
    """The inputs with event times, out of order by at most their delay."""
    start = choices.pick((0, -7 * PACE, 1_000_000))
    source = Random(choices.between(0, (1 << 16) - 1))
    return tuple(_timed(each, start, choices.pick((0, PACE, 4 * PACE)), source) for each in inputs)


def closing(inputs: tuple[Input, ...], window: Tumbling | Sliding | Session) -> tuple[Input, ...]:
    """The inputs, all bounded if otherwise no window would end and no row be emitted."""
    if _some_window_ends(inputs, window):
        return inputs
    return tuple(msgspec.structs.replace(each, bounded=True) for each in inputs)


def _some_window_ends(inputs: tuple[Input, ...], window: Tumbling | Sliding | Session) -> bool:
    """Whether the watermark passes the end of some window; this may be wrong if a map changes keys."""
    last = [max(times, default=BEGINNING) - one.delay - 1 for one in inputs if not one.bounded for times in one.times]
    watermark = min(last, default=END_OF_TIME)
    by_key: dict[int | None, list[int]] = {}
    for one in inputs:
        for records, times in zip(one.splits, one.times, strict=True):
            for (key, _, _), time in zip(records, times, strict=True):
                by_key.setdefault(key, []).append(time)
    if not isinstance(window, Session):
        return any(min(times) + window.size <= watermark for times in by_key.values())
    pairs = ((time, after) for times in by_key.values() for time, after in _with_successors(times))
    return any(time + window.gap <= min(watermark, after) for time, after in pairs)


def _with_successors(times: list[int]) -> Iterator[tuple[int, int]]:
    """Each time with the following one."""
    ordered = sorted(times)
    yield from zip(ordered, (*ordered[1:], END_OF_TIME), strict=True)


def loosened(
    choices: Choices, workload: Workload, read_us: int, *, may_idle: bool = True, idle: bool = False
) -> Workload:
    """The workload with late records, or with splits that are idle at times.

    `may_idle`: splits may be idle; `idle`: splits are idle.
    """
    ways = ((True, False), (False, True), (True, True))
    late, idle = choices.pick(ways[idle:] if may_idle else ways[:1])
    draw = Random(choices.between(0, (1 << 16) - 1)) if late else None
    inputs = tuple(
        msgspec.structs.replace(
            source,
            delay=source.delay // 8 if late else source.delay,
            times=tuple(_put_back(times, draw) for times in source.times) if draw else source.times,
            idle_after_us=read_us * choices.pick((2, 5, 20)) if idle else 0,
        )
        for source in workload.inputs
    )
    return msgspec.structs.replace(workload, inputs=inputs)


def _put_back(times: tuple[int, ...], draw: Random) -> tuple[int, ...]:
    """Put one time in five back so far that its window may have ended."""
    return tuple(time - (draw.randint(1, 30 * PACE) if draw.random() < 0.2 else 0) for time in times)


def _timed(source: Input, start: int, delay: int, draw: Random) -> Input:
    times = tuple(_times(len(records), start, delay, draw) for records in source.splits)
    return msgspec.structs.replace(source, times=times, delay=delay)


def _times(count: int, start: int, delay: int, draw: Random) -> tuple[int, ...]:
    """Times that advance by `PACE` on average, each put back by up to `delay`."""
    times: list[int] = []
    for _ in range(count):
        start += draw.randint(0, 2 * PACE)
        times.append(start - draw.randint(0, delay))
    return tuple(times)
