"""The workload and the topology of a job that lacks some of the workload's nodes (SNAP-5).

A workload has every node that some job of a run has.  An upgrade adds nodes to the job, or removes some.  Where a job
lacks a node, the rows that the node would take go on to the node's reader as they are.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from .workload import Edge, Topology, Workload


def first_absent(workload: Workload) -> tuple[str, ...]:
    """The nodes that the first job of a run does not have."""
    return tuple(sorted(node.name for node in workload.nodes if node.later))


def without(workload: Workload, absent: Collection[str]) -> Workload:
    """The workload of a job that lacks these nodes, each of which has one input."""
    if not absent:
        return workload
    instead: dict[str, str] = {}
    nodes = []
    for node in workload.nodes:
        inputs = tuple(instead.get(name, name) for name in node.inputs)
        if node.name in absent:
            instead[node.name] = inputs[0]
        else:
            nodes.append(msgspec.structs.replace(node, inputs=inputs))
    return msgspec.structs.replace(workload, nodes=tuple(nodes))


def laid_without(topology: Topology, absent: Collection[str]) -> Topology:
    """The topology of a job that lacks these nodes.

    Rows are distributed to the reader of such a node as they were from the node; on a forward edge, as they were to it.
    """
    if not absent:
        return topology
    edges = list(topology.edges)
    for name in topology.parallelism:
        if name not in absent:
            continue
        before = next(edge for edge in edges if edge.receiver == name)
        behind = next(edge for edge in edges if edge.sender == name)
        how = before.partitioning if behind.partitioning == "forward" else behind.partitioning
        joined = Edge(sender=before.sender, receiver=behind.receiver, partitioning=how)
        edges = [joined if edge is behind else edge for edge in edges if edge is not before]
    parallelism = {name: number for name, number in topology.parallelism.items() if name not in absent}
    return msgspec.structs.replace(topology, parallelism=parallelism, edges=tuple(edges))
