"""The judge on scenarios as a search draws them, of the kinds that a search draws seldom: rows that follow
the merge order (class H), and idempotent sinks behind any operator."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.translation import identity
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import Result
from cutproof.properties.model.workload import KEYED, AnyOperator, Count, Dedup, Greater, Join, Sum
from cutproof.properties.semantics.classes import classes
from defects.drawn import accused, first_runs
from defects.mutated import mutations_seen

replace = msgspec.structs.replace
ORDER_MATTERS: tuple[AnyOperator, ...] = (Sum(), Greater(), Count(tagged=True), Dedup(keys_only=False))


def following_order(scenario: Scenario) -> Scenario:
    """The same with keyed operators that look at order."""
    draw = random.Random(scenario.seed)
    nodes = tuple(
        replace(node, operator=draw.choice(ORDER_MATTERS))
        if isinstance(node.operator, KEYED) and not isinstance(node.operator, Join)
        else node
        for node in scenario.workload.nodes
    )
    return replace(scenario, workload=replace(scenario.workload, nodes=nodes))


TABLE = {
    "sink": "idempotent",
    "guarantee": "exactly-once",
    "committing": "writer",
    "pooled_ids": False,
    "failover": "full",
}


def into_a_table(scenario: Scenario) -> Scenario:
    return replace(scenario, engine=replace(scenario.engine, **TABLE))


def is_merged(scenario: Scenario) -> bool:
    return "H" in classes(scenario.workload, scenario.topology).values()


def is_by_row(scenario: Scenario) -> bool:
    return identity(scenario.workload) == "row"


def drawn(alter: Callable[[Scenario], Scenario], wanted: Callable[[Scenario], bool]) -> list[Result]:
    draw = scenario_of(Drawing(max_records=40))
    return first_runs((alter(draw(3, index)) for index in range(400)), 20, of=wanted)


KINDS = pytest.mark.parametrize(
    ("alter", "wanted"), [(following_order, is_merged), (into_a_table, is_by_row)], ids=["class H", "a table by row"]
)


@KINDS
def test_no_run_is_accused_and_every_mutation_is_seen(
    alter: Callable[[Scenario], Scenario], wanted: Callable[[Scenario], bool]
) -> None:
    results = drawn(alter, wanted)
    assert accused(results) == []
    seen = Counter(name for result in results for name in mutations_seen(result))
    assert len(seen) > 10
    assert min(seen["drop a committed row"], seen["skip a record"], seen["edit a stored state"]) > 5


def test_the_merges_are_those_of_every_operator_that_looks_at_order() -> None:
    merged = [node for result in drawn(following_order, is_merged) for node in result.scenario.workload.nodes]
    assert {Sum, Greater, Count, Dedup} <= {type(node.operator) for node in merged}
