"""Pipelines that crash: the vicious circle, and the way of spilling that makes most progress at each rate and interval.

Progress is counted in bytes that the sink processed and no crash undid.  A run with crashes ends with a crash, so that
only the bytes that a complete checkpoint covers count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from ....reference_impl.core.extensions.in_flight_data.spilling import ALIGNED, Way
from ....reference_impl.simulated.pipelines.plan import MB, Pipeline
from .measures import MINUTE, SECOND, WAYS, fed, pressed
from .run import PipelineRun, measured

FOR_US = 20 * MINUTE
EVEN = 0.01
"""ways whose progress differs by at most this share are even; among them the way that writes least wins"""


def crashes(every_us: int | None, for_us: int = FOR_US, seed: int = 1) -> tuple[int, ...]:
    """Random times of crashes, `every_us` apart on average, and one crash at the end; None: no crashes."""
    if every_us is None:
        return ()
    draw, at_us = random.Random(seed), 0
    found: list[int] = []
    while True:
        at_us += int(draw.expovariate(1 / every_us)) + 1
        if at_us >= for_us:
            return (*found, for_us)
        found.append(at_us)


def circle(way: Way = ALIGNED, every_us: int | None = 90 * SECOND, for_us: int = FOR_US) -> Pipeline:
    """The vicious circle: a task that processes 10 MB/s receives 9.5 MB/s.  A crash causes the first backpressure."""
    at_us = tuple(range(every_us, for_us + 1, every_us)) if every_us else ()
    plan = replace(fed(19 * MB // 2, 10 * MB, way), buffer_bytes=5 * MB // 2)
    return replace(plan, interval_us=20 * SECOND, restart_us=10 * SECOND, crashes_us=at_us, until_us=for_us)


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What happened between two crashes."""

    crashed_us: int
    checkpoints_s: tuple[float, ...]
    """durations of the checkpoints that completed since the previous crash"""
    covered: int
    """bytes that complete checkpoints covered at the time of the crash"""


def rounds(run: PipelineRun) -> list[Round]:
    """For each crash, the checkpoints that completed before it."""
    found, before_us, covered = [], 0, 0
    for recovery in run.outcome.recoveries:
        since = [one for one in run.complete if before_us < (one.complete_us or 0) <= recovery.crashed_us]
        covered = max([covered, *(one.processed * run.outcome.buffer_bytes for one in since)])
        took = tuple((one.took_us or 0) / SECOND for one in since)
        found.append(Round(crashed_us=recovery.crashed_us, checkpoints_s=took, covered=covered))
        before_us = recovery.crashed_us
    return found


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the table: the result of each way."""

    rate: int
    interval_us: int
    every_us: int | None
    """mean time between crashes"""
    progress: dict[str, int]
    """way: bytes processed for good"""
    written: dict[str, int]
    winner: str
    even: tuple[str, ...]
    """ways whose progress is even, the winner included; the one that wrote least comes first"""


RATES = (10 * MB, 30 * MB, 100 * MB)
INTERVALS_US = (10 * SECOND, MINUTE, 5 * MINUTE)
EVERY_US = (None, 10 * MINUTE, 2 * MINUTE)


def compared(rate: int, interval_us: int, every_us: int | None) -> Comparison:
    """One entry of the table: all ways with the same crashes and backpressure."""
    progress, written = {}, {}
    for name, way in WAYS.items():
        # a task processes a buffer in a quarter of a second, whatever its rate
        plan = replace(pressed(rate, way), buffer_bytes=rate // 4, interval_us=interval_us, until_us=FOR_US)
        run = measured(replace(plan, crashes_us=crashes(every_us)))
        progress[name], written[name] = run.for_good, run.written
    return judge_comparison(rate, interval_us, every_us, progress, written)


def judge_comparison(
    rate: int, interval_us: int, every_us: int | None, progress: dict[str, int], written: dict[str, int]
) -> Comparison:
    """Choose the winner: the way that wrote least among those that are even with the way of most progress."""
    most = max(progress.values())
    even = sorted((name for name in progress if progress[name] >= most * (1 - EVEN)), key=lambda name: written[name])
    return Comparison(
        rate=rate,
        interval_us=interval_us,
        every_us=every_us,
        progress=progress,
        written=written,
        winner=even[0] if most else "none",
        even=tuple(even) if most else (),
    )


def comparisons(progress: Callable[[str], None] = lambda words: None) -> Iterator[Comparison]:
    """All entries of the table; before each entry, `progress` is called with its description."""
    for every_us in EVERY_US:
        for interval_us in INTERVALS_US:
            for rate in RATES:
                progress(f"{rate // MB} MB/s, a checkpoint each {interval_us // SECOND} s")
                yield compared(rate, interval_us, every_us)
