"""Batch executions that a search holds against streaming (FIN-6), one beside every `EVERY` scenarios.

The scenario's job is given inputs that end and runs to its end, through its faults,
as a stream; the same job runs as a batch; both leave the same.  What streaming owes
is PySpark's word elsewhere: here the two ways of executing one job are compared.
"""

from __future__ import annotations

import msgspec

from ...properties.model.verdict import Verdict, Violated
from ..reference_engine.streaming_batch import as_bounded, compare, execute
from ..reference_engine.subjects.simulated import SimulatedSubject
from ..scenario.model import Scenario

EVERY = 40
"""scenarios to one batch: it costs as much as one of them"""
MEETS = 30
"""which of so many it is"""
INVARIANT = "exactly-once"


class BatchOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a search keeps of one comparison."""

    number: int
    """that of its scenario"""
    verdict: Verdict
    scenario: Scenario | None = None
    """kept where the two differ"""


def companion_batch(index: int, scenario: Scenario) -> BatchOutcome:
    """Scenario `index` both ways; raises what the engine raises."""
    bounded = as_bounded(scenario)
    verdict = both_ways(bounded)
    return BatchOutcome(number=index, verdict=verdict, scenario=bounded if isinstance(verdict, Violated) else None)


def both_ways(scenario: Scenario) -> Verdict:
    """Whether the batch of a bounded scenario leaves what streaming left."""
    return compare(scenario, SimulatedSubject().run(scenario), execute(scenario), None).equal
