"""A bar chart as inline SVG: one row for each bar, with its name before and its value behind it."""

from __future__ import annotations

from html import escape

from ..model import Value
from ..svg import element, label, path
from .plots import Plot

WIDTH, LEFT, ROOM, ROW, TOP = 420, 112, 84, 24, 16


class Bar(Value, kw_only=True):
    """One bar; `text` is its value as it is shown."""

    name: str
    value: float
    text: str


class Bars(Value, kw_only=True):
    """Bars over one axis that begins at 0."""

    title: str
    caption: str
    bars: tuple[Bar, ...]


def drawn(chart: Bars) -> Plot:
    """The picture of a chart; raises ValueError if it has no bar, or a negative one."""
    if not chart.bars or min(one.value for one in chart.bars) < 0:
        raise ValueError(f"{chart.title}: no bar, or one that goes backwards")
    most = max(one.value for one in chart.bars) or 1.0
    floor = TOP + ROW * len(chart.bars)
    picture = element(
        "svg",
        element("title", escape(f"{chart.title}. {chart.caption}")),
        element("path", class_="floor", d=path([(LEFT, TOP - 4), (LEFT, floor)])),
        *(part for number, one in enumerate(chart.bars) for part in _row(one, TOP + ROW * number, most)),
        viewBox=f"0 0 {WIDTH} {floor + 4}",
        class_="plot drawing",
        role="img",
    )
    return Plot(picture=picture, caption=chart.caption)


def _row(one: Bar, y: int, most: float) -> list[str]:
    end = LEFT + (WIDTH - LEFT - ROOM) * one.value / most
    corners: list[tuple[float, float]] = [(LEFT, y), (end, y), (end, y + ROW - 8), (LEFT, y + ROW - 8)]
    middle = y + ROW / 2
    return [
        element("path", class_="columns", d=path(corners) + "Z"),
        label(one.name, LEFT - 6, middle, text_anchor="end"),
        label(one.text, end + 6, middle),
    ]
