"""Sources: positions and barriers in one step (ABS-1), ends of input, restoring, at-most-once."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.reference_impl.core.protocol.source import SourceTask
from cutproof.reference_impl.core.vocabulary.effects import (
    Load,
    LoadPositions,
    Persist,
    Rest,
    Restored,
    SavePosition,
    Send,
    SetTimer,
    Ship,
    SnapshotTaken,
)
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.events import LoadFailed, Poll, PositionsLoaded, SnapshotLoaded, TimerFired
from cutproof.reference_impl.core.vocabulary.formats import Format
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, Handle
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.timeouts import IdleTimeout, RetryEndReport
from unit.core.machines import (
    END,
    ENDED,
    abort,
    ack,
    barrier,
    cancelled,
    complete,
    deliver,
    deploy,
    ended,
    finished,
    handle,
    only,
    output,
    row,
    running,
    sent,
    source,
    take,
    terminate,
    trigger,
    up,
)


def read(task: SourceTask, times: int = 1) -> list[tuple[int, int]]:
    """Poll so often; (split, offset) of what was read, which every record's tag tells."""
    records = [element for _ in range(times) for _, element in sent(task.step(Poll()))]
    return [divmod(record.tag, 100) for record in records]


def position(task: SourceTask, checkpoint: int) -> dict[int, int]:
    """The positions in the snapshot of a checkpoint that is triggered now."""
    return only(Persist, deliver(task, trigger(checkpoint))).snapshot.materialise().positions


# -- reading ---------------------------------------------------------------------------------------------------


def test_nothing_is_read_before_it_runs() -> None:
    assert source(2).step(Poll()) == []


def test_a_record_goes_out_with_its_origin() -> None:
    task = up(source(1, 2))
    assert task.step(Poll()) == [Send(0, row(0, 0, tag=0, origin=0))]
    assert task.step(Poll()) == [Send(0, row(0, 10, tag=100, origin=1 << 40))]
    assert task.step(Poll()) == [Send(0, row(1, 11, tag=101, origin=1 << 40 | 1 << 8))]


def test_splits_are_read_round_robin() -> None:
    assert read(up(source(2, 3, 0)), 5) == [(0, 0), (1, 0), (0, 1), (1, 1), (1, 2)]


def test_a_bounded_input_ends_once_and_reports_it_until_it_is_answered() -> None:
    task = up(source(1))
    read(task)
    assert task.step(Poll()) == [Send(0, END), ended("source-0"), SetTimer(RetryEndReport(), 12_000), Rest()]
    assert task.step(Poll()) == [Rest()]
    assert task.step(TimerFired(RetryEndReport())) == [ended("source-0"), SetTimer(RetryEndReport(), 12_000)]
    assert task.step(TimerFired(IdleTimeout())) == []
    assert deliver(task, terminate(4)) == [Send(0, ENDED), *finished("source-0")]
    assert deliver(task, terminate(4)) == finished("source-0")
    assert task.step(TimerFired(RetryEndReport())) == []


def test_an_unbounded_input_rests() -> None:
    task = up(source(1, bounded=False))
    read(task)
    assert task.step(Poll()) == [Rest()]
    assert not task.input_ended


def test_a_source_without_splits_ends_at_once() -> None:
    assert sent(up(source()).step(Poll())) == [(0, END)]


# -- checkpoints -----------------------------------------------------------------------------------------------


def test_position_and_barrier_are_one_step() -> None:
    """The position is the next offset to read: offset 1 is read, so the snapshot holds 2."""
    task = up(source(5, outputs=(output("rebalance", 0, 1),)))
    read(task, 2)
    taken, persist, *barriers = deliver(task, trigger(1))
    assert taken == SnapshotTaken(1)
    assert isinstance(persist, Persist)
    assert persist.snapshot.materialise() == TaskState(positions={0: 2}, rotations=[0])
    assert (persist.checkpoint, persist.handle, persist.synchronous) == (1, handle("source-0", 1), False)
    assert persist.then == (ack("source-0", 1),)
    assert barriers == [Send(0, barrier(1)), Send(1, barrier(1))]
    assert read(task) == [(0, 2)], "the first record behind the barrier is the one at the position"


def test_the_snapshot_is_of_the_moment_of_the_barrier() -> None:
    task = up(source(5, 5))
    read(task, 3)
    snapshot = only(Persist, deliver(task, trigger(1))).snapshot
    read(task, 4)
    assert snapshot.materialise() == TaskState(positions={0: 2, 1: 1}, turn=1, rotations=[0])


def test_synchronous_snapshots_and_those_in_memory() -> None:
    assert only(Persist, deliver(up(source(1, synchronous=True)), trigger(1))).synchronous
    ship = only(Ship, deliver(up(source(1, snapshots_in_memory=True, synchronous=True)), trigger(1)))
    assert (ship.ack, ship.synchronous) == (ack("source-0", 1).message, True)
    assert ship.snapshot.materialise().positions == {0: 0}


@pytest.mark.parametrize("late", [1, 2])
def test_a_trigger_that_comes_twice_or_late_changes_nothing(late: int) -> None:
    task = up(source(3))
    deliver(task, trigger(2))
    assert deliver(task, trigger(late)) == []
    assert position(task, 3) == {0: 0}


def test_no_checkpoint_before_it_runs() -> None:
    task = source(3)
    assert deliver(task, trigger(1)) == []
    assert position(up(task), 1) == {0: 0}, "nothing was noted of the early trigger"


def test_an_abort_before_the_trigger_is_answered_with_a_cancel_barrier() -> None:
    task = up(source(3))
    assert deliver(task, abort(1)) == []
    assert deliver(task, abort(1)) == []
    assert deliver(task, trigger(1)) == [Send(0, cancelled(1))]
    assert deliver(task, trigger(1)) == []
    assert position(task, 2) == {0: 0}


