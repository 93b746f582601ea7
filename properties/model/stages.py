"""The names of the committers behind the sink.  A committer takes no records; it commits what the sink has sealed."""

from __future__ import annotations

from .workload import SINK, Topology

COMMITTERS = ("committer", "global-committer")
"""Their names in tasks and histories; no input and no node can have these names."""


def width(topology: Topology, operator: str) -> int:
    """How many subtasks an operator has.  Each sink subtask has one committer; the global committer is a single
    subtask."""
    if operator in COMMITTERS:
        return topology.parallelism[SINK] if operator == COMMITTERS[0] else 1
    return topology.parallelism[operator]
