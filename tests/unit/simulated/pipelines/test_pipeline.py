"""The world of bytes and time: rates, bounded channels, stores, barriers, crashes, and planted errors."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from cutproof.harness.reference_engine.pipelines.run import PipelineRun, judged
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.reference_impl.core.extensions.in_flight_data.spilling import (
    ALIGNED,
    AT_ONCE,
    CONTINUOUS,
    ChannelSpilling,
    Completeness,
    Copy,
    CopyProgress,
    SpillEffect,
    Trimming,
    Way,
    overtaking_after,
    spilling_after,
)
from cutproof.reference_impl.core.vocabulary.errors import InvalidGraph
from cutproof.reference_impl.simulated.pipelines.plan import DEVICES, MB, Device, Pipeline, Stage
from cutproof.reference_impl.simulated.pipelines.world import MakeSpilling, PipelineWorld

SECOND = 1_000_000
WAYS = {
    "aligned": ALIGNED,
    "at once": AT_ONCE,
    "continuous": CONTINUOUS,
    "barrier timeout": overtaking_after(SECOND),
    "buffer timeout": spilling_after(SECOND),
}


def _line(*, rate: int = 10 * MB, source: int = 100 * MB, **settings: object) -> Pipeline:
    stages = (Stage(name="source", rate=source), Stage(name="sink", rate=rate, inputs=("source",)))
    return replace(Pipeline(stages=stages, channel_bytes=50 * MB), **settings)


LOG = Device()


def _tree(way: Way, device: Device = LOG, **settings: object) -> Pipeline:
    """Two sources of different speed, a task of two inputs, a sink on a node of its own."""
    stages = (
        Stage(name="left", rate=40 * MB),
        Stage(name="right", rate=60 * MB, arrives=7 * MB),
        Stage(name="join", rate=25 * MB, inputs=("left", "right"), sync_us=50_000, state_bytes=2 * MB),
        Stage(name="sink", rate=20 * MB, inputs=("join",), node="other", sync_us=20_000),
    )
    plan = Pipeline(stages=stages, way=way, device=device, channel_bytes=20 * MB, interval_us=2 * SECOND)
    return replace(plan, restart_us=SECOND // 2, until_us=30 * SECOND, **settings)


# -- rates and channels ----------------------------------------------------------------


def test_the_slowest_task_sets_the_pace() -> None:
    run = judged(_line(rate=7 * MB, until_us=10 * SECOND))
    assert run.for_good == pytest.approx(70 * MB, rel=0.02)


def test_a_rate_that_does_not_divide_is_kept_in_the_long_run() -> None:
    run = judged(_line(rate=3 * MB, buffer_bytes=MB // 10, until_us=100 * SECOND))
    assert run.for_good == pytest.approx(300 * MB, abs=MB // 5)


def test_no_more_comes_than_the_log_has() -> None:
    stages = (Stage(name="source", rate=100 * MB, arrives=4 * MB), Stage(name="sink", rate=50 * MB, inputs=("source",)))
    run = judged(Pipeline(stages=stages, until_us=10 * SECOND))
    assert run.for_good == pytest.approx(40 * MB, abs=MB)


def test_a_channel_holds_no_more_than_it_may() -> None:
    run = judged(_line(rate=MB, until_us=20 * SECOND))
    held = run.outcome.positions["source"] * MB - run.for_good
    assert held == 50 * MB


def test_a_full_log_takes_as_long_to_catch_up_as_its_backlog() -> None:
    """After a crash the source reads faster than data come, so a task that kept up is backpressured."""
    stages = (Stage(name="source", rate=100 * MB, arrives=9 * MB), Stage(name="sink", rate=10 * MB, inputs=("source",)))
    run = judged(Pipeline(stages=stages, crashes_us=(10 * SECOND,), restart_us=SECOND, until_us=200 * SECOND))
    (recovery,) = run.outcome.recoveries
    assert recovery.caught_up_us is not None
    assert recovery.caught_up_us - recovery.crashed_us == pytest.approx(10 * SECOND, rel=0.01)
    assert run.for_good == pytest.approx(200 * 9 * MB, rel=0.01)


@pytest.mark.parametrize(
    ("kind", "buffers", "takes_us"),
    [("log", 1, 105_000), ("log", 2, 205_000), ("files", 1, 125_000), ("files", 2, 225_000)],
)
def test_a_store_writes_at_its_rate_and_makes_durable_when_it_flushes(kind: str, buffers: int, takes_us: int) -> None:
    """Buffers of 1 MB at 10 MB/s, flushed in 5 ms; a file takes 20 ms to open."""
    device = Device(kind=kind, rate=10 * MB, open_us=20_000, flush_us=5_000)
    plan = _line(rate=MB, way=AT_ONCE, device=device, channel_bytes=(buffers + 1) * MB, interval_us=10 * SECOND)
    run = judged(replace(plan, until_us=20 * SECOND))
    (sink,) = (mark for mark in run.outcome.marks if mark.task == "sink" and mark.checkpoint == 1)
    assert run.complete[0].stored_bytes == buffers * MB
    assert run.complete[0].complete_us == (sink.sync_ended_us or 0) + takes_us


# -- the stores --------------------------------------------------------------------------


def test_a_log_frees_room_record_by_record_and_files_as_a_whole() -> None:
    most = {kind: max(judged(_tree(CONTINUOUS, Device(kind=kind))).outcome.most_stored.values()) for kind in DEVICES}
    assert most["log"] < most["files"]


def test_what_is_stored_is_trimmed() -> None:
    """Thirty checkpoints or ten: the store needs the same room."""
    short = judged(_tree(CONTINUOUS))
    long = judged(replace(_tree(CONTINUOUS), until_us=90 * SECOND))
    assert long.written > 2.5 * short.written
    assert max(long.outcome.most_stored.values()) < 1.2 * max(short.outcome.most_stored.values())


# -- barriers ----------------------------------------------------------------------------


def test_alignment_blocks_a_channel_and_overtaking_none() -> None:
    assert max(judged(_tree(ALIGNED)).outcome.blocked_us.values()) > SECOND
    for way in (AT_ONCE, CONTINUOUS):
        assert max(judged(_tree(way)).outcome.blocked_us.values()) == 0


def test_a_barrier_that_waits_long_enough_overtakes_and_one_that_does_not_keeps_its_place() -> None:
    aligned_for_long, hasty = (
        judged(_line(way=overtaking_after(us * SECOND), interval_us=20 * SECOND)) for us in (8, 2)
    )
    assert aligned_for_long.complete[0].stored_bytes == 0
    assert aligned_for_long.complete[0].took_us == judged(_line(interval_us=20 * SECOND)).complete[0].took_us
    assert hasty.complete[0].stored_bytes > 0


def test_a_barrier_is_downstream_before_the_synchronous_part_unless_aligned() -> None:
    for way, early in ((AT_ONCE, True), (ALIGNED, False)):
        run = judged(_tree(way))
        marks = {(mark.checkpoint, mark.task): mark for mark in run.outcome.marks}
        for one in run.complete:
            join, sink = marks[one.number, "join"], marks[one.number, "sink"]
            assert (sink.first_barrier_us < (join.sync_ended_us or 0)) is early


# -- everything once ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("way", WAYS)
def test_every_byte_is_processed_once_whatever_crashes(way: str, kind: str) -> None:
    for seed in range(6):
        draw = random.Random(f"{way} {kind} {seed}")
        crashes = tuple(sorted(draw.randrange(30 * SECOND) for _ in range(draw.randrange(1, 6))))
        device = Device(
            kind=kind, rate=draw.choice((3, 10, 30)) * MB, open_us=10_000, flush_us=draw.choice((1, 40_000))
        )
        run = judged(_tree(WAYS[way], device, crashes_us=crashes))
        assert isinstance(run.verdict, Holds), (seed, run.verdict)
        assert len(run.outcome.recoveries) == len(crashes)


def test_the_same_plan_gives_the_same_run() -> None:
    plan = _tree(WAYS["buffer timeout"], crashes_us=(7 * SECOND,))
    assert judged(plan).trace_sha256 == judged(plan).trace_sha256


# -- planted errors ----------------------------------------------------------------------


class _CountsWhatIsOrdered(Completeness):
    """A copy counts as soon as the store was asked to write it."""

    def counts(self, progress: CopyProgress) -> bool:
        return True


class _CountsWhatIsWritten(Completeness):
    """A copy counts before the flush."""

    def counts(self, progress: CopyProgress) -> bool:
        return progress >= CopyProgress.written


class _TrimsAll(Trimming):
    """What is in flight still is trimmed too."""

    def goes(self, number: int, oldest_needed: int, in_flight: bool) -> bool:
        return True


class _TrimsNothing(Trimming):
    """What no checkpoint needs any more stays."""

    def goes(self, number: int, oldest_needed: int, in_flight: bool) -> bool:
        return False


class _ForgetsWhatComesBeforeTheBarrier(ChannelSpilling):
    """Only what is queued at the snapshot is stored."""

    def __init__(self, way: Way) -> None:
        super().__init__(way)
        self._closed: set[int] = set()

    def snapshot(self, checkpoint: int, overtaken: list[int], *, closed: bool) -> list[SpillEffect]:
        return super().snapshot(checkpoint, overtaken, closed=True)

    def barrier(self, checkpoint: int) -> list[SpillEffect]:
        """Each checkpoint's first call comes from `snapshot`; the true barrier comes second and changes nothing."""
        if checkpoint in self._closed:
            return []
        self._closed.add(checkpoint)
        return super().barrier(checkpoint)


