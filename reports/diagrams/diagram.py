"""The space-time diagram as inline SVG.

Time flows from left to right in the order of events, and each task has a lane.  Lines can be
distinguished without colour.  A record is a thin solid line that ends in a dot.  A barrier is
a heavy dashed line with its number in a box.  A control message is a dotted line that ends in
a ring.  The cut is a heavy line through squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise

import msgspec

from ...properties.model.history import Timed
from ..model import CounterexampleView
from ..svg import element, label, path, title
from ..words import duration, plural, record_name, sentence, with_task
from .diagram_layout import Cut, Drawing, Message, Point, Segment, drawing_of
from .entries import FAULTS
from .labels import Box, Labels
from .marks import mark_of

LANE_HEIGHT = 56
TOP = 46
BOTTOM = 30
MARGIN = 14
ATTEMPT_LABEL = 190
"""the width of the label of an attempt's start, in pixels"""
SHEET = 620
"""the width of the part of the picture that fits on a sheet of paper, in pixels"""
FEW_RECORDS = 40
"""up to this number of records, each is labelled with its name"""


class Diagram(msgspec.Struct, frozen=True, kw_only=True):
    """The two pictures of one diagram, and its text.  The names of the lanes are a picture of their own, which stays
    visible when the other is scrolled."""

    what: str
    """what kind of picture it is, in words"""
    key: str
    """the id of the part of the page that says how to read it"""
    names: str
    picture: str
    names_width: int
    width: int
    height: int
    sheets: tuple[int, ...]
    """where each piece begins when the picture is cut for paper, in pixels; empty if it fits"""
    caption: str
    words: tuple[tuple[str, str, str], ...]
    """(time, who, what) of everything drawn, in order: the text form of the diagram"""


class _Grid:
    """The positions of lanes and columns, in pixels."""

    def __init__(self, drawing: Drawing) -> None:
        self.step = 27 if drawing.columns <= 70 else 20 if drawing.columns <= 140 else 15
        self.width = MARGIN * 2 + drawing.columns * self.step + 40
        self.height = TOP + BOTTOM + len(drawing.lanes) * LANE_HEIGHT

    def x(self, column: float) -> float:
        return MARGIN + (column + 0.5) * self.step

    def y(self, lane: int) -> float:
        return TOP + (lane + 0.5) * LANE_HEIGHT

    def at(self, point: Point) -> tuple[float, float]:
        return self.x(point.column), self.y(point.lane)


def diagram_of(view: CounterexampleView, prefix: str = "") -> Diagram | None:
    """The diagram of a counterexample; None if it has no history.

    `prefix` begins the ids of its two pictures, so that a page can have several diagrams.
    """
    if view.history is None:
        return None
    drawing = drawing_of(view.history, view.checkpoint)
    grid = _Grid(drawing)
    names_width = max(len(name) for name in drawing.lanes) * 7 + 22
    names = [label(name, 10, grid.y(row) + 4, class_="lane-name") for row, name in enumerate(drawing.lanes)]
    return Diagram(
        what="Space-time diagram",
        key="key",
        names=picture_of(
            element("g", *names, id=f"{prefix}names", class_="drawing"), names_width, grid.height, aria_hidden="true"
        ),
        picture=picture_of(
            "".join(_title(view, drawing))
            + element("g", *_layers(drawing, grid), id=f"{prefix}lanes", class_="drawing"),
            grid.width,
            grid.height,
            role="img",
        ),
        names_width=names_width,
        width=grid.width,
        height=grid.height,
        sheets=tuple(range(0, grid.width, SHEET)) if grid.width > SHEET * 1.4 else (),
        caption=_caption(drawing),
        words=tuple((_clock(point.entry), point.entry.task, _point_title(point, drawing)) for point in drawing.points),
    )


def picture_of(content: str, width: int, height: int, **attributes: str) -> str:
    """A picture of a fixed size."""
    return element("svg", content, viewBox=f"0 0 {width} {height}", width=width, height=height, **attributes)


def _title(view: CounterexampleView, drawing: Drawing) -> Iterator[str]:
    yield title(f"Space-time diagram of {view.id}")
    yield element("desc", escape(_description(drawing)))


def _description(drawing: Drawing) -> str:
    parts = [f"Lanes from top to bottom: {', '.join(drawing.lanes)}."]
    parts += [f"{_who(message)} was {message.crossing}." for message in drawing.messages if message.crossing]
    parts.append("The list under the diagram says the same in words.")
    return " ".join(parts)


def _who(message: Message) -> str:
    entry = message.send.entry
    return f"Record {record_name(entry.origin)} on {entry.channel}"


