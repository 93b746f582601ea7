"""What was in flight comes back through the stores: read by read, one at a time, and tasks are up after the last."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

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
    CopyProgress,
    Way,
)
from cutproof.reference_impl.simulated.pipelines.parts import Recovery
from cutproof.reference_impl.simulated.pipelines.plan import MB, Device, Pipeline, Stage
from cutproof.reference_impl.simulated.pipelines.spill_store import Read

SECOND = 1_000_000
CRASH = 14 * SECOND
RESTART = SECOND // 2


def _two_inputs(way: Way = AT_ONCE, *, apart: bool = False, **settings: object) -> Pipeline:
    """Two backpressured channels, whose readers share a node or have one each; the sink keeps up."""
    stages = (
        Stage(name="a", rate=100 * MB),
        Stage(name="b", rate=100 * MB),
        Stage(name="left", rate=4 * MB, inputs=("a",), node="one"),
        Stage(name="right", rate=4 * MB, inputs=("b",), node="another" if apart else "one"),
        Stage(name="sink", rate=50 * MB, inputs=("left", "right"), node="third"),
    )
    plan = Pipeline(stages=stages, way=way, channel_bytes=40 * MB, interval_us=5 * SECOND, crashes_us=(CRASH,))
    return replace(plan, restart_us=RESTART, until_us=30 * SECOND, **settings)


def _held(plan: Pipeline) -> PipelineRun:
    run = judged(plan)
    assert isinstance(run.verdict, Holds), run.verdict
    return run


def _recovery(run: PipelineRun) -> Recovery:
    (recovery,) = run.outcome.recoveries
    assert recovery.restored_us is not None
    return recovery


def _reads(run: PipelineRun) -> list[Read]:
    return [read for reads in run.outcome.reads.values() for read in reads]


def _up(plan: Pipeline) -> int:
    """µs from the crash until all tasks were up."""
    return (_recovery(_held(plan)).restored_us or 0) - CRASH


def test_all_that_the_checkpoint_had_in_flight_is_read_once_and_in_order() -> None:
    run = _held(_two_inputs())
    recovery, reads = _recovery(run), _reads(run)
    assert recovery.restores is not None
    assert (
        len(reads) * MB
        == recovery.replayed_bytes
        == run.outcome.checkpoints[recovery.restores - 1].stored_bytes
        > 60 * MB
    )
    for channel in ("a>left", "b>right"):
        numbers = [read.copy.number for read in reads if read.writer == channel]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_tasks_are_up_when_the_last_buffer_was_read_and_reading_begins_after_the_restart() -> None:
    run = _held(_two_inputs())
    recovery, reads = _recovery(run), _reads(run)
    assert max(read.done_us for read in reads) == recovery.restored_us
    assert min(read.asked_us for read in reads) == CRASH + RESTART
    assert (recovery.caught_up_us or 0) > (recovery.restored_us or 0)


def test_a_store_reads_one_thing_at_a_time_and_channels_of_a_node_take_turns() -> None:
    reads = _held(_two_inputs()).outcome.reads["one"]
    assert all(after.began_us >= before.done_us for before, after in pairwise(reads))
    assert all(before.writer != after.writer for before, after in pairwise(reads[:20]))
    assert all(read.began_us > read.asked_us for read in reads[1:20])  # behind the other channel's


def test_two_channels_on_one_store_keep_each_other_waiting() -> None:
    together, apart = _held(_two_inputs()), _held(_two_inputs(apart=True))
    assert _recovery(together).replayed_bytes == _recovery(apart).replayed_bytes
    assert (_recovery(together).restored_us or 0) > (_recovery(apart).restored_us or 0)
    assert all(read.began_us == read.asked_us for read in _reads(apart))


def test_the_slower_a_store_reads_the_later_tasks_are_up() -> None:
    up = [_up(_two_inputs(device=Device(read_rate=rate * MB))) for rate in (400, 100, 50, 25)]
    assert up == sorted(set(up))
    assert up[3] - RESTART == pytest.approx(2 * (up[2] - RESTART), rel=0.01)


def test_what_was_read_back_takes_up_its_channels_room() -> None:
    """The sink keeps up: what is in flight of a source is in its own channel, of 40 MB, or in a task's hands."""
    restored_us = _recovery(_held(_two_inputs())).restored_us or 0
    run = _held(replace(_two_inputs(), until_us=restored_us + SECOND))
    of_each = Counter(source for source, _ in run.outcome.in_flight)
    assert [40 <= of_each[source] <= 43 for source in (0, 1)] == [True, True]


def test_without_anything_in_flight_tasks_are_up_after_the_restart() -> None:
    run = _held(_two_inputs(ALIGNED))
    assert (_reads(run), _up(_two_inputs(ALIGNED))) == ([], RESTART)


def test_a_file_is_opened_again_to_be_read_and_each_file_once() -> None:
    """What was in flight came before and after a checkpoint: continuously stored, it lies in two files a channel."""
    log = _held(_two_inputs(CONTINUOUS, device=Device(flush_us=1_000)))
    files = _held(_two_inputs(CONTINUOUS, device=Device(kind="files", open_us=80_000, flush_us=1_000)))
    assert not any(map(_opens, _reads(log)))
    opened = [read.writer for read in _reads(files) if _opens(read)]
    assert [opened.count(name) for name in ("a>left", "b>right")] == [2, 2]
    assert (_recovery(files).restored_us or 0) > (_recovery(log).restored_us or 0)


def _opens(read: Read) -> bool:
    return read.done_us - read.began_us > 80_000


def test_a_crash_amid_the_reading_ends_it_and_it_begins_again() -> None:
    whole = _reads(_held(_two_inputs()))
    amid = whole[len(whole) // 2].began_us + 1
    run = _held(replace(_two_inputs(), crashes_us=(CRASH, amid)))
    first, second = run.outcome.recoveries
    assert (first.restored_us, first.restores) == (None, second.restores)
    assert 0 < first.replayed_bytes < second.replayed_bytes == len(whole) * MB
    assert [(read.writer, read.copy) for read in _reads(run)].count((whole[0].writer, whole[0].copy)) == 2
    assert all(not amid < read.done_us < amid + RESTART for read in _reads(run))


def test_what_is_not_read_back_when_a_run_ends_is_in_flight_still() -> None:
    whole = _reads(_held(_two_inputs()))
    run = _held(replace(_two_inputs(), until_us=whole[len(whole) // 2].done_us))
    assert run.outcome.recoveries[0].restored_us is None
    assert 0 < len(_reads(run)) < len(whole) == len(run.outcome.in_flight)


class _CountsWhatIsOrdered(Completeness):
    """Wrong: a checkpoint is complete before anything of it is safe."""

    def counts(self, progress: CopyProgress) -> bool:
        return True


def test_what_the_store_lost_is_reported_and_does_not_stand_in_the_way_of_trimming() -> None:
    device, crash_us = Device(flush_us=300_000), 5 * SECOND + 200_000
    plan = replace(_two_inputs(CONTINUOUS, device=device), crashes_us=(crash_us,), until_us=120 * SECOND)
    run = judged(plan, lambda recovery: ChannelSpilling(recovery.way, completeness=_CountsWhatIsOrdered()))
    assert isinstance(run.verdict, Violated)
    assert run.verdict.difference == "lost buffer"
    assert max(run.outcome.most_stored.values()) < 2 * max(_held(plan).outcome.most_stored.values())