class _ReadsBackwards(ChannelSpilling):
    """In-flight data are read again in another order."""

    def rewind(self, checkpoint: int | None) -> tuple[list[Copy], list[SpillEffect]]:
        kept, effects = super().rewind(checkpoint)
        return kept[::-1], effects


class _StoresTheLastProcessed(ChannelSpilling):
    """What the task has just processed counts as in flight still."""

    _last: tuple[int, ...] = ()
    """the number of the last buffer that was processed since the last crash, if there is one"""

    def processed(self, number: int) -> list[SpillEffect]:
        self._last = (number,)
        return super().processed(number)

    def snapshot(self, checkpoint: int, overtaken: list[int], *, closed: bool) -> list[SpillEffect]:
        return super().snapshot(checkpoint, [*self._last, *overtaken], closed=closed)

    def rewind(self, checkpoint: int | None) -> tuple[list[Copy], list[SpillEffect]]:
        self._last = ()
        return super().rewind(checkpoint)


PLANTED: dict[str, tuple[Way, MakeSpilling, str]] = {
    "ordered is enough": (
        AT_ONCE, lambda plan: ChannelSpilling(plan.way, completeness=_CountsWhatIsOrdered()), "lost buffer"),
    "written is enough": (
        CONTINUOUS, lambda plan: ChannelSpilling(plan.way, completeness=_CountsWhatIsWritten()), "lost buffer"),
    "everything is trimmed": (
        CONTINUOUS, lambda plan: ChannelSpilling(plan.way, trimming=_TrimsAll()), "lost buffer"),
    "the rest before the barrier is forgotten": (
        AT_ONCE, lambda plan: _ForgetsWhatComesBeforeTheBarrier(plan.way), "lost buffer"),
    "read backwards": (AT_ONCE, lambda plan: _ReadsBackwards(plan.way), "order differs"),
    "what was processed is stored": (
        CONTINUOUS, lambda plan: _StoresTheLastProcessed(plan.way, trimming=_TrimsNothing()), "repeated buffer"),
}  # fmt: skip


