"""A batch that left something else than streaming, shrunk: the two ways of executing one job accuse each other."""

from __future__ import annotations

from ...properties.model.verdict import Violated
from ...reports.model import Size
from ..runtime.exit_codes import HarnessFailed
from ..scenario.files import text_of
from ..scenario.model import Scenario
from ..search.batches import BatchOutcome, both_ways
from ..shrink.shrink import shrink, size_of
from .companion_findings import Smallest


def smallest(outcome: BatchOutcome, difference: str) -> Smallest:
    """Raises HarnessFailed when the two agree that differed: in virtual time it must come again."""
    if outcome.scenario is None:
        raise HarnessFailed(f"the scenario of batch {outcome.number} was not kept")

    def differs(smaller: Scenario) -> bool:
        verdict = both_ways(smaller)
        return isinstance(verdict, Violated) and verdict.difference == difference

    scenario = shrink(outcome.scenario, differs).scenario
    verdict = both_ways(scenario)
    if not isinstance(verdict, Violated):
        raise HarnessFailed(f"batch {outcome.number} differs in a search and is equal when run again")
    tasks, records, faults = size_of(scenario)
    return Smallest(
        name=f"batch-{outcome.number}",
        verdict=verdict,
        story=f"Executed as a stream and as a batch one job leaves different rows: {verdict.message}.",
        paragraphs=(verdict.message,),
        text=text_of(scenario),
        size=Size(tasks=tasks, records=records, faults=faults),
    )