def _caption(drawing: Drawing) -> str:
    parts = []
    if drawing.coarse:
        parts.append("No time line was recorded, so that only snapshots, failures and commits are drawn.")
    if drawing.left_out:
        drawn = len(drawing.messages)
        parts.append(
            f"{drawn} of {plural(drawn + drawing.left_out, 'message')} drawn, those nearest the cut and faults."
        )
    if drawing.main_cut is not None:
        crossing = sum(bool(message.crossing) for message in drawing.messages)
        who = plural(crossing, "record") if crossing else "No record"
        parts.append(f"{who} {'cross' if crossing > 1 else 'crosses'} the cut of checkpoint {drawing.main_cut}.")
    return " ".join(parts)


def _clock(entry: Timed) -> str:
    return duration(entry.at_us) if entry.at_us >= 0 else ""


def _point_title(point: Point, drawing: Drawing) -> str:
    crossing = next((one.crossing for one in drawing.messages if one.crossing and point in (one.send, one.receipt)), "")
    return sentence(point.entry) + (f": {crossing}" if crossing else "")


def _layers(drawing: Drawing, grid: _Grid) -> Iterator[str]:
    """The layers, lowest first: lanes, attempts, messages, cuts, marks, names of records, the clock."""
    for row in range(len(drawing.lanes)):
        yield element("path", class_="lane", d=path([(0, grid.y(row)), (grid.width, grid.y(row))]))
    yield from _attempts(drawing, grid)
    yield from (_segment(segment, grid) for segment in drawing.segments)
    yield from (_message(message, grid) for message in drawing.messages)
    yield from (_cut(cut, grid, cut.checkpoint == drawing.main_cut) for cut in drawing.cuts)
    yield from _marks(drawing, grid)
    yield from _names(drawing, grid)
    yield from _times(drawing, grid)


def _attempts(drawing: Drawing, grid: _Grid) -> Iterator[str]:
    for point in drawing.points:
        if point.entry.what == "attempt-started" and point.column > 0:
            x = grid.x(point.column) - grid.step / 2
            number = point.entry.checkpoint
            restores = f", from checkpoint {number}" if number is not None else ""
            yield element("path", class_="attempt", d=path([(x, 4), (x, grid.height - BOTTOM)]))
            side = "end" if x > grid.width - ATTEMPT_LABEL else "start"
            text = f"attempt {point.entry.attempt}{restores}"
            yield label(text, x + (5 if side == "start" else -5), 14, class_="note", text_anchor=side)


def _segment(segment: Segment, grid: _Grid) -> str:
    first = grid.x(segment.first) - grid.step * 0.4
    last = grid.width if segment.how == "alive" else grid.x(segment.last)
    y = grid.y(segment.lane)
    return element("path", class_="life", d=path([(first, y), (max(first, last), y)]))


def _message(message: Message, grid: _Grid) -> str:
    start, end = _ends(message, grid)
    middle = _in_first_gap(start, end)
    parts = [title(_message_title(message)), element("path", d=path([start, end]))]
    if message.receipt is None:
        parts.append(element("path", class_="lost", d=_cross(end, 4)))
    elif message.kind == "barrier":
        number = message.send.entry.checkpoint
        parts.append(element("rect", x=middle[0] - 7, y=middle[1] - 7, width=14, height=14))
        parts.append(label("" if number is None else str(number), middle[0], middle[1] + 4, class_="in-box"))
    elif message.kind != "write":
        parts.append(element("circle", cx=end[0], cy=end[1], r=2.6))
    kind = f"message {message.kind}" + (" crossing" if message.crossing else "")
    return element("g", *parts, class_=kind)


def _ends(message: Message, grid: _Grid) -> tuple[tuple[float, float], tuple[float, float]]:
    start = grid.at(message.send)
    return start, grid.at(message.receipt) if message.receipt else _nowhere(message, grid, start)


def _names(drawing: Drawing, grid: _Grid) -> Iterator[str]:
    """The names of records, placed where nothing covers them; records that cross the cut are placed first."""
    records = [message for message in drawing.messages if message.kind == "record"]
    named = records if len(records) <= FEW_RECORDS else [message for message in records if message.crossing]
    labels = Labels(_in_the_way(drawing, grid), _lines_of_cuts(drawing, grid))
    for message in sorted(named, key=lambda one: not one.crossing):
        name = record_name(message.send.entry.origin)
        x, y = labels.place(name, *_ends(message, grid))
        kind = "record-name crossing" if message.crossing else "record-name"
        yield label(name, x, y, class_=kind)


def _in_the_way(drawing: Drawing, grid: _Grid) -> Iterator[Box]:
    """The places that names must avoid: the boxes of barriers, and the marks on the lanes."""
    for message in drawing.messages:
        if message.kind == "barrier" and message.receipt is not None:
            yield _around(_in_first_gap(*_ends(message, grid)), 8)
    for point in drawing.points:
        x, y = grid.at(point)
        yield _around((x, y), 9 if mark_of(point.entry, x, y) else 3)


