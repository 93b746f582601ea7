"""The space-time diagram as data: lanes, columns, messages, attempts and cuts.

As in Lamport's diagrams (1978), a process is a line, a message is a slanted line from its
send to its receipt, and a consistent cut is a line that no message crosses backwards.
Columns follow the order of events and not the clock, so that the events fill the page
evenly.  An event shares the column of the previous event, unless an event of its lane or
the send of its message is in that column already.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ...properties.model.history import History, TaskRun, Timed
from ..model import Value
from .entries import COORDINATOR, FAULTS, STORE, entries_of
from .messages import MessageKind, Pair, crossing, nearest, pairs_of


class Point(Value, kw_only=True):
    """An entry and its place."""

    entry: Timed
    lane: int
    column: int


class Message(Value, kw_only=True):
    """A message; `receipt` is None if it never arrived."""

    kind: MessageKind
    send: Point
    receipt: Point | None
    crossing: str = ""
    """how the message crosses the drawn cut; empty if it does not"""


class Segment(Value, kw_only=True):
    """A stretch of a lane: an attempt of a task, or the coordinator between two deaths."""

    lane: int
    attempt: int
    first: int
    last: int
    how: str


class Cut(Value, kw_only=True):
    """A checkpoint, as a line through the points where its tasks took their snapshots."""

    checkpoint: int
    completed: bool
    points: tuple[tuple[int, int], ...]
    """(lane, column)"""


class Drawing(Value, kw_only=True):
    lanes: tuple[str, ...]
    columns: int
    points: tuple[Point, ...]
    messages: tuple[Message, ...]
    segments: tuple[Segment, ...]
    cuts: tuple[Cut, ...]
    main_cut: int | None
    """the checkpoint that the story is about"""
    left_out: int
    """messages that are not drawn"""
    coarse: bool
    """whether the history has no time line, so that records and barriers are not drawn"""


def drawing_of(history: History, checkpoint: int | None = None) -> Drawing:
    """The layout of a history; `checkpoint` is the main cut (None: the newest)."""
    entries = entries_of(history)
    marks = _marks(history, entries)
    main = checkpoint if any(mark[0] == checkpoint for mark in marks) else _newest(history, marks)
    pairs = pairs_of(entries)
    cut = {(task, attempt): order for (number, task, attempt), order in marks.items() if number == main}
    for pair in pairs:
        pair.crossing = crossing(pair, cut)
    kept, left_out = nearest(pairs, entries, cut)
    drawn = _without(entries, pairs, kept)
    lanes = lanes_of(history, drawn)
    places = _place(drawn, kept, lanes)
    columns = _Columns(places)
    return Drawing(
        lanes=tuple(lanes),
        columns=columns.count,
        points=tuple(places.values()),
        messages=tuple(
            Message(
                kind=pair.kind,
                send=places[id(pair.send)],
                receipt=places[id(pair.receipt)] if pair.receipt else None,
                crossing=pair.crossing,
            )
            for pair in kept
        ),
        segments=tuple(_segments(history, drawn, lanes, columns)),
        cuts=tuple(_cuts(history, _drawn_marks(marks, drawn), lanes, columns)),
        main_cut=main,
        left_out=left_out,
        coarse=not history.timeline,
    )


def lanes_of(history: History, entries: Iterable[Timed]) -> list[str]:
    """Lanes from top to bottom: injected faults, the coordinator, tasks from sources to sinks, the store."""
    entries = list(entries)
    runs = {run.task: run for run in history.runs}
    feeds = {task: [name.partition(">")[0] for name in run.inputs] for task, run in runs.items()}
    depth: dict[str, int] = {}

    def measure(task: str, below: int) -> int:
        if task not in depth and below:
            depth[task] = 1 + max((measure(one, below - 1) for one in feeds.get(task, [])), default=-1)
        return depth.get(task, 0)

    tasks = list(runs) + [entry.task for entry in entries if entry.task not in runs]
    own = [task for task in dict.fromkeys(tasks) if task not in ("", COORDINATOR, FAULTS, STORE)]
    own.sort(key=lambda task: (measure(task, len(runs)), _natural(task)))
    what = {entry.what for entry in entries}
    top = [FAULTS] if "fault-fired" in what else []
    bottom = [STORE] if "snapshot-persisted" in what else []
    return [*top, COORDINATOR, *own, *bottom]


def _natural(task: str) -> tuple[str, int, str]:
    name, _, number = task.rpartition("-")
    return (name, int(number), "") if number.isdecimal() else (task, 0, "")


Marks = dict[tuple[int, str, int], int]
"""(checkpoint, task, attempt): the order of the snapshot"""


def _marks(history: History, entries: Iterable[Timed]) -> Marks:
    marks = {(mark.checkpoint, run.task, run.attempt): mark.order for run in history.runs for mark in run.marks}
    for entry in entries:
        if entry.what == "snapshot-taken" and entry.checkpoint is not None:
            marks[entry.checkpoint, entry.task, entry.attempt] = entry.order
    return marks


def _newest(history: History, marks: Marks) -> int | None:
    completed = [one.checkpoint for one in history.completed if any(mark[0] == one.checkpoint for mark in marks)]
    return max(completed or [mark[0] for mark in marks], default=None)


def _without(entries: list[Timed], pairs: list[Pair], kept: list[Pair]) -> list[Timed]:
    """The entries that belong to no message, and those of the messages that are drawn."""
    ends = {id(end) for pair in pairs for end in (pair.send, pair.receipt) if end}
    wanted = {id(end) for pair in kept for end in (pair.send, pair.receipt) if end}
    return [entry for entry in entries if id(entry) in wanted or id(entry) not in ends]


def _place(entries: list[Timed], pairs: list[Pair], lanes: list[str]) -> dict[int, Point]:
    rows = {name: row for row, name in enumerate(lanes)}
    sends = {id(pair.receipt): pair.send for pair in pairs if pair.receipt}
    busy = [-1] * len(lanes)
    places: dict[int, Point] = {}
    column = 0
    for entry in entries:
        lane = rows[STORE if entry.what == "snapshot-persisted" else entry.task or COORDINATOR]
        send = places.get(id(sends.get(id(entry))))
        column = max(column, busy[lane] + 1, send.column + 1 if send else 0)
        busy[lane] = column
        places[id(entry)] = Point(entry=entry, lane=lane, column=column)
    return places


class _Columns:
    """Maps the order of an event to its column."""

    def __init__(self, places: dict[int, Point]) -> None:
        self._orders = [point.entry.order for point in places.values()]
        self._columns = [point.column for point in places.values()]
        self.count = max(self._columns, default=0) + 1

    def at(self, order: int) -> int:
        found = bisect_left(self._orders, order)
        return self._columns[found] if found < len(self._columns) else self.count


def _segments(history: History, entries: list[Timed], lanes: list[str], columns: _Columns) -> Iterator[Segment]:
    rows = {name: row for row, name in enumerate(lanes)}
    for run in history.runs:
        last = columns.count if run.ended is None else columns.at(run.ended)
        first = _first_column(run, entries, columns)
        yield Segment(lane=rows[run.task], attempt=run.attempt, first=first, last=max(first, last), how=run.how)
    lives = [0, *(one.order for one in entries if one.what in ("coordinator-down", "coordinator-up"))]
    for index in range(0, len(lives), 2):
        dies = index + 1 < len(lives)
        last = columns.at(lives[index + 1]) if dies else columns.count
        how = "killed" if dies else "alive"
        yield Segment(lane=rows[COORDINATOR], attempt=0, first=columns.at(lives[index]), last=last, how=how)


def _first_column(run: TaskRun, entries: list[Timed], columns: _Columns) -> int:
    own = next((one.order for one in entries if (one.task, one.attempt) == (run.task, run.attempt)), run.started)
    return columns.at(min(own, run.started))


def _drawn_marks(marks: Marks, entries: list[Timed]) -> Marks:
    orders = {entry.order for entry in entries}
    return {mark: order for mark, order in marks.items() if order in orders}


def _cuts(history: History, marks: Marks, lanes: list[str], columns: _Columns) -> Iterator[Cut]:
    rows = {name: row for row, name in enumerate(lanes)}
    completed = {one.checkpoint for one in history.completed}
    by_checkpoint: dict[int, dict[int, int]] = {}
    for (checkpoint, task, _), order in marks.items():
        by_checkpoint.setdefault(checkpoint, {})[rows[task]] = columns.at(order)
    for checkpoint, points in sorted(by_checkpoint.items()):
        yield Cut(checkpoint=checkpoint, completed=checkpoint in completed, points=tuple(sorted(points.items())))
