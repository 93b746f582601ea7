"""The two footnotes and the pros and cons in the discussion of FLIP-76, with each figure measured (UNA-6, UNA-9)."""

from __future__ import annotations

from ...reference_engine.pipelines.measures import (
    WAYS,
    cost_of,
    crossover,
    durations,
    fed,
    pressed,
    steadiness,
    times_as_long,
    written_between,
)
from ...reference_engine.pipelines.plan import AT_ONCE, CONTINUOUS, MB, Pipeline
from ...reference_engine.pipelines.run import PipelineRun
from ..claims import require
from .claims import PipelineClaim, PipelineExample

THREAD = "the discussion of unaligned checkpoints, FLIP-76"
GB = 1_000 * MB
FAST, SLOW = 100 * MB, 10 * MB
"""the text's two data rates"""


def near(found: float, stated: float, share: float = 0.02) -> bool:
    """Whether a measured figure equals the text's, to the precision of the text."""
    return abs(found - stated) <= stated * share


def _three_times(_: Pipeline, run: PipelineRun) -> str:
    found = times_as_long(FAST, run.pipeline.device)
    require(near(found, 3.3), f"spilling takes {found:.2f} times as long as alignment")
    return f"spilling takes {found:.2f} times as long as alignment"


def _crossover(_: Pipeline, run: PipelineRun) -> str:
    rate, spilling = crossover(run.pipeline.device) / MB, run.pipeline.device.rate / MB
    slower = times_as_long(FAST, run.pipeline.device)
    require(near(rate, spilling), f"both take equally long at {rate:.1f} MB/s, with spilling at {spilling:.1f} MB/s")
    require(slower > 1, f"at {FAST // MB} MB/s spilling at once takes {slower:.2f} times as long")
    return (
        f"both take equally long at {rate:.1f} MB/s, with spilling at {spilling:.0f} MB/s; at "
        "higher rates alignment is shorter"
    )


def _costs_little(_: Pipeline, run: PipelineRun) -> str:
    low, high = (cost_of(CONTINUOUS, rate, run.pipeline.device) for rate in (SLOW, FAST))
    require(low < 0.02, f"it costs {low:.1%} of the throughput at {SLOW // MB} MB/s")
    return f"it costs {low:.1%} of the throughput at {SLOW // MB} MB/s, and {high:.1%} at {FAST // MB} MB/s"


def _between(_: Pipeline, run: PipelineRun) -> str:
    found = written_between(pressed(30 * MB, CONTINUOUS, run.pipeline.device)) / GB
    require(near(found, 1.8), f"{found:.2f} GB")
    return f"{found:.2f} GB"


def _same_order(_: Pipeline, run: PipelineRun) -> str:
    continuous = written_between(pressed(30 * MB, CONTINUOUS, run.pipeline.device)) / GB
    at_once = written_between(pressed(30 * MB, AT_ONCE, run.pipeline.device)) / GB
    require(at_once / 10 < continuous < at_once * 10, f"{continuous:.2f} GB against {at_once:.2f} GB in flight")
    return f"{continuous:.2f} GB, where {at_once:.2f} GB were in flight and written at once"


def _all_anyway(_: Pipeline, run: PipelineRun) -> str:
    continuous = written_between(pressed(SLOW, CONTINUOUS, run.pipeline.device)) / GB
    at_once = written_between(pressed(SLOW, AT_ONCE, run.pipeline.device)) / GB
    require(at_once >= continuous, f"at once {at_once:.2f} GB, continuously {continuous:.2f} GB")
    return f"at {SLOW // MB} MB/s, a minute: {at_once:.2f} GB at once, {continuous:.2f} GB continuously"


