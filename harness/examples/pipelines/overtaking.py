"""Two examples from the discussion of FLIP-76: the barrier that overtakes before the snapshot is taken, and the vicious
circle (UNA-7, UNA-8)."""

from __future__ import annotations

from itertools import pairwise

from msgspec.structs import replace

from ...reference_engine.pipelines.crashing import Round, circle, rounds
from ...reference_engine.pipelines.measures import DEVICE, SECOND
from ...reference_engine.pipelines.plan import ALIGNED, AT_ONCE, CONTINUOUS, MB, Checkpoint, Mark, Pipeline, Stage
from ...reference_engine.pipelines.run import PipelineRun, measured
from ..claims import NotShown, require
from .arithmetic import THREAD
from .claims import PipelineClaim, PipelineExample

LEFT, RIGHT, JOIN, SINK = "left", "right", "join", "sink"

JOINED = Pipeline(
    stages=(
        Stage(name=LEFT, rate=100 * MB, sync_us=50_000),
        Stage(name=RIGHT, rate=100 * MB, arrives=4 * MB, sync_us=50_000),
        Stage(name=JOIN, rate=20 * MB, inputs=(LEFT, RIGHT), sync_us=200_000, state_bytes=5 * MB),
        Stage(name=SINK, rate=10 * MB, inputs=(JOIN,), sync_us=100_000, state_bytes=MB),
    ),
    way=AT_ONCE,
    device=DEVICE,
    channel_bytes=100 * MB,
    interval_us=30 * SECOND,
    until_us=120 * SECOND,
)
"""a job with two inputs, one of them under backpressure, and snapshots with a synchronous part"""


def _first(run: PipelineRun) -> Checkpoint:
    if not run.complete:
        raise NotShown("no checkpoint completed")
    return run.complete[0]


def _marks(run: PipelineRun) -> dict[str, Mark]:
    number = _first(run).number
    return {mark.task: mark for mark in run.outcome.marks if mark.checkpoint == number}


def _lead_us(run: PipelineRun) -> dict[str, int]:
    """By task: how long before the end of its snapshot's synchronous part its barrier was downstream."""
    marks = _marks(run)
    after = {name: stage.name for stage in run.pipeline.stages for name in stage.inputs}
    return {
        name: (marks[name].sync_ended_us or 0) - max(marks[name].forwarded_us or 0, marks[behind].first_barrier_us)
        for name, behind in after.items()
    }


def _forwarded_before(_: Pipeline, run: PipelineRun) -> str:
    leads_us, marks = _lead_us(run), _marks(run)
    late = [
        name
        for name, us in leads_us.items()
        if us <= 0 or (marks[name].forwarded_us or 0) > (marks[name].sync_began_us or 0)
    ]
    require(not late, f"{', '.join(late)} sent the barrier after the synchronous part")
    aligned = _lead_us(measured(replace(run.pipeline, way=ALIGNED)))
    words = ", ".join(f"{name} {us / 1000:.0f} ms" for name, us in leads_us.items())
    require(all(us <= 0 for us in aligned.values()), "an aligned barrier is sent before the synchronous part too")
    return f"the barrier was sent before the synchronous part ended, by {words}; no aligned barrier was"


def _nobody_blocked(_: Pipeline, run: PipelineRun) -> str:
    blocked = {name: us for name, us in run.outcome.blocked_us.items() if us}
    require(not blocked, f"{', '.join(blocked)} was blocked")
    aligned = measured(replace(run.pipeline, way=ALIGNED)).outcome.blocked_us
    waited = max(aligned, key=lambda name: aligned[name])
    require(aligned[waited] > 0, "no channel is blocked with aligned barriers either")
    return (
        f"no channel was ever blocked; with aligned barriers {waited} was blocked for {aligned[waited] / SECOND:.1f} s"
    )


def _in_flight_stored(_: Pipeline, run: PipelineRun) -> str:
    stored = _first(run).stored_bytes
    aligned = _first(measured(replace(run.pipeline, way=ALIGNED))).stored_bytes
    require(
        stored > 0 == aligned,
        f"{stored / MB:.0f} MB of in-flight data are stored, and {aligned / MB:.0f} MB with aligned barriers",
    )
    return f"{stored / MB:.0f} MB of in-flight data are stored; with aligned barriers none"


