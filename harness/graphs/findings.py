"""Violated systems as counterexamples: grouped by what differs, the first of each group shrunk, kept and told.

Causality alone judges a system, so that a violation needs nobody's word beside it; and a file of known
failures is about jobs: what is wrong here is red.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from ...properties.verdict import Violated
from ...reports.model import Counterexample, CounterexampleView, Size
from ..exit_codes import HarnessFailed
from ..findings import Finding, witness_of
from ..known_failures import Cause
from .beside import SystemOutcome
from .files import SystemFile, text_of
from .run import run_and_judge
from .shrink import shrunk
from .story import sentences

INVARIANT = "consistent-cut"


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """The systems of a search that are violated in one way, the first of them first."""

    difference: str
    systems: tuple[SystemOutcome, ...]


def grouped(outcomes: Iterable[SystemOutcome]) -> list[Failing]:
    """The violated ones by their kind of difference, in the order of their numbers."""
    groups: dict[str, list[SystemOutcome]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.number):
        if isinstance(outcome.verdict, Violated):
            groups.setdefault(outcome.verdict.difference, []).append(outcome)
    return [Failing(difference=difference, systems=tuple(systems)) for difference, systems in groups.items()]


def told(
    failing: Failing, *, keep: Callable[[str, SystemFile], str], replay_command: Callable[[str], str], found_s: float
) -> Finding:
    """Its first system, shrunk; `keep` stores a file under a name and tells its path.

    Raises HarnessFailed when the system holds that was violated: in virtual time it must come again.
    """
    first = failing.systems[0]
    if first.system is None:
        raise HarnessFailed(f"system {first.number} was not kept")
    name = f"system-{first.number}"
    began = time.perf_counter()
    file = SystemFile(name=name, system=shrunk(first.system, failing.difference))
    run = run_and_judge(file.system)
    if not isinstance(run.verdict, Violated):
        raise HarnessFailed(f"system {first.number} fails in a search and holds when run again")
    path = keep(name, file)
    counterexample = Counterexample(
        id=name,
        invariant=INVARIANT,
        scenario=path,
        story=f"In a system of {len(file.system.processes)} processes {run.verdict.message}.",
        replay=replay_command(path),
        size=Size(tasks=len(file.system.processes), records=len(file.system.acts), faults=len(file.system.breaches)),
        seconds_to_find=round(found_s, 3),
        seconds_to_shrink=round(time.perf_counter() - began, 3),
        difference=failing.difference,
        scenarios=len(failing.systems),
    )
    view = CounterexampleView(
        id=name,
        invariant=INVARIANT,
        difference=failing.difference,
        story=counterexample.story,
        paragraphs=tuple(sentences(run.history)),
        witness=witness_of(run.verdict),
        scenario=text_of(file),
        replay=counterexample.replay,
        size=counterexample.size,
        scenarios=counterexample.scenarios,
    )
    cause = Cause(invariant=INVARIANT, difference=failing.difference, point="", subject="simulated")
    return Finding(cause=cause, counterexample=counterexample, view=view, confirmed=True)
