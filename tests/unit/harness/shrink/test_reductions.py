"""The single steps of shrinking: one thing less, and everything that pointed at it moved."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtTime, CutChannel, KillTask
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Perturbation, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.shrink import reductions
from cutproof.properties.model.workload import Count, Edge, Map, Node, Rules, Topology, Union, problems
from unit.harness.scenarios import chain, join

replace = msgspec.structs.replace


def valid(scenario: Scenario | None) -> Scenario:
    assert scenario is not None
    assert list(problems_of(scenario)) == []
    return scenario


def test_records_go_in_the_order_they_are_read_in() -> None:
    order = reductions.record_order(chain(6).workload)
    assert order == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    fewer = valid(reductions.without_records(chain(6), 1, 3))
    assert [len(records) for _, _, records in fewer.workload.splits()] == [2, 2]
    assert [record[2] for _, _, records in fewer.workload.splits() for record in records] == [100, 102, 111, 112]


def test_triggers_come_sooner_by_what_is_no_longer_read_before_them() -> None:
    fewer = reductions.without_records(chain(), 0, 4)
    kill, cut = fewer.faults
    assert kill.trigger == AtTime(at_us=1_200 - 4 * 200 // 2)
    assert isinstance(cut.trigger, AtPoint)
    assert cut.trigger.occurrence == 5
    later = reductions.without_records(chain(), 10, 12)
    assert later.faults[1].trigger == chain().faults[1].trigger


def test_a_node_goes_and_what_it_read_goes_on() -> None:
    fewer = valid(reductions.without_node(chain(), "count"))
    assert [node.name for node in fewer.workload.nodes] == ["map"]
    assert fewer.topology.edge("map", "sink").partitioning == "rebalance"
    kill, cut = fewer.faults
    assert isinstance(kill, KillTask)
    assert isinstance(cut, CutChannel)
    assert kill.task == "sink-0"
    assert (cut.sender, cut.receiver) == ("map-1", "sink-0")
    assert fewer.deviations[0].what == "message map-1>sink-0"


def test_a_node_of_two_inputs_goes_with_one_of_them() -> None:
    assert reductions.without_node(join(), "join") is None
    assert reductions.branches(join().workload) == [("join", "left"), ("join", "right")]
    fewer = valid(reductions.without_branch(join(), "join", "right"))
    assert [source.name for source in fewer.workload.inputs] == ["right"]
    assert not fewer.workload.nodes
    assert set(fewer.topology.parallelism) == {"right", "sink"}


def test_the_inputs_of_a_union_become_the_splits_of_one() -> None:
    union = Node(name="union", operator=Union(), inputs=("left", "right"))
    edges = (
        Edge(sender="left", receiver="union", partitioning="rebalance"),
        Edge(sender="right", receiver="union", partitioning="hash"),
        Edge(sender="union", receiver="sink", partitioning="hash"),
    )
    scenario = replace(
        join(),
        workload=replace(join().workload, nodes=(union,)),
        topology=Topology(parallelism={"left": 1, "right": 2, "union": 1, "sink": 1}, edges=edges),
        faults=(KillTask(trigger=AtTime(at_us=1), task="right-1"),),
    )
    behind = replace(scenario.workload, nodes=(replace(union, inputs=("left", "other")),))
    assert reductions.with_inputs_merged(replace(scenario, workload=behind), "union") is None
    merged = valid(reductions.with_inputs_merged(valid(scenario), "union"))
    assert [source.name for source in merged.workload.inputs] == ["left"]
    assert not merged.workload.nodes
    assert merged.workload.records() == 6
    assert merged.faults[0] == KillTask(trigger=AtTime(at_us=1), task="left-0")


def test_a_narrower_layout_moves_what_targeted_its_tasks() -> None:
    fewer = valid(reductions.with_parallelism(chain(), dict.fromkeys(chain().topology.parallelism, 1)))
    kill, cut = fewer.faults
    assert isinstance(kill, KillTask)
    assert isinstance(cut, CutChannel)
    assert kill.task == "count-0"
    assert (cut.sender, cut.receiver) == ("map-0", "count-0")
    assert fewer.deviations[0].what == "message map-0>count-0"


def test_a_forward_edge_between_unequal_neighbours_is_hashed() -> None:
    fewer = valid(reductions.with_parallelism(chain(), {"source": 1, "map": 2, "count": 2, "sink": 2}))
    assert fewer.topology.edge("source", "map").partitioning == "hash"


def test_all_takes_half_the_time() -> None:
    half = valid(reductions.squeezed(chain(), 1, 2))
    assert half.workload.records() == 6
    assert (half.engine.checkpoint_interval_us, half.engine.read_interval_us) == (400, 200)
    assert half.faults[0].trigger == AtTime(at_us=600)
    assert half.faults[1].trigger == AtPoint(point="record-read", occurrence=4)
    assert half.commands == chain().commands


def test_a_split_goes_but_never_the_last_of_an_input() -> None:
    fewer = valid(reductions.without_split(chain(), 1))
    assert len(fewer.workload.inputs[0].splits) == 1
    assert reductions.without_split(fewer, 0) == fewer


@pytest.mark.parametrize("scenario", [chain(), join()])
def test_records_change_one_by_one(scenario: Scenario) -> None:
    changed = reductions.with_record(scenario, (1, 0), lambda record: (7, None, record[2]))
    splits = [records for _, _, records in changed.workload.splits()]
    assert splits[1][0][:2] == (7, None)
    assert problems(changed.workload, changed.topology) == []
    assert sum(old != new for old, new in zip(_flat(scenario), _flat(changed), strict=True)) == 1


def _flat(scenario: Scenario) -> list[object]:
    return [record for _, _, records in scenario.workload.splits() for record in records]


def test_a_late_record_of_the_coordinator_stays_one_in_a_narrower_layout() -> None:
    late = Perturbation(what="write coordinator", occurrence=1, by_us=300)
    scenario = msgspec.structs.replace(chain(), deviations=(late,))
    narrower = reductions.with_parallelism(scenario, dict.fromkeys(scenario.topology.parallelism, 1))
    assert narrower.deviations == (late,)


def timed(scenario: Scenario) -> Scenario:
    """The same with event times, each telling its record: 100 times the split and the offset."""
    inputs = tuple(
        replace(
            source,
            times=tuple(
                tuple(100 * split + offset for offset in range(len(records)))
                for split, records in enumerate(source.splits)
            ),
            delay=number,
        )
        for number, source in enumerate(scenario.workload.inputs)
    )
    return replace(scenario, workload=replace(scenario.workload, inputs=inputs))


def test_event_times_go_with_their_records() -> None:
    fewer = valid(reductions.without_records(timed(chain(6)), 1, 3))
    assert fewer.workload.inputs[0].times == ((0, 2), (101, 102))
    fewer = valid(reductions.without_split(timed(chain(6)), 0))
    assert fewer.workload.inputs[0].times == ((100, 101, 102),)
    merged = valid(reductions.with_inputs_merged(timed(join()), "join"))
    (source,) = merged.workload.inputs
    assert [len(times) for times in source.times] == [len(split) for split in source.splits]
    assert source.delay == 1


def test_what_has_rules_gets_smaller_and_its_rules_stay_broadcast() -> None:
    nodes = (
        Node(name="map", operator=Map(add=1), inputs=("right",)),
        Node(name="rules", operator=Rules(), inputs=("left", "map")),
        Node(name="count", operator=Count(), inputs=("rules",)),
    )
    workload = replace(join().workload, nodes=nodes)
    topology = lay_out(workload, {"left": 2, "right": 1, "map": 1, "rules": 2, "count": 3, "sink": 3})
    whole = valid(replace(join(), workload=workload, topology=topology, faults=(), commands=(), deviations=()))
    shorter = valid(reductions.without_node(whole, "map"))
    assert shorter.topology.edge("right", "rules").partitioning == "broadcast"
    assert valid(reductions.without_node(shorter, "count")).topology.edge("right", "rules").partitioning == "broadcast"
    for kept in ("left", "map"):
        without_rules = valid(reductions.without_branch(whole, "rules", kept))
        assert {edge.partitioning for edge in without_rules.topology.edges} <= {"forward", "hash"}
    merged = valid(reductions.with_inputs_merged(shorter, "rules"))
    assert merged.topology.edge("left", "count").partitioning == "hash"
    one = valid(reductions.with_parallelism(whole, dict.fromkeys(topology.parallelism, 1)))
    assert one.topology.edge("map", "rules").partitioning == "broadcast"
