"""A rescaled job (OPS-2): what each new subtask takes of the state of the old ones, and how it gets it."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.snapshots.redistribution import Redistribution, Share
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.extensions.rescaling.rescale import redistributed
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.routing import Output
from cutproof.reference_impl.core.job.split_log import SplitLog
from cutproof.reference_impl.core.job.task_spec import TaskSpec
from cutproof.reference_impl.core.job.topology import EdgeSpec, EventTime, JobGraph, OperatorSpec, key_group, owner
from cutproof.reference_impl.core.operators.operators import Count
from cutproof.reference_impl.core.vocabulary.effects import Effect, Load, Open, Restored, Send
from cutproof.reference_impl.core.vocabulary.errors import InvalidGraph
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint, SnapshotLoaded
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Deploy, Piece, Watermark
from cutproof.reference_impl.core.vocabulary.state import BEGINNING, Kept, TaskState
from cutproof.reference_impl.core.vocabulary.transactions import AbortTransaction, Commit, Done, Fence
from unit.core.coordinator_rig import CoordinatorRig, savepoint, sent_to_tasks
from unit.core.machines import ATTEMPT, answered, deliver, only, requests

GROUPS = 8
SPLITS = tuple(range(5))
ONE = CheckpointId(1)

BUILD = TaskBuilder(Config(), Parts())


def share(subtask: int, of: int) -> Share:
    return Share(subtask=subtask, parallelism=of, key_groups=GROUPS, splits=SPLITS[subtask::of], gates=(0,) * of)


def named(writer: int, serial: int) -> Kept:
    return f"job-1/sink-{writer}/3-{serial}", ONE


def held_by(subtask: int, of: int, keys: list[int | None]) -> TaskState:
    """What a subtask has: its keys, a window and a timer of each, its splits, a transaction of its own."""
    mine = [key for key in keys if owner(key_group(key, GROUPS), GROUPS, of) == subtask]
    return TaskState(
        positions={split: 10 + split for split in SPLITS[subtask::of]},
        maxima={split: 20 + split for split in SPLITS[subtask::of]},
        entries=[(0, key, 7, 0) for key in mine],
        panes=[(30, 40 + (key or 0)) for key in mine],
        timers=[(29, key, 0) for key in mine],
        transactions=[named(subtask, 1)],
        watermark=50 + subtask,
        times=[50 + subtask] * of,
        idle=[split for split in SPLITS[subtask::of] if split % 2],
    )


@given(st.integers(1, GROUPS), st.integers(1, GROUPS), st.lists(st.none() | st.integers(-99, 99), unique=True))
def test_nothing_is_lost_and_nothing_is_there_twice(before: int, after: int, keys: list[int | None]) -> None:
    old = [held_by(subtask, before, keys) for subtask in range(before)]
    pieces = [(Piece(gates=(0,) * before), state) for state in old]
    new = [redistributed(pieces, share(subtask, after), Redistribution()) for subtask in range(after)]

    def every(states: list[TaskState], field: str) -> Counter[object]:
        return Counter(item for state in states for item in getattr(state, field))

    for field in ("entries", "timers", "transactions", "panes"):
        assert every(new, field) == every(old, field)
    for subtask, state in enumerate(new):
        assert {owner(key_group(key, GROUPS), GROUPS, after) for _, key, _, _ in state.entries} <= {subtask}
        assert state.panes == [(30, 40 + (key or 0)) for _, key, _, _ in state.entries]
        assert state.positions == {split: 10 + split for split in SPLITS[subtask::after]}
        assert state.maxima == {split: 20 + split for split in SPLITS[subtask::after]}
        assert sorted(state.idle) == [split for split in SPLITS[subtask::after] if split % 2]
        assert (state.watermark, state.times) == (50, [50] * after), "the least that anybody had"


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_by_way_of_another_width_it_comes_to_the_same(before: int, between: int, after: int) -> None:
    def laid_out(states: list[TaskState], wide: int) -> list[TaskState]:
        pieces = [(Piece(gates=(0,) * len(states)), state) for state in states]
        return [redistributed(pieces, share(subtask, wide), Redistribution()) for subtask in range(wide)]

    old = [held_by(subtask, before, list(range(12))) for subtask in range(before)]
    direct, around = laid_out(old, after), laid_out(laid_out(old, between), after)
    assert [sorted(one.entries) for one in direct] == [sorted(one.entries) for one in around]
    assert [Counter(one.transactions) for one in direct] == [Counter(one.transactions) for one in around]
    assert [one.positions for one in direct] == [one.positions for one in around]


def test_a_channel_begins_with_the_least_of_its_own_input() -> None:
    """Two inputs: what one has heard says nothing of the other."""
    pieces = [
        (Piece(gates=(0, 0, 1)), TaskState(times=[5, 6, 90], watermark=5)),
        (Piece(gates=(0, 0, 1)), TaskState(times=[7, 8, 80], watermark=7)),
    ]
    settings = Share(subtask=0, parallelism=3, key_groups=GROUPS, gates=(0, 1, 1))
    state = redistributed(pieces, settings, Redistribution())
    assert (state.times, state.watermark) == ([5, 80, 80], 5)


def test_where_no_time_was_known_none_is() -> None:
    state = redistributed([(Piece(gates=(0,)), TaskState())], share(0, 2), Redistribution())
    assert (state.times, state.watermark) == ([], BEGINNING)


# -- the task ------------------------------------------------------------------------------------------------------


def spec(task: str, subtask: int, of: int, **more: object) -> TaskSpec:
    settings = {"outputs": (Output(partitioning="forward", channels=(0,)),), **more}
    return TaskSpec(
        task=TaskId(task),
        job=1,
        attempt=ATTEMPT,
        key_groups=GROUPS,
        subtask=subtask,
        parallelism=of,
        **settings,  # type: ignore[arg-type]
    )


def rescaled(*pieces: Piece) -> Deploy:
    return Deploy(job=1, attempt=ATTEMPT, checkpoint=ONE, pieces=pieces)


def test_a_task_reads_one_piece_after_the_other_and_opens_with_its_share() -> None:
    task = BUILD.operator(spec("op-0", 0, 1, gates=(0,)), Count(tagged=False))
    first, second = (Piece(handle=Handle(name), gates=(0,)) for name in ("a", "b"))
    assert deliver(task, rescaled(first, second)) == [Load(Handle("a"))]
    assert task.step(SnapshotLoaded(TaskState(entries=[(0, 1, 3, 0)]))) == [Load(Handle("b"))]
    effects = task.step(SnapshotLoaded(TaskState(entries=[(0, 2, 5, 0)])))
    assert sorted(only(Restored, effects).state.entries) == [(0, 1, 3, 0), (0, 2, 5, 0)]
    assert only(Open, effects)


def test_states_from_the_coordinators_memory_need_no_reading() -> None:
    task = BUILD.operator(spec("op-0", 0, 1, gates=(0,)), Count(tagged=False))
    effects = deliver(task, rescaled(*(Piece(state=TaskState(entries=[(0, key, 1, 0)]), gates=(0,)) for key in (1, 2))))
    assert sorted(only(Restored, effects).state.entries) == [(0, 1, 1, 0), (0, 2, 1, 0)]


def test_a_source_reads_on_where_whoever_had_the_split_stopped_and_reports_its_watermark() -> None:
    logs = [SplitLog(split=split, records=[(1, 1, n) for n in range(9)], times=range(9)) for split in (0, 1)]
    source = BUILD.source(spec("source-0", 0, 1, splits=(0, 1)), logs, event_time=EventTime())
    effects = deliver(
        source,
        rescaled(
            Piece(state=TaskState(positions={0: 4}, maxima={0: 3}, watermark=2)),
            Piece(state=TaskState(positions={1: 6}, maxima={1: 5}, watermark=4)),
        ),
    )
    assert source.positions == {0: 4, 1: 6}
    assert [effect for effect in effects if isinstance(effect, Send)] == [], "2 is what was known before"
    effects = deliver(
        BUILD.source(spec("source-1", 1, 2, splits=(1,)), logs[1:], event_time=EventTime()),
        rescaled(Piece(state=TaskState(positions={0: 4, 1: 6}, maxima={0: 3, 1: 5}, watermark=2))),
    )
    assert [effect.element for effect in effects if isinstance(effect, Send)] == [Watermark(4)]


def test_a_sink_answers_for_writers_that_are_no_more() -> None:
    """It shuts them out, commits what the snapshot holds of them and aborts what else they left."""
    sink = BUILD.transactional_sink(spec("sink-0", 0, 2, gates=(0,), outputs=()))
    pieces = [Piece(state=TaskState(transactions=[named(writer, 1)]), gates=(0,)) for writer in range(3)]
    asked = requests(deliver(sink, rescaled(*pieces)))
    assert [(type(one), one.writer) for _, one in asked] == [(Fence, "sink-0"), (Fence, "sink-2")]
    assert answered(sink, asked[0][0], Done(unfinished=(named(0, 1),))) == [], "the other is awaited"
    left = named(2, 1), (named(2, 9)[0], None)
    effects = [one for _, one in requests(answered(sink, asked[1][0], Done(unfinished=left)))]
    assert effects == [
        Commit(writer=TaskId("sink-0"), attempt=ATTEMPT, name=named(0, 1)[0]),
        Commit(writer=TaskId("sink-2"), attempt=ATTEMPT, name=named(2, 1)[0]),
        AbortTransaction(writer=TaskId("sink-2"), attempt=ATTEMPT, name=named(2, 9)[0]),
    ]


# -- the coordinator -----------------------------------------------------------------------------------------------


def graph(wide: int, partitioning: str = "hash") -> JobGraph:
    return JobGraph(
        (
            OperatorSpec(name="source", parallelism=1, splits=(0, 1), role="source"),
            OperatorSpec(name="op", parallelism=wide, inputs=(EdgeSpec(sender="source", partitioning=partitioning),)),
            OperatorSpec(name="sink", parallelism=1, inputs=(EdgeSpec(sender="op", partitioning="hash"),), role="sink"),
        ),
        GROUPS,
    )


def resumed(new: JobGraph, initial: CompletedCheckpoint) -> list[Effect]:
    """What a coordinator says that begins with a snapshot of another layout, once its first record is durable."""
    job = CoordinatorRig(job=2, graph=new, coordinator={"initial": (initial,)})
    return [*job.start(), *job.saved()]


def test_each_subtask_is_notified_of_all_that_its_operator_left_the_finished_included() -> None:
    orders = dict(sent_to_tasks(Deploy, resumed(graph(3), savepoint(graph(2), "op-1", stateless=()))))
    pieces = tuple(Piece(handle=Handle(f"of op-{n}"), gates=(0,), finished=n == 1) for n in range(2))
    assert {task: order.pieces for task, order in orders.items() if task.startswith("op")} == {
        f"op-{subtask}": pieces for subtask in range(3)
    }
    assert not any(order.finished for order in orders.values())


def test_an_operator_that_had_finished_stays_so_however_wide() -> None:
    orders = dict(sent_to_tasks(Deploy, resumed(graph(3), savepoint(graph(2), "source-0"))))
    assert [task for task, order in orders.items() if order.finished] == ["source-0"]
    assert orders[TaskId("source-0")].pieces == ()


def test_a_job_that_had_more_subtasks_than_key_groups_is_resumed_with_fewer() -> None:
    orders = dict(sent_to_tasks(Deploy, resumed(graph(1), savepoint(graph(GROUPS + 1)))))
    assert len(orders[TaskId("op-0")].pieces) == GROUPS + 1


def test_a_snapshot_without_the_state_of_an_old_subtask_is_refused() -> None:
    whole = savepoint(graph(2))
    handles = {task: handle for task, handle in whole.handles.items() if task != "op-1"}
    job = CoordinatorRig(
        job=2, graph=graph(1), coordinator={"initial": (msgspec.structs.replace(whole, handles=handles),)}
    )
    job.start()
    assert job.closed_for == "checkpoint 5 holds no state of op-1"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"op": 0}, "op cannot have a parallelism of 0; it can be 1 to 8"),
        ({"op": 9}, "op cannot have a parallelism of 9; it can be 1 to 8"),
        ({"other": 2}, "'other' is no operator of the job"),
        ({"op": 2}, "the forward edge source → op joins unequal parallelisms"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(asked: dict[str, int], reason: str) -> None:
    with pytest.raises(InvalidGraph) as refused:
        graph(1, "forward").rescaled(asked)
    assert str(refused.value) == reason