def _shorter(_: Pipeline, run: PipelineRun) -> str:
    took = (_first(run).took_us or 0) / SECOND
    aligned = (_first(measured(replace(run.pipeline, way=ALIGNED))).took_us or 0) / SECOND
    require(took * 2 < aligned, f"{took:.1f} s, and {aligned:.1f} s with aligned barriers")
    return f"{took:.1f} s, and {aligned:.1f} s with aligned barriers"


BARRIER_BEFORE_SNAPSHOT = PipelineExample(
    name="barrier-before-snapshot",
    about="a task of two inputs sends the barrier on before the synchronous part of its snapshot; nothing is blocked",
    document=THREAD,
    pipeline=JOINED,
    claims=(
        PipelineClaim(text="allow checkpoint barriers to be forwarded to downstream tasks before the synchronous part "
                      "of the checkpointing has been conducted", find=_forwarded_before),
        PipelineClaim(text="upstream processes can continue to produce data, even if some operator still waits on a "
                      "checkpoint barrier on a specific input channel", find=_nobody_blocked),
        PipelineClaim(text="we need to store in-flight data as part of the checkpoint", find=_in_flight_stored),
        PipelineClaim(text="checkpointing times are heavily reduced across the execution graph", find=_shorter),
    ),
)  # fmt: skip

STANDSTILL = 5
"""this many rounds without progress show that there will be none"""


def _later(_: Pipeline, run: PipelineRun) -> str:
    calm = measured(replace(run.pipeline, crashes_us=()))
    usual = max((one.took_us or 0) / SECOND for one in calm.complete)
    longest = max((one.took_us or 0) / SECOND for one in run.complete)
    require(longest > 10 * usual + 10, f"the longest checkpoint took {longest:.1f} s, and {usual:.1f} without crashes")
    return f"checkpoints took up to {usual:.1f} s without crashes, and up to {longest:.1f} s with them"


def _round(number: int, one: Round) -> str:
    took = ", ".join(f"{each:.0f}" for each in one.checkpoints_s)
    return f"round {number}: {f'checkpoints of {took} s' if took else 'no checkpoint'}"


def _even_later(_: Pipeline, run: PipelineRun) -> str:
    found = rounds(run)
    longest = [max(one.checkpoints_s) for one in found if one.checkpoints_s]
    require(bool(longest), "no checkpoint completed before a crash")
    require(longest == sorted(longest) and longest[-1] > longest[0], "checkpoints do not become later with each crash")
    require(not found[-1].checkpoints_s, "checkpoints complete until the end")
    return "; ".join(_round(number, one) for number, one in enumerate(found[: len(longest) + 1], 1))


def _little_progress(_: Pipeline, run: PipelineRun) -> str:
    covered = [one.covered for one in rounds(run)]
    require(len(covered) > STANDSTILL and covered[-1] == covered[-STANDSTILL], "there is progress until the end")
    stands = covered.index(covered[-1]) + 1
    return f"{covered[-1] / MB:,.0f} MB after {stands} crashes, and {covered[-1] / MB:,.0f} MB after {len(covered)}"


def _more_progress(_: Pipeline, run: PipelineRun) -> str:
    words = []
    for name, way in (("at once", AT_ONCE), ("continuously", CONTINUOUS)):
        covered = [one.covered for one in rounds(measured(replace(run.pipeline, way=way)))]
        steps = [after - before for before, after in pairwise(covered)]
        require(bool(steps) and min(steps) > 0, f"with data stored {name} there are rounds without progress")
        words.append(
            f"{covered[-1] / MB:,.0f} MB with data stored {name}, at least {min(steps) / MB:,.0f} MB in each round"
        )
    return "; ".join(words)


VICIOUS_CIRCLE = PipelineExample(
    name="vicious-circle",
    about="a crash every 90 s: aligned checkpoints complete later and later, then never; unaligned ones go on",
    document=THREAD,
    pipeline=circle(),
    claims=(
        PipelineClaim(text="the checkpoint barrier takes a long time to reach the sinks causing long checkpointing "
                      "times", find=_later),
        PipelineClaim(text="late checkpoints, crash, recovery to a rather outdated checkpoint, more back pressure, and "
                      "even later checkpoints", find=_even_later),
        PipelineClaim(text="which would result in little to no progress in the application", find=_little_progress),
        PipelineClaim(text="end-users will see more progress even in unstable environments as more up-to-date "
                      "checkpoints will avoid too many recomputations", find=_more_progress),
    ),
)  # fmt: skip
