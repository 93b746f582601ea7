"""Companion runs as batches (FIN-6): one for every `EVERY` scenarios of a search.

The scenario's job gets inputs that end and runs to its end as a stream, through its
faults.  The same job runs as a batch.  Both must commit the same rows.  This compares
the two executions; PySpark computes the expected rows of the stream elsewhere.
"""

from __future__ import annotations

from typing import ClassVar

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


class BatchOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="batch"):
    """What a search keeps of one comparison."""

    kind: ClassVar = "batch"
    invariant: ClassVar = INVARIANT
    number: int
    """that of its scenario"""
    verdict: Verdict
    scenario: Scenario | None = None
    """kept where the two differ"""

    @property
    def index(self) -> int:
        """The scenario that it stands beside."""
        return self.number

    @property
    def counts(self) -> dict[str, int]:
        """What a search adds up over all of them."""
        return {}


class CompanionBatches:
    """The scenarios that run as a batch too."""

    def number_at(self, index: int) -> int | None:
        return index if index % EVERY == MEETS else None

    def name_of(self, number: int) -> str:
        return f"the batch of scenario {number}"

    def run(self, number: int, scenario: Scenario) -> BatchOutcome:
        """Scenario `number` both ways; raises what the engine raises."""
        bounded = as_bounded(scenario)
        verdict = both_ways(bounded)
        kept = bounded if isinstance(verdict, Violated) else None
        return BatchOutcome(number=number, verdict=verdict, scenario=kept)


def both_ways(scenario: Scenario) -> Verdict:
    """Whether the batch of a bounded scenario leaves what streaming left."""
    return compare(scenario, SimulatedSubject().run(scenario), execute(scenario), None).equal
