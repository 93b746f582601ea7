"""The first part of a night: every failure of the bank is run again.

In virtual time one run decides.  In real time a failure may show in some runs only: up to `RUNS`, fewer once it is
clear.  A failure that does not show is fixed if its scenario still reaches what it needs, its faults and a planted
defect, and its invariant was exercised and holds.  If not, the scenario that was drawn for it is drawn again with the
present generator, and run.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...properties.model.history import FaultFired, History
from ...properties.model.verdict import Holds, Violated
from ...reports.nights.model import Failure, Replay, Status
from ..counterexamples.causes import point_of
from ..runtime.exit_codes import CutproofError
from ..scenario.model import Scenario
from ..subject.port import Subject
from ..subject.run import Result, run
from .identity import fired_in
from .index import Standing

RUNS = 10
"""the most runs of one failure in real time"""
CLEAR = 3
"""so many runs decide, if all were violated"""
CHANCE = 0.05
"""A failure that shows in some runs only is fixed if so many runs hold, in one night or several, that they would by
chance in less than this share of cases, at the rate at which it showed before."""
CLEARLY_FLAKY = 5
"""so many runs decide, if some were violated"""

Redraw = Callable[[Failure], Scenario]
"""the scenario that was drawn for a failure, drawn again"""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A replay, and the run that PySpark is asked about: the first violated one, or the last."""

    replay: Replay
    result: Result | None = None
    other: Result | None = None
    """a run that does not show the failure, and violates something else: another failure, perhaps a new one"""


class Replayer:
    """Replays the failures of one subject."""

    def __init__(self, subject: Subject, defect: str, redraw: Redraw, guard: Callable[[Callable[[], Result]], Result]):
        """`defect`: the one that is planted tonight.  `guard` calls its argument where an interruption may come."""
        self._subject = subject
        self._defect = defect
        self._redraw = redraw
        self._guard = guard

    def replayed(self, failure: Failure, scenario: Scenario, before: Standing | None) -> Seen:
        """Run a failure's scenario again; raises CutproofError if the environment failed."""
        try:
            seen = self._seen(failure, scenario)
        except CutproofError:
            raise
        except Exception as error:  # the subject refuses it, or cannot run it any more
            words = f"its scenario could not be run: {' '.join(str(error).split())}"
            return Seen(replay=Replay(failure=failure.id, status="not_reached", words=words))
        by_chance = self._subject.capabilities.real_time
        return msgspec.structs.replace(seen, replay=_with_the_past(seen.replay, before, by_chance=by_chance))

    def _seen(self, failure: Failure, scenario: Scenario) -> Seen:
        results = self._runs(failure, scenario)
        violated = [one for one in results if violates(one, failure)]

        other = next((one for one in results if one.judgement.violated), None)

        def seen(status: Status, result: Result, words: str = "") -> Seen:
            replay = Replay(failure=failure.id, status=status, runs=len(results), violated=len(violated), words=words)
            return Seen(replay=replay, result=result, other=None if violated else other)

        if violated:
            return seen("still_failing" if len(violated) == len(results) else "flaky", violated[0])
        for one in results:
            if isinstance(verdict := one.judgement.verdicts.get(failure.invariant), Violated):
                return seen(
                    "not_reached", other or one, f"{failure.invariant} is violated in another way: {verdict.difference}"
                )
        if reached := sum(self._reaches(failure, one) for one in results):
            fixed = seen("fixed", other or results[-1])
            return msgspec.structs.replace(fixed, replay=self._held(fixed.replay, reached))
        return self._from_its_seed(failure, seen("not_reached", other or results[-1]))

    def _runs(self, failure: Failure, scenario: Scenario) -> list[Result]:
        results: list[Result] = []
        while not self._is_clear([violates(one, failure) for one in results]):
            results.append(self._guard(lambda: run(self._subject, scenario)))
        return results

    def _is_clear(self, violated: list[bool]) -> bool:
        if not self._subject.capabilities.real_time:
            return bool(violated)
        if len(violated) >= RUNS or (len(violated) >= CLEAR and all(violated)):
            return True
        return len(violated) >= CLEARLY_FLAKY and any(violated)

    def _reaches(self, failure: Failure, result: Result) -> bool:
        """Whether the failure's invariant holds in a run that has reached what the failure needs.  A planted defect
        counts if it is planted still: without it, the engine is mended."""
        faults = set(failure.fired) <= set(fired_in(result.history))
        return faults and holds(result, failure) and self._reaches_defect(failure, result.history)

    def _held(self, replay: Replay, runs: int) -> Replay:
        return msgspec.structs.replace(replay, held=runs) if self._subject.capabilities.real_time else replay

    def _reaches_defect(self, failure: Failure, history: History) -> bool:
        return not failure.defect or failure.defect != self._defect or history.defect_reached

    def _from_its_seed(self, failure: Failure, seen: Seen) -> Seen:
        """Look for a failure that its scenario no longer reaches in the scenario that was drawn for it."""
        words = "what it needs is no longer reached, so nothing is known about it"
        lost = msgspec.structs.replace(seen.replay, words=words)
        seen = msgspec.structs.replace(seen, replay=lost)
        try:
            drawn = self._redraw(failure)
            result = self._guard(lambda: run(self._subject, drawn))
        except CutproofError:
            raise
        except Exception:  # the generator has changed, or the subject can no longer run it
            return seen
        if violates(result, failure):
            words = "its scenario no longer reaches it; it was found again from its seed"
            found = msgspec.structs.replace(
                lost, status="still_failing", runs=1, violated=1, found_again=True, words=words
            )
            return Seen(replay=found, result=result)
        same_point = failure.point in ("", *_points(drawn, result.history))
        if same_point and holds(result, failure) and self._reaches_defect(failure, result.history):
            words = "its scenario no longer reaches it; the one drawn from its seed does, and holds"
            lost = self._held(msgspec.structs.replace(lost, status="fixed", words=words), 1)
        other = seen.other or (result if result.judgement.violated else None)
        return Seen(replay=lost, result=other or (result if lost.status == "fixed" else seen.result), other=other)


