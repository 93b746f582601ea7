"""The figures of FLIP-76 about spilling in-flight data, measured in simulated runs (UNA-6, UNA-9).

A run moves bytes in virtual time and has no records.  A pipeline here is a source and one slow task on a node with one
store, because FLIP-76 computes its figures for one node.  Every duration, size and share is measured, none computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean, pstdev

import msgspec
from msgspec.structs import replace

from ....reference_impl.core.extensions.in_flight_data.spilling import (
    ALIGNED,
    AT_ONCE,
    CONTINUOUS,
    Way,
    overtaking_after,
    spilling_after,
)
from ....reference_impl.simulated.pipelines.plan import MB, Device, Pipeline, Stage
from .run import PipelineRun, measured

SECOND = 1_000_000
MINUTE = 60 * SECOND
SPILLING = 30 * MB
"""the spilling throughput of a node in FLIP-76, in bytes a second"""
BUFFERED = 1_000 * MB
"""in-flight bytes of the node: FLIP-76 speaks of gigabytes"""
TIMEOUT = 5 * SECOND
"""the barrier timeout and the buffer timeout, in µs"""

DEVICE = Device(rate=SPILLING)

WAYS: dict[str, Way] = {
    "aligned": ALIGNED,
    "at once": AT_ONCE,
    "continuous": CONTINUOUS,
    "barrier timeout": overtaking_after(TIMEOUT),
    "buffer timeout": spilling_after(TIMEOUT),
}


def pressed(rate: int, way: Way = ALIGNED, device: Device = DEVICE) -> Pipeline:
    """A task at `rate` with a checkpoint a minute.  Its source always has more data, and up to 1 GB is in flight."""
    return Pipeline(
        stages=(Stage(name="source", rate=1_000 * MB), Stage(name="task", rate=rate, inputs=("source",))),
        way=way,
        device=device,
        channel_bytes=BUFFERED,
        interval_us=MINUTE,
    )


def fed(offered: int, rate: int, way: Way = ALIGNED, device: Device = DEVICE) -> Pipeline:
    """The pipeline of `pressed`, whose source receives only `offered` bytes a second."""
    plan = pressed(rate, way, device)
    return replace(plan, stages=(replace(plan.stages[0], arrives=offered), *plan.stages[1:]))


def first_checkpoint(pipeline: Pipeline, begins_us: int = 5 * SECOND) -> PipelineRun:
    """A run that ends when its first checkpoint is complete, or after a day."""
    one = replace(pipeline, first_us=begins_us, interval_us=24 * 60 * MINUTE, until_us=24 * 60 * MINUTE)
    return measured(replace(one, most_checkpoints=1))


def took_s(run: PipelineRun) -> float:
    """The duration of the run's first checkpoint, in seconds."""
    (first, *_) = run.complete
    return ((first.complete_us or 0) - first.begun_us) / SECOND


def times_as_long(rate: int, device: Device = DEVICE) -> float:
    """The duration of an unaligned checkpoint divided by that of an aligned one, for a task at `rate`."""
    aligned = took_s(first_checkpoint(pressed(rate, ALIGNED, device)))
    return took_s(first_checkpoint(pressed(rate, AT_ONCE, device))) / aligned


