"""Job graphs: what is refused by name (ABS-18), the wires, key groups and their owners."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec, key_group, owner
from cutproof.reference_impl.core.vocabulary.errors import InvalidGraph
from cutproof.reference_impl.core.vocabulary.ids import Ends, ends_of, operator_of, subtask_of, task_id


def node(name: str, *senders: str, parallelism: int = 1, how: str = "hash", **more: object) -> OperatorSpec:
    inputs = tuple(EdgeSpec(sender=sender, partitioning=how) for sender in senders)
    return OperatorSpec(name=name, parallelism=parallelism, inputs=inputs, **more)


def graph(*nodes: OperatorSpec) -> JobGraph:
    return JobGraph(nodes, 16)


# -- refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "reason_text"),
    [
        ([], "the graph is empty"),
        ([node("a"), node("b", "nowhere")], "b reads 'nowhere', which is not in the graph"),
        ([node("a", "b"), node("b", "a")], "the graph has a cycle among a, b"),
        ([node("in"), node("loop", "in", "loop"), node("out", "loop")], "the graph has a cycle among loop, out"),
        ([node("a"), node("b", "a"), node("c"), node("d", "c")], "c, d: not connected with a"),
        ([node("a"), node("b")], "b: not connected with a"),
        (
            [node("a", parallelism=2), node("b", "a", parallelism=3, how="forward")],
            "the forward edge a → b joins unequal parallelisms",
        ),
    ],
)
def test_refused_by_name(nodes: list[OperatorSpec], reason_text: str) -> None:
    with pytest.raises(InvalidGraph) as refused:
        graph(*nodes)
    assert str(refused.value) == reason_text


def test_a_diamond_is_no_cycle() -> None:
    diamond = graph(node("out", "left", "right"), node("left", "in"), node("right", "in"), node("in"))
    assert [spec.name for spec in diamond.operators] == ["in", "left", "right", "out"]


def test_two_sources_are_connected_by_what_they_feed() -> None:
    assert len(graph(node("a"), node("b"), node("join", "a", "b")).operators) == 3


def test_parts_that_meet_only_at_the_end_are_connected() -> None:
    assert len(graph(node("a"), node("b"), node("c", "b"), node("d", "c"), node("e", "a", "d")).operators) == 5


# -- tasks and wires ---------------------------------------------------------------------------------------------


def test_tasks_stand_in_topological_order() -> None:
    tasks = list(graph(node("out", "in", parallelism=2), node("in")).tasks())
    assert [(task, subtask) for task, _, subtask in tasks] == [("in-0", 0), ("out-0", 0), ("out-1", 1)]


def test_forward_joins_equal_subtasks_and_the_rest_all_with_all() -> None:
    wires = graph(
        node("in", parallelism=2), node("map", "in", parallelism=2, how="forward"), node("out", "map", parallelism=2)
    ).wires()
    assert [(wire.sender, wire.receiver, wire.partitioning) for wire in wires] == [
        ("in-0", "map-0", "forward"),
        ("in-1", "map-1", "forward"),
        ("map-0", "out-0", "hash"),
        ("map-1", "out-0", "hash"),
        ("map-0", "out-1", "hash"),
        ("map-1", "out-1", "hash"),
    ]


def test_a_gate_is_the_number_of_the_input() -> None:
    wires = graph(node("left"), node("right"), node("join", "left", "right")).wires()
    assert [(wire.sender, wire.gate) for wire in wires] == [("left-0", 0), ("right-0", 1)]


def test_splits_are_distributed_round_robin() -> None:
    spec = node("in", parallelism=2, splits=(3, 4, 5), role="source")
    assert [graph(spec).splits_of(spec, subtask) for subtask in (0, 1)] == [(3, 5), (4,)]


def test_names() -> None:
    assert task_id("count", 1) == "count-1"
    ends = Ends(task_id("in", 0), task_id("count-keys", 1))
    assert ends.name == "in-0>count-keys-1"
    assert ends_of(ends.name) == ends
    assert (operator_of(ends.receiver), subtask_of(ends.receiver)) == ("count-keys", 1)
    assert graph(node("in")).spec("in").name == "in"


# -- key groups --------------------------------------------------------------------------------------------------


def test_key_groups_are_the_same_everywhere() -> None:
    """CRC-32 of the decimal text, or of "null": golden values, computed elsewhere."""
    golden = {0: 0xF4DBDF21, 1: 0x83DCEFB7, 7: 0x6ABF4A82, -1: 0x302D482A, 123456: 0x0972D361, None: 0x25CBFC4F}
    assert {key: key_group(key, 1 << 40) for key in golden} == golden
    assert {key: key_group(key, 10) for key in golden} == {key: crc % 10 for key, crc in golden.items()}


@pytest.mark.parametrize(("groups", "parallelism"), [(16, 1), (16, 2), (16, 3), (7, 5), (128, 12), (4, 4)])
def test_owners_are_contiguous_ranges_that_differ_in_size_by_one_at_most(groups: int, parallelism: int) -> None:
    owners = [owner(group, groups, parallelism) for group in range(groups)]
    assert owners == sorted(owners)
    sizes = [owners.count(subtask) for subtask in range(parallelism)]
    assert sum(sizes) == groups
    assert max(sizes) - min(sizes) <= 1


def test_every_key_has_a_group() -> None:
    assert {key_group(key, 4) for key in range(100)} == {0, 1, 2, 3}
