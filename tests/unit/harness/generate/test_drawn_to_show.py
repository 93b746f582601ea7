"""What is drawn can show something: rows come out, and a judge can say which were applied where."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtTime, KillCoordinator
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.generate.workloads.event_times import closing
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.scenario.promises import can_show
from cutproof.properties.model.workload import (
    Count,
    Edge,
    Input,
    Join,
    Node,
    Session,
    Sliding,
    Topology,
    Tumbling,
    Workload,
    window_of,
)
from cutproof.properties.reconstruct.replay import is_determined

SCENARIOS = 1_000


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    draw = scenario_of(Drawing())
    return [draw(3, index) for index in range(SCENARIOS)]


def _follows_applies(scenario: Scenario) -> bool:
    return scenario.engine.alignment != "aligned" or scenario.engine.guarantee != "exactly-once"


def test_rows_that_nobody_could_distinguish_are_seldom_distributed(drawn: list[Scenario]) -> None:
    following = [one for one in drawn if _follows_applies(one)]
    left_open = [one for one in following if not is_determined(one.workload, one.topology, every_attempt=True)]
    assert 0 < len(left_open) < len(following) // 25


def test_a_layout_that_is_given_stays_as_it_is() -> None:
    nodes = (Node(name="join", operator=Join(), inputs=("left", "right")),)
    inputs = tuple(
        Input(name=name, splits=(((1, 1, tag), (2, 2, tag + 1)),)) for name, tag in (("left", 1), ("right", 3))
    )
    edges = tuple(
        Edge(sender=sender, receiver=receiver, partitioning=how)
        for sender, receiver, how in (
            ("left", "join", "hash"),
            ("right", "join", "hash"),
            ("join", "sink", "rebalance"),
        )
    )
    topology = Topology(parallelism={"left": 1, "right": 1, "join": 1, "sink": 2}, edges=edges)
    workload = Workload(name="joined", inputs=inputs, nodes=nodes)
    draw = scenario_of(Drawing(templates=("S3",), workload=workload, topology=topology))
    assert [draw(1, index).topology for index in range(20)] == [topology] * 20


def test_a_window_is_over_before_its_input_is(drawn: list[Scenario]) -> None:
    windowed = [(one.workload, window_of(one.workload)) for one in drawn if one.name != "S11"]
    held = [
        (workload.inputs, window.operator)
        for workload, window in windowed
        if window is not None
        and isinstance(window.operator, Tumbling | Sliding | Session)
        and not any(one.bounded for one in workload.inputs)
    ]
    assert len(held) > 5
    assert all(closing(inputs, window) == inputs for inputs, window in held)


@pytest.mark.parametrize(
    ("window", "bounded"),
    [
        (Tumbling(size=20), False),
        (Tumbling(size=21), True),
        (Sliding(size=20, slide=5), False),
        (Sliding(size=21, slide=7), True),
        (Session(gap=10), False),
        (Session(gap=15), True),
    ],
)
def test_an_input_that_holds_every_window_open_ends(window: Tumbling | Sliding | Session, bounded: bool) -> None:
    splits = (((1, 0, 11), (1, 0, 12), (1, 0, 13)), ((2, 0, 14),))
    source = Input(name="source", splits=splits, times=((0, 10, 24), (25,)), bounded=False, delay=3)
    assert [one.bounded for one in closing((source,), window)] == [bounded]


def test_a_split_without_records_holds_every_window_open() -> None:
    source = Input(name="source", splits=(((1, 0, 11), (1, 0, 12)), ()), times=((0, 1_000), ()), bounded=False)
    assert [one.bounded for one in closing((source,), Tumbling(size=10))] == [True]
    assert closing((replace(source, bounded=True),), Tumbling(size=10)) == (replace(source, bounded=True),)


def test_nothing_is_joined_with_an_input_that_was_cut_to_nothing() -> None:
    draw = scenario_of(Drawing(templates=("S8",), max_records=40))
    workloads = [draw(3, index).workload for index in range(SCENARIOS)]
    joined = [one for one in workloads if any(isinstance(node.operator, Join) for node in one.nodes)]
    assert len(joined) > SCENARIOS // 20
    assert [one.inputs for one in joined if not all(any(source.splits) for source in one.inputs)] == []


def test_a_coordinator_that_holds_the_snapshots_and_dies_early_leaves_nothing_to_show() -> None:
    source = Input(name="source", splits=(tuple((1, 1, 100 + number) for number in range(40)),))
    workload = Workload(
        name="counted", inputs=(source,), nodes=(Node(name="count", operator=Count(), inputs=("source",)),)
    )
    edges = tuple(
        Edge(sender=sender, receiver=receiver, partitioning="hash")
        for sender, receiver in (("source", "count"), ("count", "sink"))
    )
    topology = Topology(parallelism={"source": 1, "count": 1, "sink": 1}, edges=edges)
    engine = Engine(checkpoint_interval_us=5 * Engine().read_interval_us)
    at_us = {"early": 2 * engine.read_interval_us + 4 * engine.control_latency_us, "late": 30 * engine.read_interval_us}
    shown = {
        (name, store): "exactly-once"
        in can_show(
            Scenario(
                workload=workload,
                topology=topology,
                engine=replace(engine, snapshot_store=store),
                faults=(KillCoordinator(trigger=AtTime(at_us=moment)),),
            )
        )
        for name, moment in at_us.items()
        for store in ("memory", "files")
    }
    assert [where for where, shows in shown.items() if not shows] == [("early", "memory")]
    assert len(shown) == 4
