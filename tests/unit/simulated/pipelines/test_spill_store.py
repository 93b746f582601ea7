"""A node's store by itself: what is durable when, what a crash leaves, how much room is taken."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cutproof.harness.reference_engine.pipelines.run import judged
from cutproof.reference_impl.core.extensions.in_flight_data.spilling import Copy
from cutproof.reference_impl.simulated.loop import Loop
from cutproof.reference_impl.simulated.pipelines.plan import DEVICES, MB, Device, Pipeline, Stage
from cutproof.reference_impl.simulated.pipelines.spill_store import Pace, Series, SpillStore

SECOND = 1_000_000
A, B = Copy(0, 0), Copy(0, 1)


def _store(kind: str = "log", open_us: int = 0) -> tuple[Loop, SpillStore, list[Copy | None]]:
    loop = Loop()
    return loop, SpillStore(loop, Device(kind=kind, rate=MB, open_us=open_us, flush_us=1_000), SECOND), []


@pytest.mark.parametrize("kind", DEVICES)
def test_a_flush_makes_durable_what_came_before_it_and_a_crash_takes_the_rest(kind: str) -> None:
    loop, store, durable = _store(kind)
    store.write("it", A, (0, 0), MB, durable.append)
    store.flush("it", durable.extend)
    store.write("it", B, (0, 1), MB, durable.append)
    loop.run(SECOND + 1_000)
    assert durable == [A, A]  # written, then flushed
    loop.run(2 * SECOND + 1_000)
    assert durable == [A, A, B]
    store.crash()
    assert (store.kept("it", A), store.kept("it", B)) == ((0, 0), None)
    assert store.live == MB
    store.drop("it", (A,))
    assert (store.kept("it", A), store.live, store.most) == (None, 0, 2 * MB)


def test_a_read_waits_for_what_was_asked_before_it_and_for_its_file() -> None:
    """The write takes a second, the flush 1 ms; at 100 MB/s a read takes 10 ms, its file 300 to open."""
    for kind, opening in (("log", 0), ("files", 300_000)):
        loop, store, _ = _store(kind, open_us=300_000)
        store.write("it", A, (0, 0), MB, lambda _: None)
        store.flush("it", lambda _: None)
        came: list[object] = []
        for copy in (A, A, B):
            store.read("it", copy, MB, came.append)
        loop.run(5 * SECOND)
        assert came == [(0, 0), (0, 0), None]
        began = SECOND + opening + 1_000
        assert [(read.asked_us, read.began_us) for read in store.reads] == [(0, began), (0, began + opening + 10_000)]
        assert store.reads[1].done_us - store.reads[1].began_us == 10_000  # open already


def test_after_a_crash_a_file_is_opened_again() -> None:
    loop, store, durable = _store("files", open_us=300_000)
    store.write("it", A, (0, 0), MB, durable.append)
    store.flush("it", durable.extend)
    for _ in range(2):
        store.read("it", A, MB, lambda _: None)
        loop.run(loop.now + 5 * SECOND)
        store.crash()
    assert [read.done_us - read.began_us for read in store.reads] == [310_000, 310_000]


def test_what_is_being_written_at_a_crash_is_not_reported_later() -> None:
    loop, store, durable = _store()
    store.write("it", A, (0, 0), MB, durable.append)
    loop.run(SECOND // 2)
    store.crash()
    store.write("it", B, (0, 1), MB, durable.append)
    loop.run(5 * SECOND)
    assert durable == [B]
    assert store.written == MB


def test_a_file_takes_room_until_all_in_it_is_dropped() -> None:
    loop, store, durable = _store("files")
    for copy in (A, B):
        store.write("it", copy, (0, copy.number), MB, durable.append)
    store.flush("it", durable.extend)
    loop.run(5 * SECOND)
    store.drop("it", (A,))
    assert store.live == 2 * MB
    store.drop("it", (B,))
    assert store.live == 0


def test_a_pace_loses_nothing() -> None:
    pace = Pace(3)
    assert [pace.takes_us(1) for _ in range(4)] == [333_333, 333_333, 333_334, 333_333]


def test_a_series_adds_up_by_slice() -> None:
    series = Series(10)
    for at_us, size in ((0, 1), (9, 2), (10, 4), (35, 8)):
        series.add(at_us, size)
    assert series.bytes == [3, 4, 0, 8]


PLAN = Pipeline(
    stages=(Stage(name="source", rate=4 * MB), Stage(name="sink", rate=8 * MB, inputs=("source",))),
    device=Device(rate=10 * MB, flush_us=1_000),
    interval_us=4 * SECOND,
    restart_us=SECOND,
    until_us=30 * SECOND,
)


def test_after_a_crash_checkpoints_begin_again_and_the_old_ticks_are_over() -> None:
    run = judged(replace(PLAN, crashes_us=(5 * SECOND,)))
    assert [one.begun_us // SECOND for one in run.outcome.checkpoints] == [4, 10, 14, 18, 22, 26, 30]


def test_a_tasks_state_is_written_before_its_part_is_there() -> None:
    source, sink = PLAN.stages
    stateful = replace(PLAN, stages=(source, replace(sink, state_bytes=5 * MB)))
    took = [judged(plan).complete[0].took_us or 0 for plan in (PLAN, stateful)]
    assert took[1] - took[0] == SECOND // 2 + 1_000


def test_a_source_that_overtakes_nothing_sends_its_barrier_after_the_synchronous_part() -> None:
    source, sink = PLAN.stages
    slow = replace(PLAN, stages=(replace(source, sync_us=70_000), sink))
    marks = [mark for mark in judged(slow).outcome.marks if mark.checkpoint == 1 and mark.task == "source"]
    assert [mark.forwarded_us == mark.sync_ended_us for mark in marks] == [True]
