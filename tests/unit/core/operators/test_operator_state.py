"""Lists and unions (OPS-2): what an operator holds of no key, how it is redistributed, and who keeps what of it."""

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
from cutproof.reference_impl.core.job.key_groups import Place
from cutproof.reference_impl.core.job.routing import Output
from cutproof.reference_impl.core.job.task_spec import TaskSpec
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.operators.holding import Batch, Tally
from cutproof.reference_impl.core.operators.operator_state import texts
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import Effect, Load, Restored, Send
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint, SnapshotLoaded
from cutproof.reference_impl.core.vocabulary.formats import decode, encode
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Barrier, Deploy, EndOfData, Piece, Record
from cutproof.reference_impl.core.vocabulary.state import Item, TaskState
from unit.core.coordinator_rig import CoordinatorRig, savepoint, sent_to_tasks
from unit.core.machines import ATTEMPT, deliver, only, opened, operator, row, take, up, work

WIDTHS = [(2, 3), (3, 2), (7, 2), (2, 7), (1, 4)]
ONE = CheckpointId(1)


def items(*values: int) -> list[Item]:
    return texts("rows", ([value] for value in values))


def shares(states: list[TaskState], wide: int) -> list[TaskState]:
    pieces = [(Piece(gates=(0,)), state) for state in states]
    shares = [Share(subtask=subtask, parallelism=wide, key_groups=8, gates=(0,)) for subtask in range(wide)]
    return [redistributed(pieces, share, Redistribution()) for share in shares]


# -- dealing -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 7), st.integers(1, 7), st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=7))
def test_items_of_lists_have_one_new_owner_each_and_unions_are_whole_everywhere(
    before: int, after: int, values: list[list[int]]
) -> None:
    """Equal items are told apart by nothing: as often as they were there they are there again."""
    old = [TaskState(listed=items(*values[n]), shared=items(*values[n])) for n in range(before)]
    every = Counter(item for state in old for item in state.listed)
    new = shares(old, after)
    assert Counter(item for state in new for item in state.listed) == every
    assert [Counter(state.shared) for state in new] == [every] * after
    if before == after:
        assert [state.listed for state in new] == [state.listed for state in old], "nothing had to move"
    else:
        sizes = [len(state.listed) for state in new]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("before", "after"), WIDTHS)
def test_there_and_back_again(before: int, after: int) -> None:
    old = [TaskState(listed=items(*range(n, 20, before))) for n in range(before)]
    back = shares(shares(old, after), before)
    assert sorted(item for state in back for item in state.listed) == sorted(items(*range(20)))


def test_a_list_and_a_union_are_in_the_bytes_of_a_snapshot() -> None:
    state = TaskState(listed=items(1), shared=items(2, 3))
    assert decode(encode(state)) == state


# -- the operators -------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 5), st.integers(0, 20))
def test_a_batch_lets_out_so_many_at_a_time_and_the_rest_at_the_end(values: list[int], size: int, at: int) -> None:
    """Whether it was restored in between makes no difference."""
    batch, out = Batch(size), list[Record]()
    for number, value in enumerate(values):
        if number == at:
            held, batch = batch.listed(), Batch(size)
            batch.resume(TaskState(listed=held))
        came = list(batch.apply(row(value, number, origin=number), 0))
        assert len(came) in (0, size)
        out += came
    assert len(out) == len(values) // size * size
    restored, arrived = batch.waiting()
    last = [*restored, *arrived]
    assert at < len(values) or not restored
    assert [*out, *last] == [row(value, number, origin=number) for number, value in enumerate(values)]
    batch.release(len(last))
    assert (batch.listed(), batch.waiting()) == ([], ([], []))


def test_more_than_fit_wait_for_the_next_row() -> None:
    batch = Batch(2)
    batch.resume(TaskState(listed=texts("rows", ([n, 0, 0, 0, 0, 0] for n in range(5)))))
    assert [one.key for one in batch.apply(row(9, 0), 0)] == [0, 1, 2, 3, 4, 9]


def test_a_tally_counts_and_keeps_the_counts_of_its_own_keys() -> None:
    whole = [item for subtask in range(3) for item in tallied(Place(subtask, 3, 8), range(12)).shared()]
    assert Counter(whole) == Counter(texts("counts", ([key, 1] for key in range(12))))
    for wide in (2, 5):
        new = [tallied(Place(subtask, wide, 8), (), whole) for subtask in range(wide)]
        kept = [item for tally in new for item in tally.shared()]
        assert Counter(kept) == Counter(whole), "each item is somebody's, and nobody else's"
        (again,) = next(one for one in new if one.place.owns(7)).apply(row(7, 0), 0)
        assert again.value == 2


def tallied(place: Place, keys: range | tuple[()], union: list[Item] | None = None) -> Tally:
    """One that has taken a record of each of its keys, or gone on from a union."""
    tally = opened(Tally())
    tally.place = place
    tally.resume(TaskState(shared=[item for item in union or () if tally.keeps(item)]))
    for key in keys:
        if place.owns(key):
            list(tally.apply(row(key, 0), 0))
    return tally


