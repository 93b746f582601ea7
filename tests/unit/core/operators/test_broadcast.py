"""Broadcast edges, rules that every subtask keeps, and a model folded from records (OPS-1, OPS-2)."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.reference_impl.batch.execution import Batch
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.snapshots.redistribution import Redistribution, Share
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.extensions.rescaling.rescale import redistributed
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.routing import Output
from cutproof.reference_impl.core.job.split_log import SplitLog
from cutproof.reference_impl.core.job.task_spec import TaskSpec
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.operators.broadcast import Rules
from cutproof.reference_impl.core.operators.folding import Model
from cutproof.reference_impl.core.operators.operators import Map
from cutproof.reference_impl.core.vocabulary.effects import Send
from cutproof.reference_impl.core.vocabulary.formats import decode, encode
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.core.vocabulary.messages import Piece, Record
from cutproof.reference_impl.core.vocabulary.state import TaskState
from unit.core.machines import ATTEMPT, entries_of, opened, row, take, up

DATA, RULE = 0, 1
values = st.one_of(st.none(), st.integers(-9, 9))


def ruled(*rules: tuple[int | None, int | None, int]) -> Rules:
    """One that has taken these rules: (key, value, tag)."""
    operator = opened(Rules())
    for key, value, tag in rules:
        assert list(operator.apply(row(key, value, tag), RULE)) == []
    return operator


def seen(rows: list[Record]) -> list[tuple[int | None, int | None, int, int]]:
    return [(one.key, one.value, one.tag, one.tag2) for one in rows]


# -- the operators -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "changed"),
    [
        (row(1, 5, 70), (1, 15, 70, 33)),
        (row(2, 5, 71), (2, 5, 71, 0)),
        (row(None, 5, 72), (None, 4, 72, 35)),
        (row(1, None, 73), (1, None, 73, 33)),
        (row(3, 5, 74), (3, None, 74, 36)),
    ],
    ids=["changed", "no rule", "the key NULL", "no value", "a rule without a value"],
)
def test_a_row_is_changed_by_the_rule_of_its_key(
    record: Record, changed: tuple[int | None, int | None, int, int]
) -> None:
    operator = ruled((1, 10, 33), (None, -1, 35), (3, None, 36))
    assert seen(list(operator.apply(record, DATA))) == [changed]


def test_of_several_rules_the_one_of_the_greatest_tag_holds_in_whatever_order_they_came() -> None:
    rules = [(1, 10, 7), (1, 20, 9), (1, None, 9), (1, 30, 8)]
    copies = {tuple(ruled(*order).broadcast()) for order in permutations(rules)}
    assert copies == {(("rules", "[1,20,9]"),)}


def test_a_copy_goes_on_where_the_other_stood() -> None:
    operator = ruled((1, 10, 33), (None, None, 35))
    copy = ruled((4, 4, 4))
    copy.resume(decode(encode(TaskState(broadcast=operator.broadcast()))))
    assert copy.broadcast() == operator.broadcast() != []
    assert seen(list(copy.apply(row(1, 1, 2), DATA))) == [(1, 11, 2, 33)]
    copy.resume(TaskState())
    assert copy.broadcast() == []


@given(st.lists(st.tuples(st.integers(0, 2), values), max_size=20), st.integers(0, 20))
def test_a_model_moves_by_a_quarter_of_the_distance_though_it_was_restored_in_between(
    records: list[tuple[int, int | None]], at: int
) -> None:
    model, levels, out = opened(Model()), Counter[int](), []
    for number, (key, value) in enumerate(records):
        if number == at:
            entries, model = entries_of(model), opened(Model())
            model.resume(TaskState(entries=entries))
        out += seen(list(model.apply(row(key, value, number), 0)))
        if value is not None:
            levels[key] += (value - levels[key]) // 4
        assert out[-1] == (key, levels[key], number, 0)
    learnt = Counter(key for key, value in records if value is not None)
    assert sorted(entries_of(model)) == sorted(
        (0, key, levels[key], learnt[key]) for key in {key for key, _ in records}
    )


def test_a_model_never_forgets_that_records_came_in_another_order() -> None:
    forth, back = opened(Model()), opened(Model())
    for number in range(3):
        list(forth.apply(row(0, number * 8, number), 0))
        list(back.apply(row(0, 16 - number * 8, number), 0))
    assert (forth.state[0], back.state[0]) == ((5, 3), (3, 3))


# -- edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", [1, 3])
def test_a_row_goes_into_every_channel_of_a_broadcast_edge(wide: int) -> None:
    output = Output(partitioning="broadcast", channels=tuple(range(wide)))
    spec = TaskSpec(task=TaskId("op-0"), job=1, attempt=ATTEMPT, gates=(0,), outputs=(output,))
    task = TaskBuilder(Config(), Parts()).operator(spec, Map(lambda key, value: (key, value)))
    up(task)
    rows = [row(1, 5, 1), row(2, 6, 2)]
    effects = [effect for one in rows for effect in take(task, one)]
    assert effects == [Send(channel, one) for one in rows for channel in range(wide)]


def graph(wide: int) -> JobGraph:
    """data → rules ⇐ changes, and a sink."""
    into = (EdgeSpec(sender="data", partitioning="rebalance"), EdgeSpec(sender="changes", partitioning="broadcast"))
    before = (EdgeSpec(sender="rules", partitioning="forward"),)
    return JobGraph(
        (
            OperatorSpec(name="data", parallelism=1, role="source", splits=(0,)),
            OperatorSpec(name="changes", parallelism=2, role="source", splits=(1, 2)),
            OperatorSpec(name="rules", parallelism=wide, inputs=into, build=Rules),
            OperatorSpec(name="sink", parallelism=wide, inputs=before, role="sink"),
        ),
        key_groups=16,
    )


def test_a_broadcast_edge_joins_every_sender_with_every_receiver() -> None:
    copied = [(wire.sender, wire.receiver) for wire in graph(3).wires() if wire.partitioning == "broadcast"]
    assert len(copied) == 6
    assert len(set(copied)) == 6


def test_a_batch_knows_all_rules_before_the_first_row() -> None:
    logs = [
        SplitLog(split=0, records=((1, 5, 70), (2, 6, 71), (1, 7, 72))),
        SplitLog(split=1, records=((1, 10, 80),)),
        SplitLog(split=2, records=((1, 20, 79), (2, 30, 81))),
    ]
    result = Batch(graph(2), logs).run()
    assert sorted(result.rows) == [(1, 15, 70, 80), (1, 17, 72, 80), (2, 36, 71, 81)]


# -- another layout --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (7, 2), (1, 4)])
def test_each_new_subtask_takes_one_copy_whole(before: int, after: int) -> None:
    whole = ruled(*((key, key, key) for key in range(9))).broadcast()
    pieces = [(Piece(gates=(0, 1)), TaskState(broadcast=whole)) for _ in range(before)]
    shares = [Share(subtask=subtask, parallelism=after, key_groups=8, gates=(0, 1)) for subtask in range(after)]
    new = [redistributed(pieces, share, Redistribution()) for share in shares]
    assert [state.broadcast for state in new] == [whole] * after
