"""Random small workloads of every operator and layout, for the tests of the checkers."""

from __future__ import annotations

import random

from cutproof.properties.model.workload import (
    KEYED,
    SINK,
    AnyOperator,
    Count,
    Dedup,
    Edge,
    Filter,
    FlatMap,
    Greater,
    Input,
    InputRecord,
    Join,
    Map,
    Node,
    Sum,
    Topology,
    Union,
    Workload,
    problems,
)
from unit.properties.toy import Case

SINGLE: tuple[AnyOperator, ...] = (
    Map(multiply=3, add=-4),
    Map(rekey=2),
    Filter(modulus=3, drop=1),
    FlatMap(fan=2),
    Count(),
    Count(tagged=True),
    Sum(),
    Greater(),
    Dedup(),
    Dedup(keys_only=False),
    Count(signed=True),
    Sum(signed=True),
)


def record(draw: random.Random) -> InputRecord:
    """One record; now and then its key or its value is NULL."""
    key = None if draw.random() < 0.1 else draw.randrange(4)
    value = None if draw.random() < 0.15 else draw.randrange(-6, 7)
    return key, value, draw.getrandbits(40) * draw.choice((1, 1, 1, -1))


def drawn(seed: int, *, records: int = 8) -> Case:
    """A workload of one or two inputs and up to three operators, on some layout."""
    draw = random.Random(f"shape {seed}")
    names = ["one"] if draw.random() < 0.6 else ["one", "two"]
    inputs = tuple(
        Input(
            name=name,
            splits=tuple(
                tuple(record(draw) for _ in range(draw.randrange(records + 1))) for _ in range(draw.randrange(1, 3))
            ),
        )
        for name in names
    )
    nodes: list[Node] = []
    feeding = names
    if len(names) == 2:
        nodes.append(Node(name="both", operator=draw.choice((Union(), Join(), Join(signed=True))), inputs=tuple(names)))
        feeding = ["both"]
    for number in range(draw.randrange(0 if nodes else 1, 3)):
        nodes.append(Node(name=f"op{number}", operator=draw.choice(SINGLE), inputs=tuple(feeding)))
        feeding = [f"op{number}"]
    workload = Workload(name=f"shape-{seed}", inputs=inputs, nodes=tuple(nodes))
    topology = laid_out(draw, workload)
    assert not problems(workload, topology)
    return workload, topology


def laid_out(draw: random.Random, workload: Workload) -> Topology:
    names = [*(source.name for source in workload.inputs), *(node.name for node in workload.nodes), SINK]
    parallelism = {name: draw.randrange(1, 3) for name in names}
    edges = []
    readers = [(node.name, name, isinstance(node.operator, KEYED)) for node in workload.nodes for name in node.inputs]
    for receiver, sender, keyed in [*readers, (SINK, workload.output, False)]:
        choices = ["hash"] if keyed else ["hash", "rebalance"]
        if not keyed and parallelism[sender] == parallelism[receiver]:
            choices.append("forward")
        edges.append(Edge(sender=sender, receiver=receiver, partitioning=draw.choice(choices)))
    return Topology(parallelism=parallelism, edges=tuple(edges))
