"""A small scenario to change one thing of, for the tests of the harness."""

from __future__ import annotations

from cutproof.faults.plan import AtPoint, AtTime, CutChannel, KillTask
from cutproof.harness.scenario.model import Engine, Perturbation, Savepoint, Scenario
from cutproof.properties.model.workload import Count, Edge, Input, Join, Map, Node, Topology, Workload


def chain(records: int = 12) -> Scenario:
    """source -> map -> count -> sink, two tasks each; a kill, a cut and a savepoint."""
    splits = tuple(
        tuple((number % 3, number, 100 + 10 * split + number) for number in range(records // 2)) for split in range(2)
    )
    return Scenario(
        name="chain",
        workload=Workload(
            name="chain",
            inputs=(Input(name="source", splits=splits),),
            nodes=(
                Node(name="map", operator=Map(add=1), inputs=("source",)),
                Node(name="count", operator=Count(), inputs=("map",)),
            ),
        ),
        topology=Topology(
            parallelism={"source": 2, "map": 2, "count": 2, "sink": 2},
            edges=(
                Edge(sender="source", receiver="map", partitioning="forward"),
                Edge(sender="map", receiver="count", partitioning="hash"),
                Edge(sender="count", receiver="sink", partitioning="rebalance"),
            ),
        ),
        engine=Engine(checkpoint_interval_us=800),
        faults=(
            KillTask(trigger=AtTime(at_us=1_200), task="count-1"),
            CutChannel(trigger=AtPoint(point="record-read", occurrence=9), sender="map-1", receiver="count-0"),
        ),
        commands=(Savepoint(trigger=AtPoint(point="ack-sent", occurrence=2, task="map-1")),),
        deviations=(Perturbation(what="message map-1>count-1", occurrence=2, by_us=300),),
    )


def join() -> Scenario:
    """left and right -> join -> sink, one task each, no faults."""
    inputs = tuple(
        Input(name=name, splits=(tuple((number, number, 50 * side + number) for number in range(3)),))
        for side, name in enumerate(("left", "right"))
    )
    return Scenario(
        workload=Workload(
            name="join", inputs=inputs, nodes=(Node(name="join", operator=Join(), inputs=("left", "right")),)
        ),
        topology=Topology(
            parallelism={"left": 1, "right": 1, "join": 1, "sink": 1},
            edges=(
                Edge(sender="left", receiver="join", partitioning="hash"),
                Edge(sender="right", receiver="join", partitioning="hash"),
                Edge(sender="join", receiver="sink", partitioning="forward"),
            ),
        ),
    )
