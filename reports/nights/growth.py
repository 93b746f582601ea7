"""How coverage grows with the scenarios of all nights, and from where on more of them stop paying.

Coverage targets are like species: the first scenarios hit many, and later ones hit fewer and fewer new ones.  No
scenario says that it was the last to hit something new.  So the page states what was observed: from where on twice as
many scenarios hit hardly more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from ..model import Value
from ..words import plural
from .counts import Together
from .model import Growth, SubjectNight

HARDLY = 0.05
"""More budget stops paying where twice the scenarios hit at most this share of targets more."""
LEAST = 8
"""points that a curve needs before anything is said of it"""

Point = tuple[float, float]
"""scenarios of all nights so far, and the targets that they had hit"""


class Curve(Value, kw_only=True):
    """The growth of one subject's coverage over all nights."""

    points: tuple[Point, ...]
    pays_until: float | None
    """the number of scenarios from which on more budget stops paying; None if it still pays, or nothing can be said"""
    words: str


class Reached(Value, kw_only=True):
    """How many coverage targets, or transitions, a night reached, and all nights until then."""

    alone: int
    together: int


def targets_hit_by(nights: Iterable[SubjectNight]) -> list[Reached]:
    """The coverage targets that each night of a subject hit, the oldest first."""
    together, in_words, found = Together(), set[str](), list[Reached]()
    for night in nights:
        own = {words for words, times in night.hits.items() if times}
        in_words |= own
        alone = together.add(night.targets) + len(own)
        found.append(Reached(alone=alone, together=len(together) + len(in_words)))
    return found


def transitions_taken_by(nights: Iterable[SubjectNight]) -> list[Reached]:
    """The transitions that each night of a subject took, the oldest first."""
    together, found = set[str](), list[Reached]()
    for night in nights:
        own = {name for name, scenarios in night.transitions.items() if scenarios}
        together |= own
        found.append(Reached(alone=len(own), together=len(together)))
    return found


def never_taken(nights: Sequence[SubjectNight]) -> tuple[str, ...]:
    """The transitions that the newest night's subject counts, and that no night has taken."""
    counted = next((night.transitions for night in reversed(nights) if night.transitions), {})
    taken = {name for night in nights for name, scenarios in night.transitions.items() if scenarios}
    return tuple(sorted(set(counted) - taken))


def curve_of(nights: Sequence[SubjectNight], reached: Sequence[Reached]) -> Curve:
    """The curve over the nights of one subject, the oldest first.

    Targets never become fewer: a night of another bank that was merged has counted only those of its own bank.
    """
    kept = _grown(nights, reached, lambda one: one.hit)
    until = _pays_until(kept)
    return Curve(points=kept, pays_until=until, words=_words(kept, until))


def curve_of_transitions(nights: Sequence[SubjectNight], taken: Sequence[Reached]) -> Curve:
    """The same for transitions.  They are few, so the words say when the last one was taken for the first time."""
    kept = _grown(nights, taken, lambda one: one.taken)
    last = next((scenarios for scenarios, count in kept if count == kept[-1][1]), 0.0)
    words = f"The last new transition was taken within the first {plural(round(last), 'scenario')}."
    return Curve(points=kept, pays_until=None, words=words)


def _grown(
    nights: Sequence[SubjectNight], reached: Sequence[Reached], count: Callable[[Growth], int]
) -> tuple[Point, ...]:
    points: list[Point] = [(0.0, 0.0)]
    before, most = 0, 0.0
    for night, found in zip(nights, reached, strict=True):
        for one in night.growth:
            most = max(most, float(count(one)))
            points.append((float(before + min(one.scenarios, night.scenarios.run)), most))
        before += night.scenarios.run
        most = max(most, float(found.together))
        points.append((float(before), most))
    return _rising(points)


def _rising(points: Sequence[Point]) -> tuple[Point, ...]:
    """One point, the last, for each number of scenarios."""
    return tuple(dict(sorted(points)).items())


def _pays_until(points: Sequence[Point]) -> float | None:
    """The first number of scenarios of which twice as many hit hardly more, there and everywhere after it."""
    last = points[-1][0]
    if len(points) < LEAST:
        return None
    found: float | None = None
    for scenarios, hit in reversed(points):
        if not hit:
            break
        if scenarios * 2 > last:
            continue
        if _at(points, scenarios * 2) > hit * (1 + HARDLY):
            break
        found = scenarios
    return found


def _at(points: Sequence[Point], scenarios: float) -> float:
    """The targets at a number of scenarios, on a straight line between two points."""
    place = bisect_left(points, (scenarios, -1.0))
    if place == len(points):
        return points[-1][1]
    x, y = points[place]
    if place == 0 or x == scenarios:
        return y
    x0, y0 = points[place - 1]
    return y0 + (y - y0) * (scenarios - x0) / (x - x0)


def _rounded(scenarios: float) -> int:
    """To two digits, for the place of a bend is no exact figure."""
    whole = round(scenarios)
    return round(whole, 2 - len(str(whole)))


def _words(points: Sequence[Point], until: float | None) -> str:
    last, hit = points[-1]
    if len(points) < LEAST or not hit:
        return "There are too few scenarios to say whether more budget pays."
    half = _at(points, last / 2)
    if until is None:
        raised = (
            f" raised the number of targets hit by {100 * (hit - half) / half:.0f} %"
            if half
            else " hit the first targets"
        )
        return f"The second half of the {plural(round(last), 'scenario')}{raised}: more budget still pays."
    begin = f"From about {_rounded(until):,} scenarios on"
    return f"{begin}, twice as many hit at most 5 % more targets: there more budget stops paying."
