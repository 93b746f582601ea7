"""What changed over the nights, as charts: speed, coverage, defects caught, the first failure, durations."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ..charts.trend import Chart, Line, Mark
from ..model import Value
from ..words import duration, plural, took
from .growth import Reached, curve_of, curve_of_transitions, never_taken, targets_hit_by, transitions_taken_by
from .model import Night, SubjectNight
from .words import day, minute, subject_of

NEAR = 3
"""What is possible is drawn up to so many times what was hit: farther off, it would flatten the lines."""


class SubjectTrends(Value, kw_only=True):
    """The charts of one subject."""

    subject: str
    nights: int
    charts: tuple[Chart, ...]
    never_taken: tuple[str, ...] = ()
    """the transitions of the protocol's tables that no night has taken"""
    not_hit: tuple[str, ...] = ()
    """targets that no night has hit: some by name, the others counted"""


def trends_of(nights: Sequence[Night]) -> tuple[SubjectTrends, ...]:
    """The charts of every subject, those of the newest night first; of the nights, the oldest is first."""
    names: dict[str, None] = {}
    for night in reversed(nights):
        names |= {one.subject: None for one in night.subjects}
    return tuple(_of_subject(nights, subject) for subject in names)


def defects_chart(nights: Sequence[Night]) -> Chart | None:
    """How many of the planted defects each night caught; None if no night tried several."""
    tried = [night.defects_caught for night in nights]
    counts = [one for one in tried if one is not None]
    if not any(of > 1 for _, of in counts):
        return None
    caught, of = counts[-1]
    return Chart(
        title="Planted defects caught",
        caption=f"The last night that tried planted defects caught {caught:,} of {of:,}.",
        up="defects",
        across=_ends(nights),
        lines=(
            Line(name="caught", points=_points([None if one is None else float(one[0]) for one in tried])),
            Line(name="tried", points=_points([None if one is None else float(one[1]) for one in tried])),
        ),
    )


def _of_subject(nights: Sequence[Night], subject: str) -> SubjectTrends:
    """With and without a planted defect: the nights of a subject count its coverage together."""
    mine = [next((one for one in night.subjects if one.subject == subject), None) for night in nights]
    across = _ends(nights)
    own = [one for one in mine if one is not None]
    hit, taken = targets_hit_by(own), transitions_taken_by(own)
    charts = (
        _speed(mine, across),
        _coverage(mine, hit, across),
        _growth(own, hit),
        _transitions(mine, taken, across),
        _growth_of_transitions(own, taken),
        _first_failure(mine, across),
        _durations("Checkpoints", "checkpoints", [one.checkpoints_ms if one else None for one in mine], across),
        _durations("Recoveries", "recoveries", [one.recoveries_ms if one else None for one in mine], across),
    )
    return SubjectTrends(
        subject=subject_of(subject, ""),
        nights=len(own),
        charts=tuple(one for one in charts if one is not None),
        never_taken=never_taken(own),
        not_hit=_not_hit(own, hit),
    )


def _not_hit(own: Sequence[SubjectNight], reached: Sequence[Reached]) -> tuple[str, ...]:
    """As the newest night that ran to its end left them."""
    last = next((one for one in reversed(own) if one.possible), None)
    if last is None or not last.not_hit:
        return ()
    more = last.possible - reached[-1].together - len(last.not_hit)
    return (*last.not_hit, *((f"and {more:,} more",) if more > 0 else ()))


Mine = Sequence[SubjectNight | None]
Ends = tuple[str, str]


def _speed(mine: Mine, across: Ends) -> Chart | None:
    values = [(one.scenarios_per_second or None) if one and one.scenarios.run else None for one in mine]
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Chart(
        title="Scenarios a second",
        caption=f"In the last night {_rate(known[-1])}; half of the nights had {_rate(median(known))} or more.",
        up="",
        across=across,
        lines=(Line(name="scenarios a second", points=_points(values)),),
    )


def _rate(value: float) -> str:
    """Scenarios a second with a sensible number of digits: `48.1`, `0.052`."""
    return f"{value:,.1f}" if value >= 10 else f"{value:.2g}"


def _coverage(mine: Mine, reached: Sequence[Reached], across: Ends) -> Chart | None:
    ran = [one for one in mine if one is not None]
    targets = reached[-1].together if reached else 0
    if not targets:
        return None
    possible = next((one.possible for one in reversed(ran) if one.possible), 0)
    is_near = possible <= NEAR * targets
    of = f" of {possible:,} possible ones" if possible else ""
    return Chart(
        title="Coverage: targets",
        caption=f"All nights together hit {plural(targets, 'coverage target')}{of}.",
        up="coverage targets",
        across=across,
        lines=_reached(mine, reached),
        limit=float(possible) if possible and is_near else None,
        limit_name="possible",
    )


