"""The findings of a search's companion runs: one case of each kind of difference is shrunk and described.

A companion run has only one judge, whose violation counts.  A file of known failures is about jobs, so a violation here
always fails the verification.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from ...properties.model.verdict import Violated
from ...properties.spark.unasked import NEITHER
from ...reports.model import Counterexample, Size
from ..reference_engine.graphs.run import run_and_judge
from ..runtime.exit_codes import CutproofError, HarnessFailed, one_line
from ..scenario import files, system_files
from ..scenario.model import Scenario
from ..scenario.system_files import SystemFile
from ..search.batches import both_ways
from ..search.known_failures import Cause
from ..search.outcome import RUN_KINDS, AnyOutcome, BatchOutcome, Companion, SystemOutcome
from ..shrink.shrink import shrink, size_of
from ..shrink.systems import shrunk
from .findings import Finding, Keeping, view_of
from .system_story import sentences

AnyCompanion = SystemOutcome | BatchOutcome


class Smallest(msgspec.Struct, frozen=True, kw_only=True):
    """The shrunk case of a failure, and its description."""

    name: str
    verdict: Violated
    story: str
    """in one sentence"""
    paragraphs: tuple[str, ...]
    text: str
    """the text of the file that runs it again"""
    size: Size
    replay_options: tuple[str, ...] = ()
    """options of `cutproof replay` for the file"""


def grouped(outcomes: Iterable[AnyOutcome]) -> dict[tuple[str, str], list[AnyCompanion]]:
    """The violated companions by kind of companion and kind of difference, each in the order of their numbers."""
    groups: dict[tuple[str, str], list[AnyCompanion]] = {}
    for outcome in sorted(outcomes, key=lambda one: (RUN_KINDS.index(one.kind), one.index)):
        if isinstance(outcome, Companion) and isinstance(outcome.verdict, Violated):
            groups.setdefault((outcome.kind, outcome.verdict.difference), []).append(outcome)
    return groups


def companion_findings(
    outcomes: Iterable[AnyOutcome],
    keeping_with: Callable[[tuple[str, ...]], Keeping],
    failures: list[str],
) -> Iterator[Finding]:
    """The first companion of each kind of difference, shrunk; a failure to shrink is added to `failures`.

    `keeping_with` receives the options with which `cutproof replay` runs the file again.
    """
    for (_, difference), alike in grouped(outcomes).items():
        try:
            began = time.perf_counter()
            smallest = _smallest(alike[0], difference)
            keeping = keeping_with(smallest.replay_options)
            shrink_s = time.perf_counter() - began
            yield _finding(smallest, alike[0].invariant, keeping, shrink_s=shrink_s, alike=len(alike))
        except CutproofError as error:
            failures.append(one_line(error))


def _finding(smallest: Smallest, invariant: str, keeping: Keeping, *, shrink_s: float, alike: int) -> Finding:
    path = keeping.keep(smallest.name, smallest.text)
    counterexample = Counterexample(
        id=smallest.name,
        invariant=invariant,
        scenario=path,
        story=smallest.story,
        replay=keeping.replay_command(path),
        size=smallest.size,
        seconds_to_find=round(keeping.found_s, 3),
        seconds_to_shrink=round(shrink_s, 3),
        difference=smallest.verdict.difference,
        scenarios=alike,
        judges=1,
        not_asked=NEITHER,
    )
    return Finding(
        cause=Cause(invariant=invariant, difference=smallest.verdict.difference, point="", subject="simulated"),
        counterexample=counterexample,
        view=view_of(counterexample, smallest.verdict, paragraphs=smallest.paragraphs, scenario=smallest.text),
        confirmed=True,
    )


def _smallest(outcome: AnyCompanion, difference: str) -> Smallest:
    """Shrink a companion; raises HarnessFailed if it is not violated again, as it must be in virtual time."""
    match outcome:
        case SystemOutcome():
            return _smallest_system(outcome, difference)
        case BatchOutcome():
            return _smallest_batch(outcome, difference)


def _smallest_system(outcome: SystemOutcome, difference: str) -> Smallest:
    """Shrink a system of processes whose general snapshot is violated; causality alone judges it."""
    if outcome.system is None:
        raise HarnessFailed(f"system {outcome.number} was not kept")
    name = f"system-{outcome.number}"
    file = SystemFile(name=name, system=shrunk(outcome.system, difference))
    run = run_and_judge(file.system)
    if not isinstance(run.verdict, Violated):
        raise HarnessFailed(f"system {outcome.number} fails in a search, but holds when it is run again")
    processes = len(file.system.processes)
    return Smallest(
        name=name,
        verdict=run.verdict,
        story=f"In a system of {processes} processes {run.verdict.message}.",
        paragraphs=tuple(sentences(run.history)),
        text=system_files.text_of(file),
        size=Size(tasks=processes, records=len(file.system.acts), faults=len(file.system.breaches)),
    )


def _smallest_batch(outcome: BatchOutcome, difference: str) -> Smallest:
    """Shrink a job whose batch execution has another final result than its streaming execution."""
    if outcome.scenario is None:
        raise HarnessFailed(f"the scenario of batch {outcome.number} was not kept")

    def differs(smaller: Scenario) -> bool:
        verdict = both_ways(smaller)
        return isinstance(verdict, Violated) and verdict.difference == difference

    scenario = shrink(outcome.scenario, differs).scenario
    verdict = both_ways(scenario)
    if not isinstance(verdict, Violated):
        raise HarnessFailed(f"batch {outcome.number} differs in a search, but is equal when it is run again")
    tasks, records, faults = size_of(scenario)
    return Smallest(
        name=f"batch-{outcome.number}",
        verdict=verdict,
        story=f"Executed as a stream and as a batch one job leaves different rows: {verdict.message}.",
        paragraphs=(verdict.message,),
        text=files.text_of(scenario),
        size=Size(tasks=tasks, records=records, faults=faults),
        replay_options=("--batch",),
    )
