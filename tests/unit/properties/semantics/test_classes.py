"""Workload classes by the lanes of the data, and what is promised."""

from __future__ import annotations

import pytest

from cutproof.properties.model.workload import (
    SINK,
    AnyOperator,
    Count,
    Dedup,
    Edge,
    Filter,
    Greater,
    Input,
    Join,
    Map,
    Node,
    Sum,
    Topology,
    Union,
    Workload,
)
from cutproof.properties.semantics.classes import class_of, classes, last_row_is_fixed, promised

ONE_SPLIT = ((1, 2, 3),)
APART = (ONE_SPLIT[0], (4,))
SHARED = ((1, 2), (2, 3))


def laid_out(
    keys: tuple[tuple[int, ...], ...], *operators: AnyOperator, edges: str = "", parallelism: int = 2
) -> tuple[Workload, Topology]:
    """A chain over one input; `edges` has h, f or r for each edge, hashed where it says nothing."""
    source = Input(name="in", splits=tuple(tuple((key, 1, key) for key in split) for split in keys))
    names = ["in", *(f"op{number}" for number in range(len(operators))), SINK]
    nodes = tuple(
        Node(name=f"op{number}", operator=operator, inputs=(names[number],))
        for number, operator in enumerate(operators)
    )
    how = {"h": "hash", "f": "forward", "r": "rebalance"}
    kinds = [how[kind] for kind in edges.ljust(len(names) - 1, "h")]
    return Workload(name="w", inputs=(source,), nodes=nodes), Topology(
        parallelism=dict.fromkeys(names, parallelism),
        edges=tuple(
            Edge(sender=sender, receiver=receiver, partitioning=kind)
            for sender, receiver, kind in zip(names, names[1:], kinds, strict=False)
        ),
    )


@pytest.mark.parametrize("operator", [Map(), Filter(), Count(), Dedup()])
def test_operators_that_do_not_look_at_order_are_m(operator: AnyOperator) -> None:
    assert class_of(*laid_out(SHARED, operator)) == "M"


@pytest.mark.parametrize("operator", [Sum(), Greater(), Count(tagged=True), Dedup(keys_only=False)])
def test_order_is_known_where_a_key_has_one_lane(operator: AnyOperator) -> None:
    assert class_of(*laid_out(ONE_SPLIT, operator)) == "S"
    assert class_of(*laid_out(APART, operator)) == "S"
    assert class_of(*laid_out(SHARED, operator)) == "H"


def test_a_rebalance_among_several_scatters_a_lane() -> None:
    assert class_of(*laid_out(ONE_SPLIT, Map(), Sum(), edges="rh")) == "H"
    assert class_of(*laid_out(ONE_SPLIT, Map(), Sum(), edges="rh", parallelism=1)) == "S"
    assert class_of(*laid_out(ONE_SPLIT, Map(), Sum(), edges="fh")) == "S"


def test_a_rebalance_behind_it_does_not_matter() -> None:
    assert class_of(*laid_out(ONE_SPLIT, Sum(), edges="hr")) == "S"


def test_keys_spread_apart_and_made_equal_have_several_lanes() -> None:
    assert class_of(*laid_out(ONE_SPLIT, Map(rekey=2), Sum(), edges="fh")) == "S"
    assert class_of(*laid_out(ONE_SPLIT, Map(rekey=2), Sum(), edges="hh")) == "H"
    assert class_of(*laid_out(ONE_SPLIT, Map(rekey=2), Sum(), edges="hh", parallelism=1)) == "S"


def test_a_path_has_its_worst_operators_class() -> None:
    found = classes(*laid_out(SHARED, Count(), Sum(), Count()))
    assert found == {"in": "M", "op0": "M", "op1": "H", "op2": "H"}


def two_inputs(operator: AnyOperator, after: AnyOperator, keys: tuple[int, int]) -> tuple[Workload, Topology]:
    names = ("left", "right", "both", "after", SINK)
    inputs = tuple(Input(name=name, splits=(((key, 1, key),),)) for name, key in zip(names[:2], keys, strict=True))
    nodes = (
        Node(name="both", operator=operator, inputs=("left", "right")),
        Node(name="after", operator=after, inputs=("both",)),
    )
    edges = (("left", "both"), ("right", "both"), ("both", "after"), ("after", SINK))
    return Workload(name="w", inputs=inputs, nodes=nodes), Topology(
        parallelism=dict.fromkeys(names, 2),
        edges=tuple(Edge(sender=one, receiver=other, partitioning="hash") for one, other in edges),
    )


def test_unions_merge_lanes_and_joins_hide_order() -> None:
    assert class_of(*two_inputs(Union(), Sum(), (1, 2))) == "S"
    assert class_of(*two_inputs(Union(), Sum(), (1, 1))) == "H"
    assert class_of(*two_inputs(Join(), Count(), (1, 1))) == "M"
    assert class_of(*two_inputs(Join(), Sum(), (1, 2))) == "H"


@pytest.mark.parametrize(
    ("keys", "operators", "edges", "fixed"),
    [
        (SHARED, (Count(),), "hh", True),
        (SHARED, (Count(),), "hr", False),
        (SHARED, (Sum(),), "hf", True),
        (SHARED, (Sum(), Filter()), "hhh", False),
        (SHARED, (Count(), Filter()), "hhh", True),
        (SHARED, (Count(), Map(rekey=2)), "hhh", False),
        (SHARED, (Count(tagged=True),), "hh", False),
        (SHARED, (Greater(),), "hh", False),
        (SHARED, (Map(),), "hh", False),
        (ONE_SPLIT, (Map(),), "hh", True),
        (ONE_SPLIT, (Greater(),), "hh", True),
        (ONE_SPLIT, (), "r", False),
    ],
)
def test_whether_the_last_row_of_a_key_is_fixed(
    keys: tuple[tuple[int, ...], ...], operators: tuple[AnyOperator, ...], edges: str, fixed: bool
) -> None:
    assert last_row_is_fixed(*laid_out(keys, *operators, edges=edges)) is fixed


def test_promises_follow_source_mode_and_sink() -> None:
    assert promised("exactly-once", "transactional") == {
        "exactly-once",
        "no-data-loss",
        "consistent-cut",
        "order",
        "restored-state",
        "restorable",
        "visibility",
        "drain",
        "progress",
        "no-leaks",
    }
    assert promised("exactly-once", "idempotent") == promised("exactly-once", "transactional") - {"visibility"}
    plain = promised("exactly-once", "plain")
    assert "consistent-cut" in plain
    assert "at-least-once" in plain
    assert "exactly-once" not in plain
    assert promised("at-least-once", "transactional") == {
        "at-least-once",
        "no-data-loss",
        "restored-state",
        "restorable",
        "drain",
        "progress",
        "no-leaks",
    }
    weakest = {"at-most-once", "progress", "no-leaks"}
    assert promised("at-most-once", "plain") == weakest
    assert promised("exactly-once", "transactional", rewindable=False) == weakest
