"""The time line of a pipeline that was run from outside, as inline SVG.

Each process has a lane, on which its lives are heavy lines.  Below them are what was fed and what
readers saw, and the counters of the pipeline's own.  Signs differ in shape, lines in their dashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise

from ...properties.model.history import Counted, History
from ..model import RowPair
from ..svg import element, label, path, title
from ..words import duration, plural
from .diagram import BOTTOM, SHEET, Diagram, picture_of
from .labels import HEIGHT, Box
from .lives_layout import AIMS, COMMANDS, COMMITS, FEED, OUTPUT, PROXIES, Event, Life, Scale, TimeLine, lives_of
from .marks import mark_at

TOP = 24
MARGIN = 22
LANE_HEIGHT = 54
CURVES_HEIGHT = 118
COUNTER_HEIGHT = 34
DESK = 984
"""the width of a page at a desk, in pixels"""
NARROWEST = 400
"""the least width of the places of events, in pixels"""
END = 96
"""room behind the last event, for what is written there, in pixels"""
CHARACTER = 6.2
"""the width of a character of what is beside a sign, in pixels"""
LEVELS = (-11.0, 21.0)
"""where words stand beside a sign, above or below its lane, in pixels"""
FLAG = -16.0
"""the same above the sign of a command"""
FIRST = ("process-killed", "process-paused", "fault-fired", "job-ended", "command-issued", "command-refused")
"""the words of these signs find their places before all others"""
BAD = ("process-killed", "fault-fired", "rows-wrong", "command-refused")
"""the words of these signs are red"""


def time_line_of(name: str, history: History | None, rows: Sequence[RowPair], prefix: str = "") -> Diagram | None:
    """The time line of a run; None if the history is not one of a pipeline that was run from outside.

    `rows` are the expected and the committed ones.  `prefix` begins the ids of its two pictures, so that a page can
    have several of them.
    """
    lives = lives_of(history, rows)
    if lives is None:
        return None
    grid = _Grid(lives)
    names = "".join(_names(lives, grid))
    drawing = element("g", *_layers(lives, grid), id=f"{prefix}lanes", class_="drawing")
    head = title(f"Time line of {name}") + element("desc", escape(_description(lives)))
    return Diagram(
        what="Time line",
        key="key-of-lives",
        names=picture_of(
            element("g", names, id=f"{prefix}names", class_="drawing"),
            grid.names_width,
            grid.height,
            aria_hidden="true",
        ),
        picture=picture_of(head + drawing, grid.width, grid.height, role="img"),
        names_width=grid.names_width,
        width=grid.width,
        height=grid.height,
        sheets=tuple(range(0, grid.width, SHEET)) if grid.width > SHEET * 1.4 else (),
        caption=_caption(grid),
        words=tuple(_words(lives)),
    )


class _Grid:
    """The places of lanes and times, in pixels."""

    def __init__(self, lives: TimeLine) -> None:
        names = [*lives.lanes, FEED, *lives.counters]
        self.names_width = max(len(name) for name in names) * 7 + 22
        self.scale = Scale(lives, max(NARROWEST, DESK - self.names_width - 2 * MARGIN - END))
        self.width = round(MARGIN * 2 + self.scale.width + END)
        self.right = MARGIN + self.scale.width + MARGIN
        """where a life that goes on until the end is no longer drawn"""
        self.lanes = {name: TOP + (row + 0.5) * LANE_HEIGHT for row, name in enumerate(lives.lanes)}
        self.curves_top = TOP + len(lives.lanes) * LANE_HEIGHT + 8
        self.curves_floor = self.curves_top + CURVES_HEIGHT - 16
        below = self.curves_top + CURVES_HEIGHT
        self.counters = {name: below + (row + 0.7) * COUNTER_HEIGHT for row, name in enumerate(lives.counters)}
        self.height = round(below + len(lives.counters) * COUNTER_HEIGHT + BOTTOM)
        amounts = [one.amount for one in lives.events] + [lives.expected or 0, 1]
        self._most = max(amounts)

    def x(self, at_us: int) -> float:
        return MARGIN + self.scale.x(at_us)

    def amount(self, amount: int) -> float:
        """The height of so many records or rows."""
        return self.curves_floor - amount / self._most * (CURVES_HEIGHT - 40)


def _names(lives: TimeLine, grid: _Grid) -> Iterator[str]:
    for name, y in grid.lanes.items():
        yield label(name, 10, y + 4, class_="lane-name")
    for row, (name, kind) in enumerate(((OUTPUT, "seen"), (FEED, "given"))):
        y = grid.curves_top + 34 + row * 30
        yield label(name, 10, y, class_="lane-name")
        yield element("path", class_=f"amount {kind}", d=path([(10, y + 9), (44, y + 9)]))
    for name, y in grid.counters.items():
        yield label(name, 10, y + 4, class_="lane-name")


def _layers(lives: TimeLine, grid: _Grid) -> Iterator[str]:
    """The layers, lowest first: waits that are cut short, lanes, lives, amounts, counters, signs, words, the clock."""
    yield from (_cut_short(place, wait, grid) for place, wait in grid.scale.cuts)
    for y in (*grid.lanes.values(), grid.curves_floor, *grid.counters.values()):
        yield element("path", class_="lane", d=path([(0, y), (grid.right, y)]))
    yield from (_life(life, grid) for life in lives.lives)
    yield from _amounts(lives, grid)
    for name, taken in lives.counters.items():
        yield from _counter(taken, grid.counters[name], grid)
    signs = [_place(one, grid) for one in lives.events if one.lane == OUTPUT and one.label]
    placed = _Words(grid.width, signs)
    for one in sorted(lives.events, key=lambda one: one.what not in FIRST):
        yield _sign(one, grid)
        if one.label:
            yield placed.beside(one, _place(one, grid))
    yield from _clock(lives, grid)


def _cut_short(place: float, wait: int, grid: _Grid) -> str:
    """Two strokes through all lanes, where a wait is shorter than it was."""
    x = MARGIN + place
    floor = grid.height - BOTTOM
    strokes = "".join(path([(x + side, TOP - 8), (x + side, floor)]) for side in (-3, 3))
    words = label(_time(wait), x, TOP - 12, class_="clock")
    return element(
        "g", title(f"{_time(wait)} in which nothing changed"), element("path", d=strokes), words, class_="break"
    )


def _life(life: Life, grid: _Grid) -> str:
    y = grid.lanes[life.lane]
    first, ready = grid.x(life.first_us), grid.x(life.ready_us)
    last = grid.right if life.last_us is None else grid.x(life.last_us)
    edges = [ready]
    for begins, ends in life.pauses:
        edges += [grid.x(begins), last if ends is None else grid.x(ends)]
    edges.append(last)
    parts = [element("path", class_="coming-up", d=path([(first, y), (ready, y)]))] if ready > first else []
    for number, (left, right) in enumerate(pairwise(edges)):
        kind = "paused" if number % 2 else "runs"
        parts.append(element("path", class_=kind, d=path([(left, y), (right, y)])))
    return element("g", *parts, class_="process-life")


def _amounts(lives: TimeLine, grid: _Grid) -> Iterator[str]:
    """What was given and what was seen, as steps, and what is expected."""
    if lives.expected is not None:
        y = grid.amount(lives.expected)
        yield element("path", class_="amount expected", d=path([(MARGIN, y), (grid.right, y)]))
    seen = [one for one in lives.events if one.lane == OUTPUT]
    given = [one for one in lives.events if one.what == "records-given"]
    ends: list[tuple[float, str]] = []
    for kind, steps, words in (("given", given, "given"), ("seen", seen, "seen")):
        if steps:
            yield element("path", class_=f"amount {kind}", d=path(_steps(steps, grid)))
            ends.append((grid.amount(steps[-1].amount), f"{steps[-1].amount:,} {words}"))
    if lives.expected is not None:
        ends.append((grid.amount(lives.expected), f"{lives.expected:,} expected"))
    last = 0.0
    for y, words in sorted(ends):
        last = max(y + 4, last + 13)
        yield label(words, grid.right + 6, last, class_="note")


def _steps(events: Sequence[Event], grid: _Grid) -> list[tuple[float, float]]:
    points = [(MARGIN + 0.0, grid.amount(0))]
    for one in events:
        x = grid.x(one.at_us)
        points += [(x, points[-1][1]), (x, grid.amount(one.amount))]
    return [*points, (grid.right, points[-1][1])]


def _counter(taken: Sequence[Counted], y: float, grid: _Grid) -> Iterator[str]:
    """The values of a counter, each where it was first seen; those for which there is no room are ticks."""
    free = 0.0
    for number, one in enumerate(taken):
        x, text = grid.x(one.at_us), _value(one)
        yield element("g", title(f"{text} at {duration(one.at_us)}"), mark_at("counted", x, y), class_="mark counted")
        if x >= free and number < len(taken) - 1:
            yield label(text, x, y - 7, class_="note value")
            free = x + len(text) * 7 + 8
    text = _value(taken[-1]) if taken else "never seen"
    yield label(text, grid.right + 6, y + 4, class_="note value last")


def _value(one: Counted) -> str:
    return one.value if isinstance(one.value, str) else f"{one.value:,}"


def _place(one: Event, grid: _Grid) -> tuple[float, float]:
    y = grid.amount(one.amount) if one.lane == OUTPUT else grid.lanes.get(one.lane, 0.0)
    return grid.x(one.at_us), y


def _sign(one: Event, grid: _Grid) -> str:
    x, y = _place(one, grid)
    sign = mark_at(one.what, x, y) if y else ""
    return element("g", title(f"{one.lane} {one.words}"), sign, class_=f"mark {one.what}") if sign else ""


class _Words:
    """Finds room for the words beside signs, above or below their lane; words without room are left out."""

    def __init__(self, width: int, signs: Iterable[tuple[float, float]]) -> None:
        """`signs` are the places of those that no words may cover."""
        self._width = width
        self._taken = [Box(left=x - 6, top=y - 6, right=x + 6, bottom=y + 6) for x, y in signs]

    def beside(self, one: Event, place: tuple[float, float]) -> str:
        x, y = place
        wide = len(one.label) * CHARACTER
        kind = "note fault" if one.what in BAD else "note"
        for level in LEVELS if one.what != "command-issued" else (FLAG, *LEVELS):
            for left, anchor in ((x - 4, "start"), (x + 4 - wide, "end")):
                box = Box(left=left - 3, top=y + level - HEIGHT, right=left + wide + 3, bottom=y + level + 2)
                if left >= 0 and box.right <= self._width and not any(box.meets(other) for other in self._taken):
                    self._taken.append(box)
                    at = left if anchor == "start" else left + wide
                    return label(one.label, at, y + level, class_=kind, text_anchor=anchor)
        return ""


def _clock(lives: TimeLine, grid: _Grid) -> Iterator[str]:
    """The times under the picture, where there is room."""
    free = 0.0
    for at_us in sorted({one.at_us for one in lives.events if one.what != "aim-met"}):
        x, text = grid.x(at_us), _time(at_us)
        if x >= free:
            yield element("path", class_="tick", d=path([(x, grid.height - BOTTOM), (x, grid.height - BOTTOM + 5)]))
            yield label(text, x, grid.height - 10, class_="clock")
            free = x + max(64, len(text) * 8)


def _time(at_us: int) -> str:
    return f"{at_us / 1e6:.2f} s"


def _words(lives: TimeLine) -> Iterator[tuple[str, str, str]]:
    """(time, who, what) of everything: the text form of the picture."""
    who = {AIMS: "aim", COMMANDS: "command", PROXIES: "proxy", COMMITS: "commits", OUTPUT: "reader", FEED: "feed"}
    found = [(one.at_us, who.get(one.lane, one.lane), one.words) for one in lives.events]
    for name, taken in lives.counters.items():
        found += [(one.at_us, name, f"counter shows {_value(one)}") for one in taken]
        found += [] if taken else [(lives.ends_us, name, "counter was never seen")]
    return ((_time(at_us), name, words) for at_us, name, words in sorted(found, key=lambda one: one[0]))


def _description(lives: TimeLine) -> str:
    told = ("process-killed", "process-paused", "fault-fired", "rows-wrong")
    kills = [one for one in lives.events if one.what in told]
    parts = [f"Lanes from top to bottom: {', '.join(lives.lanes)}, {OUTPUT} and {FEED}"]
    parts[0] += f", and the counters {', '.join(lives.counters)}." if lives.counters else "."
    parts += [f"At {_time(one.at_us)} {one.lane} {one.words}." for one in kills]
    parts.append("The list under the picture says the same in words.")
    return " ".join(parts)


def _caption(grid: _Grid) -> str:
    cuts = len(grid.scale.cuts)
    are = "is" if cuts == 1 else "are"
    waits = f" {plural(cuts, 'wait')}, in which nothing changed, {are} cut short." if cuts else ""
    return f"Time flows from left to right, by the clock of the run.{waits}"
