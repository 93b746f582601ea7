"""A system of processes whose general snapshot is violated, shrunk: only causality judges it."""

from __future__ import annotations

from ...properties.model.verdict import Violated
from ...reports.model import Size
from ..reference_engine.graphs.run import run_and_judge
from ..runtime.exit_codes import HarnessFailed
from ..scenario.system_files import SystemFile, text_of
from ..search.systems import SystemOutcome
from ..shrink.systems import shrunk
from .companion_findings import Smallest
from .system_story import sentences

INVARIANT = "consistent-cut"


def smallest(outcome: SystemOutcome, difference: str) -> Smallest:
    """Raises HarnessFailed when the system holds that was violated: in virtual time it must come again."""
    if outcome.system is None:
        raise HarnessFailed(f"system {outcome.number} was not kept")
    name = f"system-{outcome.number}"
    file = SystemFile(name=name, system=shrunk(outcome.system, difference))
    run = run_and_judge(file.system)
    if not isinstance(run.verdict, Violated):
        raise HarnessFailed(f"system {outcome.number} fails in a search and holds when run again")
    processes = len(file.system.processes)
    return Smallest(
        name=name,
        verdict=run.verdict,
        story=f"In a system of {processes} processes {run.verdict.message}.",
        paragraphs=tuple(sentences(run.history)),
        text=text_of(file),
        size=Size(tasks=processes, records=len(file.system.acts), faults=len(file.system.breaches)),
    )
