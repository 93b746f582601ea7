"""Event time as the data fix it: clocks, what can be late, and workloads that make no sense."""

from __future__ import annotations

import pytest

from cutproof.properties.model.words import record_in_words
from cutproof.properties.model.workload import (
    BEGINNING,
    END_OF_TIME,
    PANE,
    AnyOperator,
    Count,
    Edge,
    Input,
    Join,
    Map,
    Node,
    Session,
    Sliding,
    Topology,
    Tumbling,
    Union,
    Workload,
    is_pane,
    offset_of,
    origin_of,
    problems,
    split_of,
)
from cutproof.properties.semantics.classes import classes
from cutproof.properties.semantics.event_time import Clock, is_late_free, splits_before

RECORDS = ((0, 1, 11), (0, 2, 12), (0, 3, 13))


def source(name: str = "in", *times: int, delay: int = 0, idle_after_us: int = 0, bounded: bool = True) -> Input:
    return Input(
        name=name,
        splits=(RECORDS[: len(times)],),
        times=(times,),
        delay=delay,
        idle_after_us=idle_after_us,
        bounded=bounded,
    )


def workload(*operators: AnyOperator, inputs: tuple[Input, ...] = ()) -> Workload:
    """A chain behind an input, or behind a union of two."""
    inputs = inputs or (source("in", 5, 3, 9, delay=2),)
    nodes = [Node(name="union", operator=Union(), inputs=tuple(one.name for one in inputs))] if len(inputs) > 1 else []
    before = nodes[-1].name if nodes else inputs[0].name
    for number, operator in enumerate(operators):
        nodes.append(Node(name=f"op{number}", operator=operator, inputs=(before,)))
        before = f"op{number}"
    return Workload(name="timed", inputs=inputs, nodes=tuple(nodes))


def layout(of: Workload) -> Topology:
    readers = [(node.name, name) for node in of.nodes for name in node.inputs] + [("sink", of.output)]
    names = [one.name for one in of.inputs] + [node.name for node in of.nodes] + ["sink"]
    edges = tuple(Edge(sender=sender, receiver=receiver, partitioning="hash") for receiver, sender in readers)
    return Topology(parallelism=dict.fromkeys(names, 1), edges=edges)


def test_a_clock_reports_what_was_received_at_positions() -> None:
    of = workload(Tumbling(size=4), inputs=(source("a", 5, 3, 9, delay=2), source("b", 7, bounded=False)))
    clock = Clock(of)
    assert splits_before(of, "op0") == (0, 1)
    assert [clock.greatest(0, position) for position in range(4)] == [None, 5, 5, 9]
    assert [clock.watermark((0,), {0: position}) for position in range(4)] == [BEGINNING, 2, 2, END_OF_TIME]
    assert [clock.watermark((1,), {1: position}) for position in range(2)] == [BEGINNING, 6]
    assert clock.watermark((0, 1), {0: 1, 1: 1}) == 2
    assert clock.watermark((0, 1), {0: 3, 1: 1}) == 6


@pytest.mark.parametrize(
    ("inputs", "free"),
    [
        ((source("in", 5, 3, 9, delay=2),), True),
        ((source("in", 5, 3, 9, delay=1),), False),
        ((source("in", 5, 3, 9, delay=2, idle_after_us=10),), False),
        ((source("a", 1), source("b", 5, 3, 9, delay=1)), False),
        ((source("a", 1), source("b", 100, 200)), True),
    ],
)
def test_a_window_is_of_class_w_where_something_may_be_late(inputs: tuple[Input, ...], free: bool) -> None:
    of = workload(Session(gap=3), inputs=inputs)
    assert is_late_free(of, "op0") is free
    assert classes(of, layout(of))["op0"] == ("M" if free else "W")


WRONG: list[tuple[Workload, str]] = [
    (workload(Tumbling(size=0)), "a size, slide or gap below 1"),
    (workload(Sliding(size=4, slide=0)), "a size, slide or gap below 1"),
    (workload(Sliding(size=10**9, slide=1)), "a record would be of 1,000,000,000, and it can be of 1,000"),
    (workload(Sliding(size=3_001, slide=3)), "a record would be of 1,001, and it can be of 1,000"),
    (workload(Session(gap=4, lateness=-1)), "a lateness below 0"),
    (workload(Tumbling(size=4, of="least")), "it can be of count or sum"),
    (workload(Tumbling(size=4), Tumbling(size=4)), "more than one window"),
    (workload(Count(), Map(), Tumbling(size=4)), "the keyed operator op0 stands before a window"),
    (workload(Tumbling(size=4), inputs=(Input(name="in", splits=(RECORDS,)),)), "which has no event time"),
    (workload(inputs=(Input(name="in", splits=(RECORDS,), times=((1, 2),)),)), "not one for each record"),
    (workload(inputs=(source("in", 1, delay=-1),)), "a delay or an idle timeout below 0"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_makes_no_sense_is_reported(wrong: Workload, message: str) -> None:
    assert [problem for problem in problems(wrong, layout(wrong)) if message in problem]


def test_what_makes_sense_is_not_complained_of() -> None:
    for window in (
        Tumbling(size=4),
        Sliding(size=4, slide=3),
        Sliding(size=3_000, slide=3),
        Session(gap=1, of="sum", lateness=5),
    ):
        of = workload(Map(), window, Count(), inputs=(source("a", 1, 2), source("b", 3)))
        assert problems(of, layout(of)) == []


def test_a_join_before_a_window_is_refused() -> None:
    joined = Node(name="join", operator=Join(), inputs=("a", "b"))
    window = Node(name="window", operator=Tumbling(size=4), inputs=("join",))
    of = Workload(name="joined", inputs=(source("a", 1), source("b", 1)), nodes=(joined, window))
    assert problems(of, layout(of)) == ["the keyed operator join stands before a window"]


def test_a_pane_s_origin_names_its_record() -> None:
    origin = origin_of(3, 7) | PANE
    assert (is_pane(origin), is_pane(origin_of(3, 7))) == (True, False)
    assert (split_of(origin), offset_of(origin)) == (3, 7)
    assert record_in_words(workload(), origin_of(0, 1) | PANE) == "the window of record 1 of split 0 (tag 12)"
