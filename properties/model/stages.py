"""The names of what may stand behind the sink: it takes no records, and commits what the sink has sealed."""

from __future__ import annotations

from .workload import SINK, Topology

COMMITTERS = ("committer", "global-committer")
"""In task names and histories; no input and no node can be called so."""


def width(topology: Topology, operator: str) -> int:
    """How many subtasks an operator has: a committer stands behind each of the sink's, the global one alone."""
    if operator in COMMITTERS:
        return topology.parallelism[SINK] if operator == COMMITTERS[0] else 1
    return topology.parallelism[operator]
