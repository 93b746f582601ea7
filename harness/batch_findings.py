"""Batches that left something else than streaming, as counterexamples: the first of each kind shrunk, kept and told.

The two ways of executing one job accuse each other, so that nobody's word is needed beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from ..properties.verdict import Violated
from ..reports.model import Counterexample, CounterexampleView, Size
from .batches import INVARIANT, BatchOutcome, both_ways
from .exit_codes import HarnessFailed
from .files import encode_scenario
from .findings import Finding, witness_of
from .known_failures import Cause
from .scenario import Scenario
from .shrink import shrink, size_of


def told(
    outcomes: Iterable[BatchOutcome],
    *,
    keep: Callable[[str, Scenario], str],
    replay_command: Callable[[str], str],
    found_s: float,
) -> list[Finding]:
    """The first of each kind of difference, shrunk; `keep` stores a scenario under a name and tells its path.

    Raises HarnessFailed when the two agree that differed: in virtual time it must come again.
    """
    groups: dict[str, list[BatchOutcome]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.index):
        if isinstance(outcome.verdict, Violated):
            groups.setdefault(outcome.verdict.difference, []).append(outcome)
    return [_finding(difference, group, keep, replay_command, found_s) for difference, group in groups.items()]


def _finding(
    difference: str,
    group: list[BatchOutcome],
    keep: Callable[[str, Scenario], str],
    replay_command: Callable[[str], str],
    found_s: float,
) -> Finding:
    first = group[0]
    if first.scenario is None:
        raise HarnessFailed(f"the scenario of batch {first.index} was not kept")
    began = time.perf_counter()

    def differs(smaller: Scenario) -> bool:
        verdict = both_ways(smaller)
        return isinstance(verdict, Violated) and verdict.difference == difference

    scenario = shrink(first.scenario, differs).scenario
    verdict = both_ways(scenario)
    if not isinstance(verdict, Violated):
        raise HarnessFailed(f"batch {first.index} differs in a search and is equal when run again")
    name = f"batch-{first.index}"
    tasks, records, faults = size_of(scenario)
    path = keep(name, scenario)
    counterexample = Counterexample(
        id=name,
        invariant=INVARIANT,
        scenario=path,
        story=f"Executed as a stream and as a batch one job leaves different rows: {verdict.message}.",
        replay=replay_command(path),
        size=Size(tasks=tasks, records=records, faults=faults),
        seconds_to_find=round(found_s, 3),
        seconds_to_shrink=round(time.perf_counter() - began, 3),
        difference=difference,
        scenarios=len(group),
    )
    view = CounterexampleView(
        id=name,
        invariant=INVARIANT,
        difference=difference,
        story=counterexample.story,
        paragraphs=(verdict.message,),
        witness=witness_of(verdict),
        scenario=msgspec.json.format(encode_scenario(scenario), indent=1).decode(),
        replay=counterexample.replay,
        size=counterexample.size,
        scenarios=counterexample.scenarios,
    )
    cause = Cause(invariant=INVARIANT, difference=difference, point="", subject="simulated")
    return Finding(cause=cause, counterexample=counterexample, view=view, confirmed=True)
