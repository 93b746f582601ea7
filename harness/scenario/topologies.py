"""The default topology of a workload: edges that fit, two subtasks for each operator."""

from __future__ import annotations

from collections.abc import Mapping

from ...properties.model.workload import KEYED, SINK, Edge, Topology, Workload

DEFAULT_PARALLELISM = 2


def lay_out(workload: Workload, parallelism: Mapping[str, int] | None = None, *, key_groups: int = 16) -> Topology:
    """A topology for the workload: hash edges into keyed operators, broadcast edges for rules, forward edges between
    operators of equal parallelism, else rebalance."""
    given = parallelism or {}
    names = [source.name for source in workload.inputs] + [node.name for node in workload.nodes] + [SINK]
    width = {name: given.get(name, DEFAULT_PARALLELISM) for name in names}
    keyed = {node.name for node in workload.nodes if isinstance(node.operator, KEYED)}
    broadcast = {node.broadcast_input for node in workload.nodes}
    joined = [(sender, node.name) for node in workload.nodes for sender in node.inputs]
    edges = [
        Edge(
            sender=sender,
            receiver=receiver,
            partitioning="broadcast"
            if sender in broadcast
            else _partitioning(width, sender, receiver, receiver in keyed),
        )
        for sender, receiver in [*joined, (workload.output, SINK)]
    ]
    return Topology(parallelism=width, edges=tuple(edges), key_groups=key_groups)


def _partitioning(width: Mapping[str, int], sender: str, receiver: str, keyed: bool) -> str:
    if keyed:
        return "hash"
    return "forward" if width.get(sender) == width[receiver] else "rebalance"
