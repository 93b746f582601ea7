"""Shrinking on a subject: what counts as the same failure, and how much may be run for it.

In virtual time a failure is a function of its scenario, and a run costs milliseconds.  In real time a failure may show
or not, and a run costs seconds.  There the subject in virtual time shrinks first, and the result is confirmed in real
time.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..runtime.exit_codes import CutproofError
from ..scenario.model import Scenario
from ..subject.port import CountingEvents, Subject
from ..subject.run import run, violates_like
from .shrink import MAX_RUNS, Shrunk, shrink

REAL_TIME_RUNS = 60
REAL_TIME_S = 120.0
"""how long scenarios are run again for one cause, if a run costs seconds: to shrink, and to determine the rate"""
REPEATING = 1 / 3
"""the part of this time that shrinking leaves for repetitions"""
LONGER = 4
"""how many times as many events a smaller scenario may have in virtual time"""
ALWAYS = 1_000
"""and so many more"""
CONFIRMATIONS = 5
"""within how many runs a case that was shrunk elsewhere has to show its failure"""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the run that found a failure has shown."""

    violated: frozenset[str]
    """the invariants that it violated"""
    run_s: float = 0.0
    """how long it took"""


def fails_like(
    subject: Subject, scenario: Scenario, invariant: str, difference: str, *, among: frozenset[str] | None = None
) -> bool:
    """Whether the scenario violates the invariant by the same kind of difference, and no invariants but `among`.

    An error of the environment is no answer: it is raised.
    """
    try:
        return violates_like(subject, scenario, invariant, difference, among=among)
    except CutproofError:
        raise
    except Exception:  # a smaller scenario that breaks the subject is another failure, not this one
        return False


def for_smaller(subject: Subject) -> Subject:
    """The subject of which the latest run failed, for smaller scenarios that are to fail in the same way.

    A smaller scenario has about as many events.  Some make a wrong engine fail for ever, a hundred times as long as the
    run that was found.  Those are cut off, which says that they fail in another way.
    """
    return subject.within(LONGER * subject.events + ALWAYS) if isinstance(subject, CountingEvents) else subject


def shrink_on(
    subject: Subject,
    scenario: Scenario,
    invariant: str,
    difference: str,
    *,
    go_on: Callable[[], None] = lambda: None,
    max_runs: int = MAX_RUNS,
    max_seconds: float | None = None,
    left_s: float = 0.0,
    seen: Seen | None = None,
) -> Shrunk:
    """A smaller scenario that violates no other invariant than the given one does.

    Without that rule, a workload that lost its single right answer would pass for a smaller case of the same bug.
    `go_on` is called before each run; an exception that it raises ends the shrinking.  Without `seen`, the given
    scenario is run first.
    """
    if seen is None:
        seen = Seen(violated=frozenset(run(subject, scenario).judgement.violated))
        subject = for_smaller(subject)
    among = seen.violated | {invariant}

    def still_fails(smaller: Scenario) -> bool:
        go_on()
        return fails_like(subject, smaller, invariant, difference, among=among)

    return shrink(scenario, still_fails, max_runs=max_runs, max_seconds=max_seconds, run_s=seen.run_s, left_s=left_s)


def shrink_in_real_time(
    subject: Subject,
    stand_in: Subject | None,
    scenario: Scenario,
    invariant: str,
    difference: str,
    *,
    go_on: Callable[[], None] = lambda: None,
    seen: Seen | None = None,
    limit_s: float = REAL_TIME_S,
) -> Shrunk:
    """Shrink in virtual time, if the failure shows there and the subject confirms the result; else shrink on the
    subject.

    `limit_s` is the time for the runs of one cause, of which shrinking leaves a part for repetitions.
    """
    if stand_in is not None and fails_like(stand_in, scenario, invariant, difference):
        shrunk = shrink_on(stand_in, scenario, invariant, difference, go_on=go_on)
        for _ in range(CONFIRMATIONS):
            go_on()
            if fails_like(subject, shrunk.scenario, invariant, difference):
                return shrunk
    return shrink_on(
        subject,
        scenario,
        invariant,
        difference,
        go_on=go_on,
        max_runs=REAL_TIME_RUNS,
        max_seconds=limit_s,
        left_s=limit_s * REPEATING,
        seen=seen,
    )
