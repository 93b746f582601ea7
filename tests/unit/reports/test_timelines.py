"""Lanes of spans and moments, and arrows between them."""

from __future__ import annotations

import re

import pytest

from cutproof.reports.charts.timelines import Arrow, Lane, Moment, Span, Timelines, drawn

CHART = Timelines(
    title="Two lines",
    caption="An arrow & two lanes.",
    across="ms",
    lanes=(
        Lane(name="snapshots", moments=(Moment(at=5.0, text="1"), Moment(at=10.0, text="S 2", hollow=True))),
        Lane(name="job", spans=(Span(begin=0.0, end=12.0, text="first", broken=True), Span(begin=14.0, end=20.0))),
    ),
    arrows=(Arrow(lane=0, at=5.0, to_lane=1, to=14.0),),
)


def test_lanes_moments_spans_and_arrows_are_drawn() -> None:
    picture = drawn(CHART).picture
    assert re.findall(r">([^<>]+)</text>", picture) == ["snapshots", "1", "S 2", "job", "first", "0", "20 ms"]
    assert picture.count('class="columns"') == 1
    assert picture.count('class="median"') == 1
    assert "An arrow &amp; two lanes." in picture
    assert drawn(CHART).caption == CHART.caption


def test_a_chart_without_anything_in_its_lanes_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is in its lanes"):
        drawn(Timelines(title="Empty", caption="", across="ms", lanes=(Lane(name="a"),)))


def test_everything_at_the_beginning_is_drawn_there() -> None:
    assert drawn(
        Timelines(title="T", caption="", across="ms", lanes=(Lane(name="a", moments=(Moment(at=0, text="1"),)),))
    )
