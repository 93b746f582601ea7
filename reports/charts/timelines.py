"""Lanes over one axis of time, as inline SVG: spans, moments in them, and arrows from one lane to another."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..model import Value
from ..svg import element, label, path
from .plots import Plot

WIDTH, LEFT, ROW, TOP, HALF = 420, 84, 32, 14, 4


class Moment(Value, kw_only=True):
    """A square with a text above it; a hollow one differs in what the caption says."""

    at: float
    text: str
    hollow: bool = False


class Span(Value, kw_only=True):
    """From one time to another, with a text below it; `broken`: a cross stands at its end."""

    begin: float
    end: float
    text: str = ""
    broken: bool = False


class Lane(Value, kw_only=True):
    """Spans and moments of one name."""

    name: str
    spans: tuple[Span, ...] = ()
    moments: tuple[Moment, ...] = ()


class Arrow(Value, kw_only=True):
    """From a time in one lane to a time in another; lanes by number, from 0."""

    lane: int
    at: float
    to_lane: int
    to: float


class Timelines(Value, kw_only=True):
    """Lanes from top to bottom, and arrows between them."""

    title: str
    caption: str
    across: str
    """the unit of time"""
    lanes: tuple[Lane, ...]
    arrows: tuple[Arrow, ...] = ()


def drawn(chart: Timelines) -> Plot:
    """The picture of a chart; raises ValueError if nothing is in its lanes."""
    ends = [time for lane in chart.lanes for span in lane.spans for time in (span.begin, span.end)]
    ends += [moment.at for lane in chart.lanes for moment in lane.moments]
    if not ends:
        raise ValueError(f"{chart.title}: nothing is in its lanes")
    scale = _Scale(max(ends))
    floor = TOP + ROW * len(chart.lanes)
    picture = element(
        "svg",
        element("title", escape(f"{chart.title}. {chart.caption}")),
        *(part for number, lane in enumerate(chart.lanes) for part in _lane(lane, number, scale)),
        *(part for arrow in chart.arrows for part in _arrow(arrow, scale)),
        element("path", class_="floor", d=path([(LEFT, floor), (WIDTH, floor)])),
        label("0", LEFT, floor + 15),
        label(f"{scale.last:g} {chart.across}", WIDTH, floor + 15, text_anchor="end"),
        viewBox=f"0 0 {WIDTH} {floor + 20}",
        class_="plot drawing",
        role="img",
    )
    return Plot(picture=picture, caption=chart.caption)


class _Scale:
    """The positions of times and lanes."""

    def __init__(self, last: float) -> None:
        self.last = last

    def x(self, time: float) -> float:
        return LEFT + (WIDTH - LEFT - HALF) * time / self.last if self.last else LEFT

    def y(self, lane: int) -> float:
        return TOP + ROW * lane + ROW / 2


def _lane(lane: Lane, number: int, scale: _Scale) -> Iterator[str]:
    y = scale.y(number)
    yield label(lane.name, LEFT - 10, y + 4, text_anchor="end")
    for span in lane.spans:
        begin, end = scale.x(span.begin), scale.x(span.end)
        yield element("path", class_="curve", d=path([(begin, y), (end, y)]))
        if span.broken:
            yield element("path", class_="curve", d=path([(end - 4, y - 4), (end + 4, y + 4)]))
            yield element("path", class_="curve", d=path([(end - 4, y + 4), (end + 4, y - 4)]))
        if span.text:
            yield label(span.text, begin, y + 16)
    for moment in lane.moments:
        x = scale.x(moment.at)
        corners = [(x - HALF, y - HALF), (x + HALF, y - HALF), (x + HALF, y + HALF), (x - HALF, y + HALF)]
        yield element("path", class_="curve" if moment.hollow else "columns", d=path(corners) + "Z")
        yield label(moment.text, x, y - HALF - 4, text_anchor="middle")


def _arrow(arrow: Arrow, scale: _Scale) -> Iterator[str]:
    begin, end = (scale.x(arrow.at), scale.y(arrow.lane)), (scale.x(arrow.to), scale.y(arrow.to_lane))
    yield element("path", class_="median", d=path([begin, end]))
    up = HALF if end[1] >= begin[1] else -HALF
    yield element("path", class_="curve", d=path([(end[0] - 3, end[1] - up), end, (end[0] + 3, end[1] - up)]))