# -- the task ------------------------------------------------------------------------------------------------------


def test_what_waits_goes_out_before_the_end_of_the_data_and_stays_at_a_barrier() -> None:
    task = up(operator(Batch(3)))
    assert take(task, row(1, 5)) == []
    effects = take(task, Barrier(ONE))
    assert [effect.element for effect in effects if isinstance(effect, Send)] == [Barrier(ONE)]
    ended = [effect.element for effect in take(task, EndOfData()) if isinstance(effect, Send)]
    assert ended == [row(1, 5), EndOfData()]


def tally_task(subtask: int, of: int) -> InputTask:
    outputs = (Output(partitioning="forward", channels=(0,)),)
    settings = {"gates": (0,), "outputs": outputs, "key_groups": 8, "subtask": subtask, "parallelism": of}
    spec = TaskSpec(task=TaskId(f"op-{subtask}"), job=1, attempt=ATTEMPT, **settings)  # type: ignore[arg-type]
    return TaskBuilder(Config(), Parts()).operator(spec, Tally())


def counts(*keys: int) -> TaskState:
    return TaskState(shared=texts("counts", ([key, 1] for key in keys)), rotations=[0], watermark=keys[0])


def test_in_the_old_layout_a_task_reads_all_and_has_its_own_state_again() -> None:
    """Of what others left it takes the union, and nothing else."""
    task = tally_task(1, 2)
    mine = [key for key in range(12) if work(task).operator.place.owns(key)]
    others = [key for key in range(12) if key not in mine]
    pieces = tuple(Piece(handle=Handle(name), gates=(0,)) for name in "ab")
    order = Deploy(job=1, attempt=ATTEMPT, checkpoint=ONE, handle=Handle("b"), pieces=pieces)
    assert deliver(task, order) == [Load(Handle("a"))]
    assert task.step(SnapshotLoaded(counts(*others[1:], mine[0]))) == [Load(Handle("b"))]
    loaded = only(Restored, task.step(SnapshotLoaded(counts(*mine[1:], others[0])))).state
    assert Counter(loaded.shared) == Counter(counts(*mine).shared), "whoever had reported it"
    assert loaded.watermark in (mine[1], TaskState().watermark)


# -- the coordinator -----------------------------------------------------------------------------------------------


def graph(wide: int, shares: bool = True) -> JobGraph:
    def hashed(sender: str) -> tuple[EdgeSpec, ...]:
        return (EdgeSpec(sender=sender, partitioning="hash"),)

    return JobGraph(
        (
            OperatorSpec(name="source", parallelism=1, splits=(0,), role="source"),
            OperatorSpec(name="op", parallelism=wide, inputs=hashed("source"), shares=shares),
            OperatorSpec(name="sink", parallelism=1, inputs=hashed("op"), role="sink"),
        ),
        8,
    )


def snapshot(of: JobGraph, *without: str) -> CompletedCheckpoint:
    """One in which op-1 had finished; its last state is still there, unless it is told otherwise."""
    return msgspec.structs.replace(savepoint(of, "op-1", stateless=without), savepoint=False, ending=None)


def orders(of: JobGraph, initial: CompletedCheckpoint) -> dict[str, Deploy]:
    job = CoordinatorRig(job=2, graph=of, coordinator={"initial": (initial,)})
    effects: list[Effect] = [*job.start(), *job.saved()]
    return {task: order for task, order in sent_to_tasks(Deploy, effects) if task.startswith("op")}


def test_who_holds_a_union_is_notified_of_what_all_held_the_finished_included() -> None:
    pieces = tuple(Piece(handle=Handle(f"of op-{n}"), gates=(0,), finished=n == 1) for n in range(2))
    found = orders(graph(2), snapshot(graph(2)))
    assert {task: (order.handle, order.pieces) for task, order in found.items()} == {
        f"op-{n}": (Handle(f"of op-{n}"), pieces) for n in range(2)
    }
    assert {order.pieces for order in orders(graph(2, shares=False), snapshot(graph(2, shares=False))).values()} == {()}


@pytest.mark.parametrize("wide", [1, 2, 3])
def test_a_union_of_which_a_finished_subtasks_part_is_missing_is_refused(wide: int) -> None:
    """J06: nobody begins with half a union, in the old layout or another."""
    job = CoordinatorRig(job=2, graph=graph(wide), coordinator={"initial": (snapshot(graph(2), "op-1"),)})
    job.start()
    assert job.closed_for == "checkpoint 5 holds no state of op-1"


def test_the_states_in_the_coordinators_memory_are_reported_as_they_are() -> None:
    whole = snapshot(graph(2))
    states = {TaskId(f"op-{n}"): counts(n) for n in range(2)}
    found = orders(graph(2), msgspec.structs.replace(whole, states=states))
    assert [piece.state for piece in found["op-0"].pieces] == [counts(0), counts(1)]
    assert found["op-1"].state == counts(1)