def _around(place: tuple[float, float], room: float) -> Box:
    x, y = place
    return Box(left=x - room, top=y - room, right=x + room, bottom=y + room)


def _lines_of_cuts(drawing: Drawing, grid: _Grid) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    for cut in drawing.cuts:
        yield from pairwise(_line_of(cut, grid))


def _in_first_gap(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    """The point half a lane along a line, where a label is between two lanes."""
    share = min(0.5, LANE_HEIGHT / 2 / max(abs(end[1] - start[1]), 1))
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _nowhere(message: Message, grid: _Grid, start: tuple[float, float]) -> tuple[float, float]:
    """The end of the line of a message that never arrives: a short way from its send."""
    up = message.kind == "control"
    return start[0] + grid.step * 0.8, start[1] + (-1 if up else 1) * LANE_HEIGHT * 0.4


def _message_title(message: Message) -> str:
    lost = "" if message.receipt else ", which never arrives"
    crossing = f", {message.crossing}" if message.crossing else ""
    return f"{with_task(message.send.entry)}{lost}{crossing}"


def _cross(at: tuple[float, float], size: float) -> str:
    x, y = at
    return path([(x - size, y - size), (x + size, y + size)]) + path([(x - size, y + size), (x + size, y - size)])


def _cut(cut: Cut, grid: _Grid, main: bool) -> str:
    line = _line_of(cut, grid)
    (x, top), name = line[0], f"cut {cut.checkpoint}" + ("" if cut.completed else ", not complete")
    parts = [
        title(f"The cut of checkpoint {cut.checkpoint}"),
        element("path", class_="leader", d=path([(x, 34), (x, top)])),
        element("path", d=path(line)),
        label(name, x, 30, class_="note"),
    ]
    return element("g", *parts, class_="cut main" if main else "cut")


def _line_of(cut: Cut, grid: _Grid) -> list[tuple[float, float]]:
    """The line of a cut: vertical at each lane, slanted between the lanes."""
    places = [(grid.x(column), grid.y(lane)) for lane, column in cut.points]
    return [place for x, y in places for place in ((x, y - 12), (x, y + 12))]


def _marks(drawing: Drawing, grid: _Grid) -> Iterator[str]:
    occupied: dict[int, float] = {}
    for point in drawing.points:
        x, y = grid.at(point)
        mark = mark_of(point.entry, x, y)
        if mark:
            yield element("g", title(sentence(point.entry)), mark, class_=f"mark {point.entry.what}")
        if point.entry.what in ("fault-fired", "command-issued", "job-ended"):
            yield _caption_at(point, x, y, occupied)
        if point.entry.channel and drawing.lanes[point.lane] == FAULTS:
            yield _cut_link(point.entry, drawing, grid, x)


def _caption_at(point: Point, x: float, y: float, occupied: dict[int, float]) -> str:
    """The place of a word beside a mark: the first of two levels that is free."""
    text = point.entry.peer if point.entry.what == "fault-fired" else point.entry.detail
    level = next((one for one in (0, 1) if occupied.get(point.lane * 2 + one, 0.0) < x), 1)
    occupied[point.lane * 2 + level] = x + len(text) * 6.5 + 14
    return label(
        text,
        x + 9,
        y + (-8 if level == 0 else 17),
        class_="note fault" if point.entry.what == "fault-fired" else "note",
    )


def _cut_link(entry: Timed, drawing: Drawing, grid: _Grid, x: float) -> str:
    """Two strokes between the lanes of a channel that a fault has hit."""
    sender, _, receiver = entry.channel.partition(">")
    if sender not in drawing.lanes or receiver not in drawing.lanes:
        return ""
    down = drawing.lanes.index(receiver) > drawing.lanes.index(sender)
    y = grid.y(drawing.lanes.index(sender)) + (0.5 if down else -0.5) * LANE_HEIGHT
    strokes = path([(x - 8, y + 6), (x + 2, y - 6)]) + path([(x - 2, y + 6), (x + 8, y - 6)])
    return element("g", title(f"{entry.channel} is hit"), element("path", d=strokes), class_="link-hit")


def _times(drawing: Drawing, grid: _Grid) -> Iterator[str]:
    """The clock under the picture, where there is room; columns follow the order of events, not time."""
    free = 0.0
    for point in drawing.points:
        x = grid.x(point.column)
        if point.entry.at_us >= 0 and x >= free:
            text = duration(point.entry.at_us)
            yield label(text, x, grid.height - 8, class_="clock")
            free = x + max(120, len(text) * 8)