def crossover(device: Device = DEVICE, low: int = 5 * MB, high: int = 120 * MB, within: int = MB // 20) -> int:
    """The task's rate from which an unaligned checkpoint takes longer than an aligned one, found by bisection."""
    while high - low > within:
        middle = (low + high) // 2
        low, high = (low, middle) if times_as_long(middle, device) > 1 else (middle, high)
    return (low + high) // 2


def throughput(pipeline: Pipeline) -> float:
    """MB a second in the last 5 of 15 minutes.  Earlier, buffers that are still empty hide a slow store."""
    run = measured(replace(pipeline, buffer_bytes=5 * MB, until_us=15 * MINUTE))
    return fmean(_seconds(run.outcome.processed_series, 10, 15))


def cost_of(way: Way, rate: int, device: Device = DEVICE) -> float:
    """The share of the throughput with aligned checkpoints that a way of spilling costs."""
    return 1 - throughput(pressed(rate, way, device)) / throughput(pressed(rate, ALIGNED, device))


def written_between(pipeline: Pipeline) -> int:
    """Bytes that the store wrote between the completion of the second checkpoint and that of the third."""
    run = measured(replace(pipeline, until_us=60 * MINUTE, most_checkpoints=3))
    return run.complete[2].written_bytes - run.complete[1].written_bytes


class Duration(msgspec.Struct, frozen=True, kw_only=True):
    """The duration of a checkpoint at one rate of the task, by way; `in_flight`: the most bytes that one stored."""

    rate: int
    in_flight: int
    seconds: dict[str, float]


OFFERED = 20 * MB
SLOWER = tuple(tenths * MB // 10 for tenths in (200, 190, 180, 150, 100, 50, 20, 10, 5, 2))
"""rates of the task, falling, so that backpressure grows"""


def durations(
    rates: Sequence[int] = SLOWER, device: Device = DEVICE, ways: Sequence[str] = tuple(WAYS)
) -> list[Duration]:
    """For each rate of the task, the duration of a checkpoint that begins a minute after the start."""
    found = []
    for rate in rates:
        plans = {name: _fine(fed(OFFERED, rate, WAYS[name], device)) for name in ways}
        runs = {name: first_checkpoint(plan, MINUTE) for name, plan in plans.items()}
        in_flight = max(run.complete[0].stored_bytes for run in runs.values())
        found.append(
            Duration(rate=rate, in_flight=in_flight, seconds={name: took_s(run) for name, run in runs.items()})
        )
    return found


def _fine(pipeline: Pipeline) -> Pipeline:
    """The pipeline with smaller buffers and channels: a barrier waits for the buffer that a task is processing, which
    takes a slow task long."""
    return replace(pipeline, buffer_bytes=MB // 4, channel_bytes=600 * MB)


STORES: dict[str, Device] = {
    "log": DEVICE,
    "files": replace(DEVICE, kind="files", open_us=20_000, flush_us=50_000),
    "distant files": replace(DEVICE, kind="files", open_us=200_000, flush_us=500_000),
}
"""the kinds of store that FLIP-76 names: a file system (S3, say) and a log (BookKeeper); the latencies are ours"""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of one way on one kind of store."""

    store: str
    way: str
    checkpoint_s: float
    """the duration of the third checkpoint"""
    processed: float
    """MB a second"""
    most_stored: int
    restored_s: float
    """from a crash until all tasks run again"""


def stores(rate: int, ways: Sequence[str] = ("at once", "continuous")) -> list[Stored]:
    """Each way on each kind of store, for seven minutes under backpressure."""
    found = []
    for store, device in STORES.items():
        for name in ways:
            plan = pressed(rate, WAYS[name], device)
            run = measured(replace(plan, until_us=7 * MINUTE))
            found.append(
                Stored(
                    store=store,
                    way=name,
                    checkpoint_s=(run.complete[2].took_us or 0) / SECOND,
                    processed=fmean(_seconds(run.outcome.processed_series, 3, 7)),
                    most_stored=sum(run.outcome.most_stored.values()),
                    restored_s=_restored_s(recovered(plan)),
                )
            )
    return found


def recovered(pipeline: Pipeline) -> PipelineRun:
    """A run of seven checkpoint intervals that crashes in the middle."""
    interval_us = pipeline.interval_us or MINUTE
    return measured(replace(pipeline, crashes_us=(interval_us * 7 // 2,), until_us=interval_us * 7))


def _restored_s(run: PipelineRun) -> float:
    """The time from the run's only crash until all tasks run again."""
    (recovery,) = run.outcome.recoveries
    return ((recovery.restored_us or 0) - recovery.crashed_us) / SECOND


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a crash halfway between two checkpoints, for one way."""

    way: str
    restored_s: float
    """from the crash until all tasks run again, with their in-flight data restored"""
    read: int
    """bytes of in-flight data that were restored"""
    undone: int
    """processed bytes that the crash undid"""
    caught_up_s: float
    most_stored: int


def recoveries(rate: int, interval_us: int = MINUTE) -> list[Recovered]:
    """The cost of a crash under backpressure, for each way."""
    found = []
    for name, way in WAYS.items():
        run = recovered(replace(pressed(rate, way), interval_us=interval_us))
        (recovery,) = run.outcome.recoveries
        found.append(
            Recovered(
                way=name,
                restored_s=_restored_s(run),
                read=recovery.replayed_bytes,
                undone=recovery.lost_bytes,
                caught_up_s=((recovery.caught_up_us or 0) - recovery.crashed_us) / SECOND,
                most_stored=sum(run.outcome.most_stored.values()),
            )
        )
    return found


class Steadiness(msgspec.Struct, frozen=True, kw_only=True):
    """The throughput of one way in MB a second, and how much the seconds differ (standard deviation by mean)."""

    way: str
    processed: float
    processed_varies: float
    written: float
    written_varies: float
    processed_series: tuple[float, ...]
    written_series: tuple[float, ...]
    """MB by second"""


PRESSURES: dict[str, Callable[[Way], Pipeline]] = {
    "20 MB/s under backpressure": partial(pressed, 20 * MB),
    "100 MB/s under backpressure": partial(pressed, 100 * MB),
    "10 MB/s come to a task that does 20: no backpressure": partial(fed, 10 * MB, 20 * MB),
}
"""where steadiness is measured: a task slower than the store, a task faster than it, and no backpressure"""


def steadiness(plan: Callable[[Way], Pipeline], ways: Sequence[str] = tuple(WAYS)) -> list[Steadiness]:
    """Each way in the last 4 of 7 minutes: in the first 3 the empty channels fill."""
    found = []
    for name in ways:
        run = measured(replace(plan(WAYS[name]), until_us=7 * MINUTE))
        processed = _seconds(run.outcome.processed_series, 3, 7)
        written = _seconds(run.outcome.written_series["node"], 3, 7)
        found.append(
            Steadiness(
                way=name,
                processed=fmean(processed),
                processed_varies=_varies(processed),
                written=fmean(written),
                written_varies=_varies(written),
                processed_series=tuple(processed),
                written_series=tuple(written),
            )
        )
    return found


def _seconds(series: list[int], after: int, until: int) -> list[float]:
    """The MB of each second from minute `after` to minute `until`."""
    whole = series + [0] * (until * 60 - len(series))
    return [size / MB for size in whole[after * 60 : until * 60]]


def _varies(series: list[float]) -> float:
    mean = fmean(series)
    return pstdev(series) / mean if mean else 0.0
