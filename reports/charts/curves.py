"""A line chart as inline SVG: each curve has its own dash pattern and its name."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10

from ..model import Value
from ..svg import element, label, path
from .plots import Plot

WIDTH, HEIGHT, LEFT, FLOOR = 420, 250, 46, 190
LIFT = 8
"""the distance from the floor to the least value of a logarithmic axis, so that its curve is visible"""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "1 5")


class Curve(Value, kw_only=True):
    """One line and its name."""

    name: str
    points: tuple[tuple[float, float], ...]


class Chart(Value, kw_only=True):
    """Curves over one axis; a logarithmic axis begins at its least positive value."""

    title: str
    caption: str
    across: str
    """the quantity on the horizontal axis, with its unit"""
    up: str
    curves: tuple[Curve, ...]
    logarithmic: bool = False
    """whether both axes are logarithmic"""


def drawn(chart: Chart) -> Plot:
    """The picture of a chart; raises ValueError if there is nothing to draw."""
    across = [x for curve in chart.curves for x, _ in curve.points]
    up = [y for curve in chart.curves for _, y in curve.points]
    if not across:
        raise ValueError(f"{chart.title}: no curve has a point")
    least = FLOOR - LIFT if chart.logarithmic else FLOOR
    x_of, y_of = _Axis(across, LEFT, WIDTH, chart.logarithmic), _Axis(up, least, 14, chart.logarithmic)
    lines = [
        element("path", class_="curve", stroke_dasharray=DASHES[number % len(DASHES)] or "none",
                d=path([(x_of.at(x), y_of.at(y)) for x, y in curve.points]))
        for number, curve in enumerate(chart.curves)
    ]  # fmt: skip
    picture = element(
        "svg",
        element("title", escape(f"{chart.title}. {chart.caption}")),
        element("path", class_="floor", d=path([(LEFT, FLOOR), (WIDTH, FLOOR)])),
        *lines,
        label(_short(y_of.high), LEFT - 5, 18, text_anchor="end"),
        label(_short(y_of.low), LEFT - 5, least, text_anchor="end"),
        label(chart.up, LEFT + 4, 10),
        label(_short(x_of.low), LEFT, FLOOR + 15),
        label(_short(x_of.high), WIDTH, FLOOR + 15, text_anchor="end"),
        label(chart.across, (LEFT + WIDTH) / 2, FLOOR + 15, text_anchor="middle"),
        *_legend(chart.curves),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="plot drawing",
        role="img",
    )
    return Plot(picture=picture, caption=chart.caption)


class _Axis:
    """Maps values to positions."""

    def __init__(self, values: Sequence[float], first: float, last: float, logarithmic: bool) -> None:
        self._first, self._last, self._logarithmic = first, last, logarithmic
        positive = [value for value in values if value > 0]
        self.low = min(positive, default=1.0) if logarithmic else min(0.0, *values)
        self.high = max(values)
        span = self._scale(self.high) - self._scale(self.low)
        self._span = span if span > 0 else 1.0

    def _scale(self, value: float) -> float:
        return log10(max(value, self.low, 1e-9)) if self._logarithmic else value

    def at(self, value: float) -> float:
        share = (self._scale(value) - self._scale(self.low)) / self._span
        return self._first + share * (self._last - self._first)


def _legend(curves: Sequence[Curve]) -> list[str]:
    parts = []
    for number, curve in enumerate(curves):
        x, y = LEFT + (number % 3) * 126, FLOOR + 34 + (number // 3) * 16
        dash = DASHES[number % len(DASHES)] or "none"
        parts.append(element("path", class_="curve", stroke_dasharray=dash, d=path([(x, y), (x + 26, y)])))
        parts.append(label(curve.name, x + 32, y + 4))
    return parts


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.3g}"
