"""The replay of what was applied: origins, strange records, and what a rebalance hides."""

from __future__ import annotations

import pytest

from cutproof.properties.model.workload import (
    SINK,
    AnyOperator,
    Count,
    Edge,
    FlatMap,
    Input,
    Join,
    Map,
    Node,
    Topology,
    Workload,
    copy_of,
    origin_of,
)
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.reconstruct.replay import Replay, Strange, is_determined
from unit.properties.histories import copying, counting, recovered
from unit.properties.mutated import runs_of
from unit.properties.toy import Toy


def replay_of(case: Case) -> Replay:
    return case.expected.replay


def finished() -> Case:
    toy = recovered(counting(per_split=8))
    toy.finish()
    return Case(toy.workload, toy.topology, toy.history())


def test_a_source_emits_what_it_read() -> None:
    case = finished()
    emitted = replay_of(case).run("numbers-1", 1).emitted
    records = list(case.workload.splits())[1][2]
    assert emitted[0] == (1, origin_of(1, 0), (*records[0], 0))
    assert [taken for taken, _, _ in emitted] == list(range(1, len(emitted) + 1))


def test_a_run_that_never_was_is_empty() -> None:
    assert replay_of(finished()).run("numbers-0", 99).emitted == []


def test_a_restored_run_goes_on_from_the_mark() -> None:
    case = finished()
    replay = replay_of(case)
    for one in runs_of(case.history, "count"):
        if one.attempt == 2:
            counts = {key: n or 0 for _, key, n, _ in replay.run(one.task, 1).states[1]}
            later = replay.run(one.task, 2)
            assert len(later.emitted) == len(later.taken) == len(one.applies)
            for (_, _, row), taken in zip(later.emitted, later.taken, strict=True):
                assert taken is not None
                counts[taken[0]] = counts.get(taken[0], 0) + 1
                assert row == (taken[0], counts[taken[0]], 0, 0)


def test_copies_are_numbered() -> None:
    toy = Toy(copying())
    toy.start()
    toy.finish()
    case = Case(toy.workload, toy.topology, toy.history())
    emitted = [one for task in ("copy-0", "copy-1") for one in replay_of(case).run(task, 1).emitted]
    assert {copy_of(origin) for _, origin, _ in emitted} == {0, 1}
    assert replay_of(case).strange == []


def test_what_nobody_sent_and_what_was_sent_once_is_strange() -> None:
    case = finished()
    sink = next(one for one in reversed(runs_of(case.history, "sink")) if one.applies)
    at = len(sink.applies)
    again = sink.applies[0][1]
    sink.applies += [sink.applies[0], (sink.applies[0][0], 9 << 40)]
    replay = replay_of(case)
    taken = replay.run(sink.task, sink.attempt).taken
    assert replay.strange == [
        Strange(task=sink.task, attempt=sink.attempt, sequence=at, origin=again, again=True),
        Strange(task=sink.task, attempt=sink.attempt, sequence=at + 1, origin=9 << 40, again=False),
    ]
    assert (taken[at], taken[at + 1]) == (taken[0], None)


def laid_out(*operators: AnyOperator, edges: str, joined: bool = False) -> tuple[Workload, Topology]:
    """A chain (after a join, if asked) whose last edges are rebalanced where `edges` has an r."""
    names = ["left", "right"] if joined else ["in"]
    inputs = tuple(Input(name=name, splits=(((1, 1, 1),),)) for name in names)
    nodes = [Node(name="join", operator=Join(), inputs=("left", "right"))] if joined else []
    fed = "join" if joined else "in"
    links = [(name, "join", "h") for name in names] if joined else []
    for number, operator in enumerate(operators):
        nodes.append(Node(name=f"op{number}", operator=operator, inputs=(fed,)))
        links.append((fed, f"op{number}", edges[number]))
        fed = f"op{number}"
    links.append((fed, SINK, edges[len(operators)]))
    how = {"h": "hash", "r": "rebalance"}
    return Workload(name="w", inputs=inputs, nodes=tuple(nodes)), Topology(
        parallelism=dict.fromkeys([*names, *(node.name for node in nodes), SINK], 2),
        edges=tuple(Edge(sender=one, receiver=other, partitioning=how[kind]) for one, other, kind in links),
    )


@pytest.mark.parametrize(
    ("operators", "edges", "joined", "on_the_lineage", "in_every_attempt"),
    [
        ((Map(),), "rr", False, True, True),
        ((FlatMap(), Map()), "rrr", False, True, True),
        ((FlatMap(), FlatMap(), Map()), "rrhh", False, True, True),
        ((FlatMap(), FlatMap(), Map()), "hhrh", False, False, False),
        ((FlatMap(), FlatMap()), "hhr", False, True, False),
        ((), "h", True, True, True),
        ((), "r", True, True, False),
        ((Map(),), "rh", True, False, False),
        ((Map(), Count()), "hhr", True, True, False),
    ],
)
def test_what_a_rebalance_hides(
    operators: tuple[AnyOperator, ...], edges: str, joined: bool, on_the_lineage: bool, in_every_attempt: bool
) -> None:
    pair = laid_out(*operators, edges=edges, joined=joined)
    assert is_determined(*pair) is on_the_lineage
    assert is_determined(*pair, every_attempt=True) is in_every_attempt


def test_a_single_receiver_hides_nothing() -> None:
    workload, topology = laid_out(Map(), edges="rh", joined=True)
    narrowed = Topology(parallelism={**topology.parallelism, "op0": 1}, edges=topology.edges)
    assert is_determined(workload, narrowed, every_attempt=True)