def _just_flush(_: Pipeline, run: PipelineRun) -> str:
    rows = durations((10 * MB, 2 * MB, MB // 2), run.pipeline.device, ("aligned", "at once", "continuous"))
    longest = max(row.seconds["continuous"] for row in rows)
    require(longest < 0.1, f"a checkpoint takes up to {longest:.2f} s with continuous spilling")
    words = "; ".join(
        f"{row.rate / MB:g} MB/s: {row.seconds['aligned']:,.0f} s aligned, {row.seconds['at once']:.0f} s at once"
        for row in rows
    )
    return (
        f"with continuous spilling up to {longest * 1000:.0f} ms, whatever the backpressure; "
        f"at a task's rate of {words}"
    )


def _steady(_: Pipeline, run: PipelineRun) -> str:
    ways = ("continuous", "at once")
    found = {one.way: one for one in steadiness(lambda way: pressed(20 * MB, way, run.pipeline.device), ways)}
    even, jerky = found["continuous"].written_varies, found["at once"].written_varies
    require(even < jerky / 5, f"what is written in a second varies by {even:.0%}, and at once by {jerky:.0%}")
    return f"bytes written in a second vary by {even:.0%} of their mean, and by {jerky:.0%} at once"


def _throughput_steady(_: Pipeline, run: PipelineRun) -> str:
    (found,) = steadiness(lambda way: pressed(20 * MB, way, run.pipeline.device), ("continuous",))
    varies = found.processed_varies
    require(varies < 0.02, f"bytes processed in a second vary by {varies:.0%} of their mean")
    return f"bytes processed in a second vary by {varies:.0%} of their mean"


_SHARE_NOTHING = (
    "the store and the task share nothing here, neither processor nor disk, so that spilling slows no task while the "
    "store keeps up"
)


def _nothing_without(_: Pipeline, run: PipelineRun) -> str:
    ways = ("continuous", "buffer timeout")
    found = {one.way: one for one in steadiness(lambda way: fed(SLOW, 20 * MB, way, run.pipeline.device), ways)}
    waits, always = found["buffer timeout"].written, found["continuous"].written
    require(waits == 0, f"it writes {waits:.1f} MB/s")
    require(always > 0, "continuous spilling writes nothing either")
    return f"without backpressure it writes {waits:.0f} MB/s, where continuous spilling writes {always:.0f}"


SPILLING_ARITHMETIC = PipelineExample(
    name="spilling-arithmetic",
    about=f"what {len(WAYS)} ways of storing in-flight data cost, in bytes and seconds, at the text's rates",
    document=THREAD,
    pipeline=pressed(FAST, AT_ONCE),
    claims=(
        PipelineClaim(text="if your data processing rate is 100MB/s, spilling in-flight data will take 3.3 times "
                      "longer than waiting for the alignment", find=_three_times),
        PipelineClaim(text="if you are unable to spill the data faster than to process them, unaligned checkpoints "
                      "are worse option compared to the aligned checkpoints", find=_crossover),
        PipelineClaim(text="if data processing rate is 10MB/s, overhead of continuous spilling is relatively low",
                      find=_costs_little, assumes=_SHARE_NOTHING),
        PipelineClaim(text="with checkpoints every one minute, with data processing throughput 30MB/s per node, we "
                      "would have to persist 1.8GB of data per node between the checkpoints", find=_between),
        PipelineClaim(text="which is similar order of magnitude as buffered in-flight data under the back-pressure",
                      find=_same_order),
        PipelineClaim(text="with lower throughput, both the original proposal and continuous spilling would have to "
                      "effectively persist all of the data anyway", find=_all_anyway),
        PipelineClaim(text="faster checkpointing, as there will be no need to store GBs of data, just flush/close",
                      find=_just_flush),
        PipelineClaim(text="instead of jerky/varying/spike IO/CPU loads, steady … spilling", find=_steady),
        PipelineClaim(text="steady records throughput", find=_throughput_steady, assumes=_SHARE_NOTHING),
        PipelineClaim(text="do not spill continuously if there is no backpressure, for example provide a timeout",
                      find=_nothing_without),
    ),
)  # fmt: skip
