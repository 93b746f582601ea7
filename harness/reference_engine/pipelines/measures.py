"""The document's figures, each taken from runs in which only bytes move and time passes (UNA-6, UNA-9).

A pipeline here is a source and one slow task on a node with one store, since the text computes everything for one node.
No figure is computed from rates: durations, bytes and shares are measured in runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean, pstdev

import msgspec
from msgspec.structs import replace

from ....reference_impl.core.spilling import ALIGNED, AT_ONCE, CONTINUOUS, Way, overtaking_after, spilling_after
from ....reference_impl.simulated.pipeline_plan import MB, Device, Pipeline, Stage
from .run import PipelineRun, measured

SECOND = 1_000_000
MINUTE = 60 * SECOND
SPILLING = 30 * MB
"""the text's spilling throughput of a node, bytes a second"""
BUFFERED = 1_000 * MB
"""the text speaks of gigabytes in flight: here one a node"""
TIMEOUT = 5 * SECOND
"""X of both time-outs"""

DEVICE = Device(rate=SPILLING)

WAYS: dict[str, Way] = {
    "aligned": ALIGNED,
    "at once": AT_ONCE,
    "continuous": CONTINUOUS,
    "barrier time-out": overtaking_after(TIMEOUT),
    "buffer time-out": spilling_after(TIMEOUT),
}


def pressed(rate: int, way: Way = ALIGNED, device: Device = DEVICE) -> Pipeline:
    """A task at this rate behind a source that always has more, a gigabyte between them; a checkpoint a minute."""
    return Pipeline(
        stages=(Stage(name="source", rate=1_000 * MB), Stage(name="task", rate=rate, inputs=("source",))),
        way=way,
        device=device,
        channel_bytes=BUFFERED,
        interval_us=MINUTE,
    )


def fed(offered: int, rate: int, way: Way = ALIGNED, device: Device = DEVICE) -> Pipeline:
    """The same, but no more comes than is offered, bytes a second."""
    plan = pressed(rate, way, device)
    return replace(plan, stages=(replace(plan.stages[0], arrives=offered), *plan.stages[1:]))


def first_checkpoint(pipeline: Pipeline, begins_us: int = 5 * SECOND) -> PipelineRun:
    """A run that ends when one checkpoint is complete, or after a day."""
    one = replace(pipeline, first_us=begins_us, interval_us=24 * 60 * MINUTE, until_us=24 * 60 * MINUTE)
    return measured(replace(one, most_checkpoints=1))


def took_s(run: PipelineRun) -> float:
    """How long its first checkpoint took."""
    (first, *_) = run.complete
    return ((first.complete_us or 0) - first.begun_us) / SECOND


def times_as_long(rate: int, device: Device = DEVICE) -> float:
    """At once against waiting for the alignment: how many times as long, data at this rate."""
    aligned = took_s(first_checkpoint(pressed(rate, ALIGNED, device)))
    return took_s(first_checkpoint(pressed(rate, AT_ONCE, device))) / aligned


def crossover(device: Device = DEVICE, low: int = 5 * MB, high: int = 120 * MB, within: int = MB // 20) -> int:
    """The data rate from which spilling at once takes longer than alignment, found by halving."""
    while high - low > within:
        middle = (low + high) // 2
        low, high = (low, middle) if times_as_long(middle, device) > 1 else (middle, high)
    return (low + high) // 2


def throughput(pipeline: Pipeline) -> float:
    """MB a second, in the last five of fifteen minutes: memory that is empty at first hides a slow store."""
    run = measured(replace(pipeline, buffer_bytes=5 * MB, until_us=15 * MINUTE))
    return fmean(_seconds(run.outcome.processed_series, 10, 15))


def cost_of(way: Way, rate: int, device: Device = DEVICE) -> float:
    """The share of throughput that a way of spilling costs, against alignment."""
    return 1 - throughput(pressed(rate, way, device)) / throughput(pressed(rate, ALIGNED, device))


def written_between(pipeline: Pipeline) -> int:
    """Bytes that the store wrote between the completion of the second checkpoint and that of the third."""
    run = measured(replace(pipeline, until_us=60 * MINUTE, most_checkpoints=3))
    return run.complete[2].written_bytes - run.complete[1].written_bytes


class Duration(msgspec.Struct, frozen=True, kw_only=True):
    """One row of how long a checkpoint takes: the task's rate, what was in flight at its beginning, seconds by way."""

    rate: int
    in_flight: int
    seconds: dict[str, float]


OFFERED = 20 * MB
SLOWER = tuple(tenths * MB // 10 for tenths in (200, 190, 180, 150, 100, 50, 20, 10, 5, 2))
"""rates of the task under growing backpressure"""


def durations(
    rates: Sequence[int] = SLOWER, device: Device = DEVICE, ways: Sequence[str] = tuple(WAYS)
) -> list[Duration]:
    """A checkpoint a minute after a task became slower than what is offered: the slower, the more backpressure."""
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
    """With smaller buffers and less room: a barrier waits for the buffer in hand, and a slow task has it long."""
    return replace(pipeline, buffer_bytes=MB // 4, channel_bytes=600 * MB)


STORES: dict[str, Device] = {
    "log": DEVICE,
    "files": replace(DEVICE, kind="files", open_us=20_000, flush_us=50_000),
    "distant files": replace(DEVICE, kind="files", open_us=200_000, flush_us=500_000),
}
"""the text would begin with a file system (S3, say) and has logs (BookKeeper) in mind; latencies are ours"""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One way on one kind of store."""

    store: str
    way: str
    checkpoint_s: float
    """the third one"""
    processed: float
    """MB a second"""
    most_stored: int
    restored_s: float
    """from a crash until all tasks were up"""


def stores(rate: int, ways: Sequence[str] = ("at once", "continuous")) -> list[Stored]:
    """Seven minutes under backpressure on each kind of store."""
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
    """A run with a crash three and a half intervals after the start, and as long again."""
    interval_us = pipeline.interval_us or MINUTE
    return measured(replace(pipeline, crashes_us=(interval_us * 7 // 2,), until_us=interval_us * 7))


def _restored_s(run: PipelineRun) -> float:
    """From the only crash until all tasks were up."""
    (recovery,) = run.outcome.recoveries
    return ((recovery.restored_us or 0) - recovery.crashed_us) / SECOND


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """What a crash in the middle between two checkpoints cost."""

    way: str
    restored_s: float
    """until all tasks were up, in-flight data read"""
    read: int
    """bytes of in-flight data"""
    undone: int
    """bytes that had been processed"""
    caught_up_s: float
    most_stored: int


def recoveries(rate: int, interval_us: int = MINUTE) -> list[Recovered]:
    """Each way under backpressure and a crash."""
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
    """Of one way: bytes a second, and how much single seconds differ (standard deviation by mean)."""

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
"""slower than the store, faster than it, and what is not behind: what each way's steadiness is measured on"""


def steadiness(plan: Callable[[Way], Pipeline], ways: Sequence[str] = tuple(WAYS)) -> list[Steadiness]:
    """Seven minutes of each way, the first three left out: channels that are empty fill first."""
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
    """MB of each second between two minutes."""
    whole = series + [0] * (until * 60 - len(series))
    return [size / MB for size in whole[after * 60 : until * 60]]


def _varies(series: list[float]) -> float:
    mean = fmean(series)
    return pstdev(series) / mean if mean else 0.0
