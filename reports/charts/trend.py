"""Lines over time as inline SVG, with gaps where nothing was measured: the trends of a nightly job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil, floor, log10

from ..model import Value
from ..svg import element, label, path
from ..words import duration, took
from .plots import Plot

WIDTH, HEIGHT, LEFT, TOP, FLOOR = 420, 212, 56, 18, 164
DASHES = ("", "7 3", "2 3")
DOTS = (
    "M{x:.1f} {y:.1f}m-2 -2h4v4h-4z",
    "M{x:.1f} {y:.1f}m0 -3l3 3l-3 3l-3 -3z",
    "M{x:.1f} {y:.1f}m-3 -1h6v2h-6z",
)
"""by number of the line, as its dashes: a square, a diamond, a bar"""
MOST_POINTS = 360
"""of a curve: about one a pixel"""

Piece = tuple[tuple[float, float], ...]


class Line(Value, kw_only=True):
    """One line of a chart, in pieces where it has gaps."""

    name: str
    points: tuple[Piece, ...]
    dots: bool = False
    """each point by itself, without a line between them"""


class Mark(Value, kw_only=True):
    """A place on the horizontal axis with a name."""

    at: float
    name: str


class Chart(Value, kw_only=True):
    """Lines over the nights, or over another axis that begins at 0.  Durations have a logarithmic axis."""

    title: str
    caption: str
    up: str
    """the quantity on the vertical axis; empty if the title says it"""
    across: tuple[str, str]
    """the names of the two ends of the horizontal axis"""
    lines: tuple[Line, ...]
    limit: float | None = None
    """a horizontal line: what can be reached"""
    limit_name: str = ""
    mark: Mark | None = None
    unit: str = ""
    """ms or s: the values are durations; else they are numbers"""


def drawn(chart: Chart) -> Plot:
    """The picture of a chart; raises ValueError if no line has a point."""
    points = [point for line in chart.lines for piece in line.points for point in piece]
    if not points:
        raise ValueError(f"{chart.title}: no line has a point")
    scale = _Scale([y for _, y in points] + ([chart.limit] if chart.limit else []), chart.unit)
    widest = max(max(x for x, _ in points), 1.0)

    def x_of(x: float) -> float:
        return LEFT + x / widest * (WIDTH - LEFT - 4)

    picture = element(
        "svg",
        element("title", escape(f"{chart.title}. {chart.caption}")),
        *_grid(scale, chart),
        *(part for number, line in enumerate(chart.lines) for part in _line(line, number, x_of, scale)),
        *_limit(chart, scale),
        *_mark(chart, x_of),
        *_legend(chart),
        viewBox=f"0 0 {WIDTH} {HEIGHT if _names(chart) else HEIGHT - 22}",
        class_="plot drawing trend",
        role="img",
    )
    return Plot(picture=picture, caption=chart.caption)


class _Scale:
    """The vertical axis: its ticks, and the position of a value."""

    def __init__(self, values: Sequence[float], unit: str) -> None:
        self._unit, self._is_logarithmic = unit, bool(unit)
        high = max(values)
        if self._is_logarithmic:
            self.ticks = _times([value for value in values if value > 0] or [1.0], unit)
        else:
            step_of_one = _nice(high / 3) if high > 0 else 1.0
            if all(value == int(value) for value in values):
                step_of_one = max(step_of_one, 1.0)
            self.ticks = [step_of_one * at for at in range(max(1, ceil(high / step_of_one - 1e-9)) + 1)]

    def at(self, value: float) -> float:
        low, high = self._scaled(self.ticks[0]), self._scaled(self.ticks[-1])
        return FLOOR - (self._scaled(value) - low) / (high - low) * (FLOOR - TOP)

    def name(self, tick: float) -> str:
        if self._unit:
            us = tick * (1_000_000 if self._unit == "s" else 1_000)
            if us >= 60_000_000:
                return took(us / 1_000_000)
            return duration(us).replace(".00 ", " ").replace(".0 ", " ")
        return f"{tick:,.0f}" if self.ticks[1] >= 1 else f"{tick:.3g}"

    def _scaled(self, value: float) -> float:
        return log10(max(value, self.ticks[0])) if self._is_logarithmic else value


def _times(values: Sequence[float], unit: str) -> list[float]:
    """Ticks of a logarithmic axis of durations, at least two, around all values."""
    of_a_second = 1.0 if unit == "s" else 1_000.0
    known = [one * of_a_second for one in (*(10.0**power for power in range(-6, 2)), 60, 600, 3_600, 36_000, 360_000)]
    first = max((at for at, tick in enumerate(known[:-1]) if tick <= min(values)), default=0)
    last = next((at for at, tick in enumerate(known) if tick >= max(values) and at > first), len(known) - 1)
    step = ceil((last - first) / 4)
    ticks = known[first : last + step : step]
    return ticks if ticks[-1] >= max(values) else [*ticks, max(known[-1], *values)]


def _nice(value: float) -> float:
    """The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not less."""
    power = 10.0 ** floor(log10(value))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= value * (1 - 1e-9))


def _grid(scale: _Scale, chart: Chart) -> list[str]:
    parts = [label(chart.up, LEFT - 5, 9)] if chart.up else []
    for tick in scale.ticks:
        y = scale.at(tick)
        is_floor = tick == scale.ticks[0]
        parts.append(element("path", class_="floor" if is_floor else "grid-line", d=path([(LEFT, y), (WIDTH, y)])))
        parts.append(label(scale.name(tick), LEFT - 5, y + 4, text_anchor="end"))
    parts.append(label(chart.across[0], LEFT, FLOOR + 16))
    if chart.across[1]:
        parts.append(label(chart.across[1], WIDTH, FLOOR + 16, text_anchor="end"))
    return parts


def _line(line: Line, number: int, x_of: Callable[[float], float], scale: _Scale) -> list[str]:
    drawn_pieces, dots = [], []
    for piece in line.points:
        placed = [(x_of(x), scale.at(y)) for x, y in _thinned(piece)]
        if line.dots or len(placed) == 1:
            dots += placed
        else:
            drawn_pieces.append(path(placed))
    parts = []
    if drawn_pieces:
        dash = DASHES[number % len(DASHES)] or "none"
        parts.append(element("path", class_=f"curve line-{number}", stroke_dasharray=dash, d="".join(drawn_pieces)))
    if dots:
        marks = "".join(DOTS[number % len(DOTS)].format(x=x, y=y) for x, y in dots)
        parts.append(element("path", class_=f"dots line-{number}", d=marks))
    return parts


def _thinned(piece: Piece) -> Piece:
    """At most about `MOST_POINTS` of the points, with the first and the last.

    Of neighbours the lowest and the highest stay, so that no peak is lost.
    """
    if len(piece) <= MOST_POINTS:
        return piece
    width = ceil(2 * len(piece) / MOST_POINTS)
    kept = {piece[0], piece[-1]}
    for at in range(0, len(piece), width):
        some = piece[at : at + width]
        kept |= {min(some, key=lambda point: point[1]), max(some, key=lambda point: point[1])}
    return tuple(sorted(kept))


def _limit(chart: Chart, scale: _Scale) -> list[str]:
    if chart.limit is None:
        return []
    y = scale.at(chart.limit)
    return [
        element("path", class_="limit", d=path([(LEFT, y), (WIDTH, y)])),
        label(chart.limit_name, WIDTH, y - 4, text_anchor="end"),
    ]


def _mark(chart: Chart, x_of: Callable[[float], float]) -> list[str]:
    if chart.mark is None:
        return []
    x = x_of(chart.mark.at)
    side = "end" if x > (LEFT + WIDTH) / 2 else "start"
    return [
        element("path", class_="median", d=path([(x, TOP), (x, FLOOR)])),
        label(chart.mark.name, x + (-5 if side == "end" else 5), FLOOR - 8, text_anchor=side, class_="mark-name"),
    ]


def _names(chart: Chart) -> list[str]:
    return [line.name for line in chart.lines] if len(chart.lines) > 1 else []


def _legend(chart: Chart) -> list[str]:
    parts = []
    for number, name in enumerate(_names(chart)):
        x, y = LEFT + number * 130, FLOOR + 36
        dash = DASHES[number % len(DASHES)] or "none"
        line = element("path", class_=f"curve line-{number}", stroke_dasharray=dash, d=path([(x, y), (x + 26, y)]))
        parts += [line, label(name, x + 32, y + 4)]
    return parts
