"""Which scenario of a failure is kept, if its runs differ: one that is seen to be violated again.

Shrinking accepts a smaller scenario that was violated once, which a race may have decided.  So the shrunk scenario is
repeated.  If no repetition is violated, half of the steps of shrinking are taken back, then again half of those that
are left, down to the scenario that was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from ...properties.model.words import plural
from ..shrink.repetition import Rate, repeat
from ..shrink.shrink import Shrunk
from ..subject.port import Subject
from ..subject.run import Result

REPETITIONS = 10
"""how often a counterexample in real time is run again to determine its rate"""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The run that is described, and how it was come by."""

    result: Result
    rate: Rate = Rate()
    """how many of its scenario's repetitions were violated; of no run if it was not run again"""
    words: str = ""
    """how its scenario was shrunk, and how often it was violated again"""


def keep(subject: Subject, found: Result, shrunk: Shrunk, shows: Callable[[Result], bool], *, limit_s: float) -> Kept:
    """The smallest scenario of the shrinking that is violated again; else the run that was found.

    `shows` says whether a run is violated in the same way.  `limit_s` is the time for all runs of the failure, those of
    shrinking included.
    """
    deadline = time.monotonic() + limit_s - shrunk.seconds
    longest_s = max(shrunk.longest_s, found.run_s)
    rates: list[Rate] = []
    for steps in _steps_back(shrunk):
        left_s = deadline - time.monotonic()
        if left_s < longest_s:
            break
        scenario = shrunk.path[steps - 1] if steps else found.scenario
        again = repeat(subject, scenario, REPETITIONS, shows, timeline=True, max_seconds=left_s)
        rates.append(again.rate)
        if again.rate.reproduced:
            return Kept(
                result=again.result, rate=again.rate, words=_again_in_words(shrunk, rates, bool(steps), limit_s)
            )
    repeated = len(rates) == len(list(_steps_back(shrunk)))
    rate = rates[-1] if repeated else Rate()
    return Kept(result=found, rate=rate, words=_once_in_words(shrunk, rates, rate, limit_s, longest_s))


def _steps_back(shrunk: Shrunk) -> Iterator[int]:
    """How many steps of shrinking are kept in each try; 0 is the scenario that was found."""
    steps = len(shrunk.path)
    while steps:
        yield steps
        steps //= 2
    yield 0


def _again_in_words(shrunk: Shrunk, rates: list[Rate], smaller: bool, limit_s: float) -> str:
    *missed, rate = rates
    words = f"Rate: violated in {rate} runs of this scenario."
    if missed:
        kept = "this larger one is kept" if smaller else "the scenario is kept as it was found"
        return f"A smaller scenario was violated once, and in {missed[0]} repetitions; so {kept}. {words}"
    return f"{_bound_in_words(shrunk, limit_s)} {words}" if shrunk.early else words


def _once_in_words(shrunk: Shrunk, rates: list[Rate], rate: Rate, limit_s: float, longest_s: float) -> str:
    """The run that was found is described: no repetition was violated, or there was no time for one."""
    if rate.runs:
        seen = f"Violated when it was found; {rate} repetitions of this scenario were violated."
        more = "To see how often it is violated, replay it with a larger --runs."
    else:
        seen = "Violated when it was found; there was no time to run this scenario again."
        more = _limit_in_words(limit_s, longest_s)
    again = f"in {rates[0]} repetitions" if rates else "there was no time to run it again"
    smaller = f"A smaller scenario was violated once, and {again}; so this one is kept as it was found."
    described = "The run that is described is the one that was found."
    return " ".join(filter(None, (seen, smaller if shrunk.path else "", described, more)))


def _bound_in_words(shrunk: Shrunk, limit_s: float) -> str:
    if not shrunk.runs:
        return f"The scenario was not shrunk. {_limit_in_words(limit_s, shrunk.longest_s)}"
    after = f"{plural(shrunk.runs, 'run')} in {shrunk.seconds:.0f} s"
    return (
        f"Shrinking was stopped after {after} (--shrink-time is {limit_s:g} s): this may not be the smallest scenario."
    )


def _limit_in_words(limit_s: float, longest_s: float) -> str:
    return f"A run took {longest_s:.0f} s, and all may take {limit_s:g} s (--shrink-time)."
