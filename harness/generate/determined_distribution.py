"""Replaces rebalance edges where a judge could not know which row went to which subtask."""

from __future__ import annotations

import msgspec

from ...properties.model.workload import Topology, Workload
from ...properties.reconstruct.replay import is_determined
from ..scenario.model import Scenario
from .choices import Choices

LEFT_OPEN_PERCENT = 10
"""how often the rebalance edges stay nevertheless, because the other invariants must hold there too"""


def made_distinct(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario, mostly with hash edges in place of those rebalance edges after which a judge cannot tell rows
    apart.

    This is only needed if the expected rows follow from the applied records: with barriers that overtake, and without
    exactly-once.
    """
    engine = scenario.engine
    follows_applies = engine.alignment != "aligned" or engine.guarantee != "exactly-once"
    if not follows_applies or is_determined(scenario.workload, scenario.topology, every_attempt=True):
        return scenario
    if choices.percent(LEFT_OPEN_PERCENT):
        return scenario
    return msgspec.structs.replace(scenario, topology=_by_key(scenario.workload, scenario.topology))


def _by_key(workload: Workload, topology: Topology) -> Topology:
    """Replace rebalance edges by hash edges, the last one first, until the distribution is determined."""
    edges = list(topology.edges)
    for index in reversed(range(len(edges))):
        if edges[index].partitioning == "rebalance" and not is_determined(workload, topology, every_attempt=True):
            edges[index] = msgspec.structs.replace(edges[index], partitioning="hash")
            topology = msgspec.structs.replace(topology, edges=tuple(edges))
    return topology