def _growth(ran: Sequence[SubjectNight], reached: Sequence[Reached]) -> Chart | None:
    curve = curve_of(ran, reached)
    if not curve.points[-1][1]:
        return None
    mark = None
    if curve.pays_until is not None:
        mark = Mark(at=curve.pays_until, name="more budget stops paying")
    return Chart(
        title="Growth of coverage: targets",
        caption=curve.words,
        up="targets hit by all nights",
        across=("0", f"{plural(round(curve.points[-1][0]), 'scenario')} of all nights"),
        lines=(Line(name="targets hit", points=(curve.points,)),),
        mark=mark,
    )


def _transitions(mine: Mine, taken: Sequence[Reached], across: Ends) -> Chart | None:
    counted = next((one.transitions for one in reversed(mine) if one and one.transitions), {})
    if not counted or not taken[-1].together:
        return None
    return Chart(
        title="Coverage: transitions",
        caption=f"All nights together took {taken[-1].together:,} of the {len(counted):,} transitions that the "
        "subject counts.",
        up="transitions",
        across=across,
        lines=_reached(mine, taken),
        limit=float(len(counted)),
        limit_name="counted",
    )


def _growth_of_transitions(ran: Sequence[SubjectNight], taken: Sequence[Reached]) -> Chart | None:
    if not taken or not taken[-1].together:
        return None
    curve = curve_of_transitions(ran, taken)
    return Chart(
        title="Growth of coverage: transitions",
        caption=curve.words,
        up="transitions taken by all nights",
        across=("0", f"{plural(round(curve.points[-1][0]), 'scenario')} of all nights"),
        lines=(Line(name="transitions taken", points=(curve.points,)),),
    )


def _reached(mine: Mine, reached: Sequence[Reached]) -> tuple[Line, Line]:
    """What each night reached, and all nights until then; `reached` has the nights of `mine` that are not None."""
    of_nights = iter(reached)
    found = [next(of_nights) if one else None for one in mine]
    return (
        Line(name="all nights so far", points=_points([float(one.together) if one else None for one in found])),
        Line(name="this night", points=_points([float(one.alone) if one else None for one in found])),
    )


def _first_failure(mine: Mine, across: Ends) -> Chart | None:
    values = [one.first_failure_s if one else None for one in mine]
    known = [value for value in values if value is not None]
    if not known:
        return None
    ran = sum(one is not None for one in mine)
    return Chart(
        title="Time to first failure",
        caption=f"{len(known):,} of {plural(ran, 'night')} found a failure by exploring; half of them within "
        f"{took(median(known)) if median(known) >= 1 else duration(median(known) * 1e6)}.",
        up="since exploring began",
        across=across,
        lines=(Line(name="first failure", points=_points(values), dots=True),),
        unit="s",
    )


def _durations(
    title: str, noun: str, figures: Sequence[tuple[float, float, float] | None], across: Ends
) -> Chart | None:
    known = [one for one in figures if one is not None]
    if not known:
        return None
    middle, most, longest = (duration(ms * 1000) for ms in known[-1])
    names = ("longest", "95 % within", "median")
    return Chart(
        title=f"Duration of {noun}",
        caption=f"{title} of the last night that had any: half took up to {middle}, 95 % up to {most}, the longest "
        f"{longest}.",
        up="",
        across=across,
        lines=tuple(
            Line(name=name, points=_points([None if one is None else one[place] for one in figures]))
            for name, place in zip(names, (2, 1, 0), strict=True)
        ),
        unit="ms",
    )


def _points(values: Sequence[float | None]) -> tuple[tuple[tuple[float, float], ...], ...]:
    """The points of a line, by the number of the night; a night without a value interrupts the line."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for number, value in enumerate(values):
        if value is not None:
            pieces[-1].append((float(number), value))
        elif pieces[-1]:
            pieces.append([])
    return tuple(tuple(piece) for piece in pieces if piece)


def _ends(nights: Sequence[Night]) -> Ends:
    first, last = nights[0].began, nights[-1].began
    if len(nights) == 1:
        return minute(first), ""
    return (minute(first), minute(last)) if first.date() == last.date() else (day(first), day(last))
