"""Companion runs as batches (FIN-6): one for every `EVERY` scenarios of a search.

The scenario's job gets inputs that end, and runs to its end as a stream, through its faults.  The same job runs as a
batch.  Both must commit the same rows.  This compares the two executions with each other; elsewhere PySpark computes
the expected rows of the stream.
"""

from __future__ import annotations

from ...properties.model.verdict import Verdict, Violated
from ..reference_engine.streaming_batch import as_bounded, compare, execute
from ..reference_engine.subjects.simulated import SimulatedSubject
from ..scenario.model import Scenario
from .kind import Drawn, Ran
from .outcome import BatchOutcome

EVERY = 40
"""how many scenarios there are for one batch: a batch costs as much as one of them"""
MEETS = 30
"""the place, within each `EVERY` scenarios, of the one that also runs as a batch"""


class CompanionBatches:
    """The batches of a search; a batch has the number of its scenario."""

    name = BatchOutcome.kind

    def number_at(self, index: int) -> int | None:
        return index if index % EVERY == MEETS else None

    def run(self, number: int, drawn: Drawn) -> Ran:
        return Ran(outcome=self.judged(number, drawn.scenario))

    def judged(self, number: int, scenario: Scenario) -> BatchOutcome:
        """Run scenario `number` both ways and compare; raises what the engine raises."""
        bounded = as_bounded(scenario)
        verdict = both_ways(bounded)
        kept = bounded if isinstance(verdict, Violated) else None
        return BatchOutcome(index=number, number=number, verdicts={BatchOutcome.invariant: verdict}, scenario=kept)


def both_ways(scenario: Scenario) -> Verdict:
    """Whether the batch execution of a bounded scenario commits the rows that the stream does."""
    return compare(scenario, SimulatedSubject().run(scenario), execute(scenario), None).equal
