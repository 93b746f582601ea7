"""How many rows a workload has at most."""

from __future__ import annotations

import pytest

from cutproof.harness.scenario.row_counts import emitted, received
from cutproof.properties.model.workload import Count, FlatMap, Input, Join, Node, Union, Workload


def of(*nodes: Node) -> Workload:
    """Ten records of two keys in each of two inputs, and operators behind them."""
    records = tuple((key % 2, key, key + 1) for key in range(10))
    inputs = tuple(Input(name=name, splits=(records,)) for name in ("left", "right"))
    return Workload(name="w", inputs=inputs, nodes=nodes)


BOTH = ("left", "right")


@pytest.mark.parametrize(
    ("nodes", "emits", "rows"),
    [
        ((Node(name="a", operator=Union(), inputs=BOTH),), 20, 20 + 20),
        ((Node(name="a", operator=Join(), inputs=BOTH),), 50, 20 + 50),
        (
            (Node(name="a", operator=Union(), inputs=BOTH), Node(name="b", operator=FlatMap(fan=3), inputs=("a",))),
            60,
            20 + 20 + 60,
        ),
        (
            (Node(name="a", operator=Join(), inputs=BOTH), Node(name="b", operator=Count(), inputs=("a",))),
            50,
            20 + 50 + 50,
        ),
    ],
)
def test_rows_are_counted_where_they_are_received(nodes: tuple[Node, ...], emits: int, rows: int) -> None:
    """A barrier waits behind the rows that its receiver has still to take, the sink among them."""
    workload = of(*nodes)
    assert [*emitted(workload)][-1] == (nodes[-1].name, emits)
    assert received(workload) == rows
