"""A scenario run again and again: how often it shows a result, and the first run that does.

In virtual time one run is enough.  In real time a race may be won or lost, so a counterexample has a rate, which is
reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from ...properties.model.verdict import INVARIANTS, Violated
from ..scenario.model import Scenario
from ..subject.port import Subject
from ..subject.run import Result, run


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """In how many of its runs a scenario showed the same result."""

    reproduced: int = 0
    runs: int = 0

    def __str__(self) -> str:
        return f"{self.reproduced} of {self.runs}"


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """Some runs of one scenario, and the one that is described."""

    result: Result
    """the first run that shows it; the first of all runs, if none does"""
    rate: Rate


def repeat(
    subject: Subject,
    scenario: Scenario,
    runs: int,
    shows: Callable[[Result], bool],
    *,
    timeline: bool = False,
    max_seconds: float | None = None,
    on_run: Callable[[int], None] | None = None,
) -> Repeated:
    """Run the scenario so many times, at least once; no run begins that would end after `max_seconds` if it took as
    long as the longest so far.

    `on_run` is called after each run with the number of runs so far.
    """
    began = time.monotonic()
    kept = run(subject, scenario, timeline=timeline)
    found, count, longest_s = int(shows(kept)), 1, kept.run_s
    while True:
        if on_run is not None:
            on_run(count)
        if count >= runs or (max_seconds is not None and time.monotonic() + longest_s - began >= max_seconds):
            return Repeated(result=kept, rate=Rate(reproduced=found, runs=count))
        result = run(subject, scenario, timeline=timeline)
        count, longest_s = count + 1, max(longest_s, result.run_s)
        if shows(result):
            kept = kept if found else result
            found += 1


def violates(invariant: str, difference: str = "") -> Callable[[Result], bool]:
    """Whether a run violates the invariant; by that kind of difference, if one is named."""

    def shows(result: Result) -> bool:
        verdict = result.judgement.verdicts.get(invariant)
        return isinstance(verdict, Violated) and difference in ("", verdict.difference)

    return shows


def violates_alike(expected: str = "") -> Callable[[Result], bool]:
    """Whether a run violates the expected invariant; without one, the invariant that the first violating run
    violates."""
    first = expected if expected in INVARIANTS else ""

    def shows(result: Result) -> bool:
        nonlocal first
        violated = result.judgement.violated
        first = first or next(iter(violated), "")
        return first in violated

    return shows