def _crashing(way: Way, spilling: MakeSpilling) -> list[PipelineRun]:
    """The same tree with a crash at each of many times."""
    device = Device(flush_us=200_000)
    return [judged(_tree(way, device, crashes_us=(at * SECOND // 7,)), spilling) for at in range(15, 60, 6)]


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_loses_repeats_or_turns_bytes_round(name: str) -> None:
    way, spilling, difference = PLANTED[name]
    right = _crashing(way, lambda plan: ChannelSpilling(plan.way))
    assert [run.verdict for run in right if isinstance(run.verdict, Violated)] == []
    wrong = [run.verdict for run in _crashing(way, spilling)]
    found = {verdict.difference for verdict in wrong if isinstance(verdict, Violated)}
    assert difference in found


def test_what_is_never_trimmed_piles_up() -> None:
    plan = _tree(CONTINUOUS)
    kept = judged(plan, lambda recovery: ChannelSpilling(recovery.way, trimming=_TrimsNothing()))
    assert sum(kept.outcome.most_stored.values()) == pytest.approx(kept.written, rel=0.1)
    assert sum(judged(plan).outcome.most_stored.values()) < kept.written / 4


def test_a_part_that_counts_too_early_is_too_short() -> None:
    """The error shows in the figures as well: nothing takes no time."""
    plan = _line(way=AT_ONCE, interval_us=20 * SECOND)
    right = judged(plan).complete[0].took_us or 0
    hasty = PipelineWorld(
        plan, lambda recovery: ChannelSpilling(recovery.way, completeness=_CountsWhatIsOrdered())
    ).run()
    wrong = hasty.checkpoints[0].took_us or 0
    assert wrong < SECOND // 5 < SECOND < right


# -- what cannot run -----------------------------------------------------------------------

SOURCE, SINK = Stage(name="a", rate=1), Stage(name="b", rate=1, inputs=("a",))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Pipeline(stages=(SOURCE,)), "the sink reads nothing"),
        (Pipeline(stages=(SOURCE, SOURCE, SINK)), "stage 'a' is named twice"),
        (Pipeline(stages=(SOURCE, replace(SINK, inputs=("c",)))), "there is no stage 'c'"),
        (Pipeline(stages=(SOURCE, replace(SINK, rate=0))), "the rate of 'b' is not positive"),
        (Pipeline(stages=(SINK, SOURCE)), "'b' reads 'a', which comes after it"),
        (Pipeline(stages=(SOURCE, SINK, replace(SINK, name="c"))), "stage 'a' is read twice"),
        (Pipeline(stages=(SOURCE, SINK, replace(SOURCE, name="c"))), "there is one sink, not 2"),
        (Pipeline(stages=(SOURCE, SINK), channel_bytes=1), "a channel has no room for one buffer"),
        (Pipeline(stages=(SOURCE, SINK), device=Device(kind="tape")), "store 'tape': one of files, log"),
        (Pipeline(stages=(SOURCE, SINK), crashes_us=(2, 1)), "the crashes are not in order"),
        (Pipeline(stages=(SOURCE, SINK), interval_us=0), "interval_us is not positive"),
    ],
)
def test_what_cannot_run_is_refused(plan: Pipeline, message: str) -> None:
    with pytest.raises(InvalidGraph, match=message):
        PipelineWorld(plan)
