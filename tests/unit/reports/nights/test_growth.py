from __future__ import annotations

from math import log

import pytest

from cutproof.reports.model import ScenarioCounts
from cutproof.reports.nights.growth import Curve, curve_of, targets_hit_by
from cutproof.reports.nights.model import Growth, SubjectNight


def night(run: int, growth: list[tuple[int, int]], hits: int = 0) -> SubjectNight:
    return SubjectNight(
        subject="simulated",
        scenarios=ScenarioCounts(run=run, held=run),
        growth=[Growth(scenarios=scenarios, hit=hit) for scenarios, hit in growth],
        hits={f"target {at}": 1 for at in range(hits)},
    )


def curve(*nights: SubjectNight) -> Curve:
    return curve_of(nights, targets_hit_by(nights))


def test_the_nights_follow_each_other_and_targets_never_become_fewer() -> None:
    found = curve(night(100, [(50, 8), (100, 10)]), night(200, [(100, 4), (200, 12)], hits=11))
    assert found.points == ((0, 0), (50, 8), (100, 10), (200, 10), (300, 12))


def test_more_budget_stops_paying_where_twice_the_scenarios_hit_hardly_more() -> None:
    flat = [(at * 100, min(at * 30, 300)) for at in range(1, 41)]
    found = curve(night(4_000, flat))
    assert found.pays_until == pytest.approx(1_000)
    assert found.words == (
        "From about 1,000 scenarios on, twice as many hit at most 5 % more targets: there more budget stops paying."
    )


@pytest.mark.parametrize(
    "growth",
    [
        [(at * 100, at * 30) for at in range(1, 41)],
        [(at * 100, round(100 * log(1 + at))) for at in range(1, 41)],
        [(at * 100, 300 if at < 35 else 400) for at in range(1, 41)],  # flat, and then new ones after all
    ],
    ids=["steady", "slower", "late"],
)
def test_while_the_last_doubling_hit_more_it_still_pays(growth: list[tuple[int, int]]) -> None:
    found = curve(night(4_000, growth))
    assert found.pays_until is None
    assert found.words.endswith("more budget still pays.")


def test_little_is_not_judged() -> None:
    assert "too few" in curve(night(10, [(5, 3), (10, 3)])).words
    assert "too few" in curve().words
