"""What Spark did for a piece of work: the nodes of its executed plans, with the rows that went through them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAME_ROWS = ("Project", "WholeStageCodegen", "AdaptiveSparkPlan", "ColumnarToRow")
"""nodes that pass on every row and do not count them"""


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that came to one place: `place` is driver, task (all rows to one of them) or broadcast."""

    place: str
    rows: int
    node: str


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node of an executed plan, with its metrics and those nodes that hand it rows."""

    name: str
    text: str
    metrics: dict[str, int]
    inputs: tuple[Node, ...]

    def __iter__(self) -> Iterator[Node]:
        yield self
        for one in self.inputs:
            yield from one


class Plans:
    """The plans that a session executes from now on."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._before = set(self._executions())

    def _executions(self) -> dict[int, Any]:
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        found = self._store.executionsList()
        return {one.executionId(): one for one in map(found.apply, range(found.size()))}

    @property
    def _store(self) -> Any:
        return self._spark._jsparkSession.sharedState().statusStore()

    def roots(self) -> list[Node]:
        """The plans that were executed since; a plan's root hands its rows to the driver."""
        return [self._root(number) for number in sorted(set(self._executions()) - self._before)]

    def _root(self, execution: int) -> Node:
        values = self._store.executionMetrics(execution)
        graph = self._store.planGraph(execution)
        nodes, edges = graph.allNodes(), graph.edges()
        inputs: dict[int, list[int]] = {}
        for edge in map(edges.apply, range(edges.size())):
            inputs.setdefault(edge.toId(), []).append(edge.fromId())
        known = {one.id(): one for one in map(nodes.apply, range(nodes.size()))}

        def node(number: int) -> Node:
            one = known[number]
            metrics: dict[str, int] = {}
            for metric in map(one.metrics().apply, range(one.metrics().size())):
                value = values.get(metric.accumulatorId())
                text = value.get() if value.isDefined() else ""
                if re.fullmatch(r"[\d,]+", text):
                    metrics[metric.name()] = int(text.replace(",", ""))
            return Node(
                name=one.name(),
                text=one.desc(),
                metrics=metrics,
                inputs=tuple(node(each) for each in inputs.get(number, ())),
            )

        givers = {each for many in inputs.values() for each in many}
        (root,) = (number for number in known if number in inputs and number not in givers) if inputs else known
        return node(root)


def gathered(roots: list[Node]) -> list[Gathered]:
    """All rows that came to one place."""
    found = [Gathered(place="driver", rows=_rows(root), node=root.name) for root in roots]
    for node in (one for root in roots for one in root):
        if node.name == "Exchange" and "SinglePartition" in node.text:
            found.append(Gathered(place="task", rows=node.metrics["shuffle records written"], node=node.text))
        if node.name == "BroadcastExchange":
            found.append(Gathered(place="broadcast", rows=node.metrics["number of output rows"], node=node.text))
    return found


def _rows(node: Node) -> int:
    """The rows that a node hands on."""
    if (rows := node.metrics.get("number of output rows")) is not None:
        return rows
    if limit := re.search(r"^(?:TakeOrderedAndProject\(limit=|CollectLimit )(\d+)", node.text):
        return int(limit[1])
    if node.name.startswith(SAME_ROWS):
        return _rows(node.inputs[0])
    raise LookupError(f"nothing says how many rows {node.name} hands on: {node.text}")
