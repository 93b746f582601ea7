"""Findings of the companion runs (systems and batches): one for each kind of difference.

A companion run has one judge, so a violation needs no second one.  A file of known failures is about
jobs, so a violation here always fails the verification.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from ...properties.model.verdict import Violated
from ...properties.spark.unasked import NEITHER
from ...reports.model import Counterexample, Size
from ..runtime.exit_codes import CutproofError, one_line
from ..search.batches import BatchOutcome
from ..search.known_failures import Cause
from ..search.systems import SystemOutcome
from .findings import Finding, Keeping, view_of

Ran = TypeVar("Ran", SystemOutcome, BatchOutcome)


class Smallest(msgspec.Struct, frozen=True, kw_only=True):
    """The shrunk case of a failure, and its description."""

    name: str
    verdict: Violated
    story: str
    """one sentence"""
    paragraphs: tuple[str, ...]
    text: str
    """of the file that runs it again"""
    size: Size


def grouped(outcomes: Iterable[Ran]) -> dict[str, list[Ran]]:
    """The violated ones by their kind of difference, in the order of their numbers."""
    groups: dict[str, list[Ran]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.number):
        if isinstance(outcome.verdict, Violated):
            groups.setdefault(outcome.verdict.difference, []).append(outcome)
    return groups


def companion_findings(
    outcomes: Iterable[Ran],
    invariant: str,
    smallest_of: Callable[[Ran, str], Smallest],
    keeping: Keeping,
    failures: list[str],
) -> Iterator[Finding]:
    """The first of each kind of difference, shrunk by `smallest_of`; what that cannot shrink goes to `failures`."""
    for difference, alike in grouped(outcomes).items():
        try:
            began = time.perf_counter()
            smallest = smallest_of(alike[0], difference)
            yield _finding(smallest, invariant, keeping, shrink_s=time.perf_counter() - began, alike=len(alike))
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