def violates(result: Result, failure: Failure) -> bool:
    """Whether a run violates the failure's invariant by the same kind of difference."""
    verdict = result.judgement.verdicts.get(failure.invariant)
    return isinstance(verdict, Violated) and verdict.difference == failure.difference


def holds(result: Result, failure: Failure) -> bool:
    """Whether the failure's invariant was exercised in a run, and holds; a run in which it is unknown says nothing."""
    return isinstance(result.judgement.verdicts.get(failure.invariant), Holds)


def _points(scenario: Scenario, history: History) -> set[str]:
    """The points at which faults fired, named as in a failure."""
    entries = [entry for entry in history.journal if isinstance(entry, FaultFired)]
    alone = (msgspec.structs.replace(history, journal=[entry]) for entry in entries)
    return {point_of(scenario, one) for one in alone}


def _with_the_past(replay: Replay, before: Standing | None, *, by_chance: bool) -> Replay:
    """The replay with what only the nights before can say; `by_chance`: a failure may show in some runs only."""
    if before is None:
        return replay
    if replay.violated and before.fixed:
        words = "; ".join(filter(None, ("again: an earlier night found it fixed", replay.words)))
        return msgspec.structs.replace(replay, again=True, words=words)
    return _unless_by_chance(replay, before) if by_chance and replay.status == "fixed" else replay


def _unless_by_chance(replay: Replay, before: Standing) -> Replay:
    """A replay in real time that held, which shows no fix if that may be chance."""
    held, runs = before.held + replay.held, before.runs - before.held
    if not 0 < before.violated < runs or before.fixed:
        return replay
    chance = (1 - before.violated / runs) ** held
    words = f"it showed in {before.violated} of {runs} runs; at that rate all {held} runs since hold by chance in "
    status: Status = "fixed" if chance < CHANCE else "not_reached"
    return msgspec.structs.replace(replay, status=status, words=f"{words}{chance:.0%} of cases")