def test_an_abort_of_another_checkpoint_is_no_obstacle() -> None:
    task = up(source(3))
    deliver(task, abort(2))
    assert sent(deliver(task, trigger(1))) == [(0, barrier(1))]
    assert deliver(task, trigger(2)) == [Send(0, cancelled(2))]
    assert deliver(task, abort(2)) == []
    assert sent(deliver(task, trigger(3))) == [(0, barrier(3))]


def test_the_format_of_an_aborted_checkpoint_is_forgotten() -> None:
    task, first = up(source(3)), CheckpointId(1)
    native = Format("native")
    deliver(task, msgspec.structs.replace(trigger(1), format=native))
    assert task.formats.format_of(first) == native
    deliver(task, abort(1))
    assert task.formats.format_of(first) is None


def test_news_of_a_complete_checkpoint_mean_nothing_to_a_source() -> None:
    task = up(source(3))
    deliver(task, trigger(1))
    assert deliver(task, complete(1)) == []


# -- stopping --------------------------------------------------------------------------------------------------


def test_stop_reads_no_further_and_ends_nothing() -> None:
    task = up(source(5))
    read(task, 2)
    assert sent(deliver(task, trigger(1, JobEnd.STOP))) == [(0, barrier(1))]
    assert task.step(Poll()) == []
    assert not task.input_ended
    assert deliver(task, terminate(1)) == finished("source-0")


def test_drain_ends_the_input_before_the_barrier() -> None:
    task = up(source(5))
    read(task, 2)
    effects = deliver(task, trigger(1, JobEnd.DRAIN))
    assert sent(effects) == [(0, END), (0, barrier(1))]
    assert effects[1:3] == [ended("source-0"), SetTimer(RetryEndReport(), 12_000)]
    assert only(Persist, effects).snapshot.materialise().positions == {0: 2}
    assert task.step(Poll()) == []


def test_drain_does_not_end_an_input_twice() -> None:
    task = up(source(0))
    task.step(Poll())
    assert sent(deliver(task, trigger(1, JobEnd.DRAIN))) == [(0, barrier(1))]


def test_an_ordinary_checkpoint_stops_nothing() -> None:
    task = up(source(5))
    deliver(task, trigger(1))
    assert read(task, 2) == [(0, 0), (0, 1)]


# -- coming up -------------------------------------------------------------------------------------------------


def test_a_first_attempt_starts_from_nothing() -> None:
    task = source(2)
    assert deliver(task, deploy()) == running("source-0")
    assert deliver(task, deploy()) == [], "deployed twice"


def test_a_snapshot_is_loaded_and_read_on_from() -> None:
    task = source(5, 5)
    state = TaskState(positions={0: 2, 1: 4}, turn=1, rotations=[0])
    assert deliver(task, deploy(checkpoint=7, handle=Handle("job-1/chk-7/x"))) == [Load(Handle("job-1/chk-7/x"))]
    assert task.step(Poll()) == [], "no input before the state is there"
    restored, *rest = task.step(SnapshotLoaded(state))
    assert restored == Restored(7, state)
    assert rest == running("source-0")
    assert read(task, 3) == [(1, 4), (0, 2), (0, 3)]


def test_a_snapshot_that_cannot_be_read_fails_the_task() -> None:
    task = source(5)
    deliver(task, deploy(checkpoint=7, handle=Handle("gone")))
    (fail,) = task.step(LoadFailed("gone is not in the store"))
    assert str(fail.cause) == "the snapshot of checkpoint 7 could not be read: gone is not in the store"


def test_a_state_in_memory_comes_with_the_deployment() -> None:
    task = source(5)
    state = TaskState(positions={0: 3}, rotations=[0])
    assert deliver(task, deploy(checkpoint=2, state=state)) == [Restored(2, state), *running("source-0")]
    assert read(task) == [(0, 3)]


def test_a_split_that_the_snapshot_does_not_know_is_read_from_its_start() -> None:
    assert read(up(source(2, 2), TaskState(positions={0: 1}, rotations=[0]), 1), 3) == [(0, 1), (1, 0), (1, 1)]


def test_a_position_beyond_the_splits_wraps() -> None:
    assert read(up(source(2, 2), TaskState(positions={}, turn=3, rotations=[0]), 1)) == [(1, 0)]


def test_a_suspended_source_reads_nothing() -> None:
    task = source(5)
    deliver(task, deploy(suspended=True))
    assert task.step(Poll()) == []
    assert task.has_started


# -- at-most-once ----------------------------------------------------------------------------------------------


def test_at_most_once_saves_the_position_before_it_sends() -> None:
    task = source(2, 2, guarantee="at-most-once", sink="plain")
    assert deliver(task, deploy()) == [LoadPositions((0, 1))]
    assert task.step(Poll()) == []
    assert task.step(PositionsLoaded({0: 1})) == running("source-0")
    assert task.step(Poll()) == [SavePosition(0, 2, (Send(0, row(1, 1, tag=1, origin=1 << 8)),))]
    assert task.step(Poll()) == [SavePosition(1, 1, (Send(0, row(0, 10, tag=100, origin=1 << 40)),))]


def test_at_least_once_saves_nothing_on_the_way() -> None:
    assert read(up(source(1, guarantee="at-least-once"))) == [(0, 0)]


# -- what a source is not --------------------------------------------------------------------------------------


def test_a_source_has_no_inputs() -> None:
    with pytest.raises(ProtocolViolated, match="no handler for Arrived"):
        take(up(source(1)), row(1, 1))
