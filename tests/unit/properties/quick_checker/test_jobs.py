"""What each job of a run has: its nodes, its topology, and the classes of what it makes."""

from __future__ import annotations

from itertools import chain as joined
from itertools import combinations, pairwise, product

import msgspec
import pytest

from cutproof.properties.model.absent import first_absent, laid_without, without
from cutproof.properties.model.history import History
from cutproof.properties.model.upgrade import Upgrade, absent_after
from cutproof.properties.model.workload import (
    Count,
    Edge,
    Input,
    Map,
    Node,
    Row,
    Sum,
    Topology,
    Union,
    Workload,
    problems,
)
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.quick_checker.expected import compute
from cutproof.properties.reconstruct.layouts import same_width
from cutproof.properties.reconstruct.lineage import INFINITE

RECORDS = tuple((0, 10, number + 1) for number in range(6))


def chain(*edges: str) -> tuple[Workload, Topology]:
    """source → count → map → sink, with these edges between them."""
    nodes = (
        Node(name="count", operator=Count(), inputs=("source",)),
        Node(name="map", operator=Map(), inputs=("count",)),
    )
    workload = Workload(name="chain", inputs=(Input(name="source", splits=(RECORDS,)),), nodes=nodes)
    names = ["source", "count", "map", "sink"]
    topology = Topology(
        parallelism=dict.fromkeys(names, 2),
        edges=tuple(
            Edge(sender=sender, receiver=receiver, partitioning=how)
            for sender, receiver, how in zip(names, names[1:], edges, strict=False)
        ),
    )
    assert problems(workload, topology) == []
    return workload, topology


def test_what_was_submitted_has_all_nodes_and_the_first_job_only_its_own() -> None:
    workload, topology = chain("hash", "forward", "rebalance")
    empty = History(subject="toy", guarantee="exactly-once", sink="transactional")
    count, last = workload.nodes
    later = msgspec.structs.replace(workload, nodes=(count, msgspec.structs.replace(last, later=True)))
    case = Case(later, topology, empty)
    assert (case.submitted, "map" in case.jobs.topology.parallelism) == (topology, True)
    assert sorted(case.jobs.first.parallelism) == ["count", "sink", "source"]
    assert Case(workload, topology, empty).jobs.first == topology


@pytest.mark.parametrize(
    ("edges", "absent", "left"),
    [
        (("hash", "forward", "rebalance"), ("count",), ["source-hash>map", "map-rebalance>sink"]),
        (("hash", "rebalance", "forward"), ("count",), ["source-rebalance>map", "map-forward>sink"]),
        (("hash", "forward", "rebalance"), ("map",), ["source-hash>count", "count-rebalance>sink"]),
        (("hash", "forward", "forward"), ("count", "map"), ["source-hash>sink"]),
        (("hash", "rebalance", "hash"), ("map", "count"), ["source-hash>sink"]),
        (("hash", "forward", "forward"), (), ["source-hash>count", "count-forward>map", "map-forward>sink"]),
    ],
)
def test_a_job_without_a_node_has_an_edge_past_it(
    edges: tuple[str, ...], absent: tuple[str, ...], left: list[str]
) -> None:
    workload, topology = chain(*edges)
    smaller, laid = without(workload, absent), laid_without(topology, absent)
    found = {f"{edge.sender}-{edge.partitioning}>{edge.receiver}" for edge in laid.edges}
    assert found == set(left)
    assert problems(smaller, laid) == []
    assert list(laid.parallelism) == [name for name in topology.parallelism if name not in absent]


def test_whatever_nodes_a_job_lacks_the_rest_can_be_run() -> None:
    """Of a laid-out chain of three maps, for all edges and parallelisms with which it can be run."""
    names, chains = ["source", "one", "two", "three", "sink"], 0
    nodes = tuple(Node(name=name, operator=Map(), inputs=(before,)) for before, name in pairwise(names[:-1]))
    workload = Workload(name="chain", inputs=(Input(name="source", splits=(RECORDS,)),), nodes=nodes)
    for hows in product(("forward", "hash", "rebalance"), repeat=4):
        edges = tuple(
            Edge(sender=sender, receiver=receiver, partitioning=how)
            for (sender, receiver), how in zip(pairwise(names), hows, strict=True)
        )
        for wide in product((1, 2), repeat=5):
            topology = Topology(parallelism=dict(zip(names, wide, strict=True)), edges=edges)
            if problems(workload, topology):
                continue
            chains += 1
            for absent in joined.from_iterable(combinations(names[1:-1], many) for many in (1, 2, 3)):
                assert problems(without(workload, absent), laid_without(topology, absent)) == []
    assert chains > 500


def test_what_reads_an_absent_node_reads_its_input() -> None:
    nodes = (
        Node(name="first", operator=Map(), inputs=("west",)),
        Node(name="second", operator=Map(), inputs=("first",)),
        Node(name="union", operator=Union(), inputs=("east", "second")),
    )
    inputs = (Input(name="east", splits=(RECORDS,)), Input(name="west", splits=()))
    left = without(Workload(name="two", inputs=inputs, nodes=nodes), ("first", "second"))
    assert [(node.name, node.inputs) for node in left.nodes] == [("union", ("east", "west"))]


def test_the_nodes_of_a_job_follow_from_those_of_the_job_before() -> None:
    workload, _ = chain("hash", "forward", "forward")
    nodes = (msgspec.structs.replace(workload.nodes[0], later=True), workload.nodes[1])
    absent = first_absent(msgspec.structs.replace(workload, nodes=nodes))
    assert absent == ("count",)
    absent = absent_after(absent, Upgrade(added=("count",), removed=("map",)))
    assert absent == ("map",)
    assert absent_after(absent, Upgrade(removed=("map", "count"))) == ("count", "map")
    assert absent_after(absent, Upgrade(renamed={"map": "x"})) == ("map",)


def test_two_jobs_are_as_wide_if_what_both_have_is() -> None:
    _, topology = chain("hash", "forward", "forward")
    assert same_width(topology, laid_without(topology, ("count",)))
    wider = msgspec.structs.replace(topology, parallelism={**topology.parallelism, "sink": 3})
    assert not same_width(wider, laid_without(topology, ("count",)))


def made(lacking: dict[int, tuple[str, ...]]) -> list[list[int | None]]:
    """The values of the rows of each epoch of a sum behind a count, two records with the value 10 in each."""
    nodes = (
        Node(name="count", operator=Count(), inputs=("source",)),
        Node(name="sum", operator=Sum(), inputs=("count",)),
    )
    workload = Workload(name="chain", inputs=(Input(name="source", splits=(RECORDS,)),), nodes=nodes)
    found = compute(workload, [(1, {0: 2}), (2, {0: 4})], lacking=lacking)
    rows: list[list[Row]] = [found.rows[epoch] for epoch in (1, 2, INFINITE)]
    return [[row[1] for row in each] for each in rows]


def test_rows_are_made_by_the_nodes_of_the_job_that_processed_their_records() -> None:
    assert made({}) == [[1, 3], [6, 10], [15, 21]]
    assert made({1: ("count",), 2: ("count",), INFINITE: ("count",)}) == [[10, 20], [30, 40], [50, 60]]
    assert made({1: (), 2: ("count",), INFINITE: ()}) == [[1, 3], [13, 23], [24, 26]]
    assert made({1: ("sum",), 2: (), INFINITE: ("sum",)}) == [[1, 2], [3, 7], [5, 6]]
