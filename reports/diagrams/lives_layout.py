"""The run of a pipeline from outside as data: the lives of its processes, and what was done, fed, seen and counted.

Everything has a time of the run's clock, and places follow the clock.  A wait that would take
much of the picture is cut short, and signs of one lane that would cover each other are moved
apart.  All lanes share the places: what is above each other was at the same time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from ...properties.model.history import (
    AnyJournalEntry,
    CommandIssued,
    CommandReturned,
    Computed,
    Counted,
    FaultFired,
    History,
    JobEnded,
    Timed,
)
from ...properties.model.words import columns_of, plural, row_in_words
from ...properties.model.workload import Row
from ..model import RowPair, Value
from ..words import sentence

AIMS = "aims met"
COMMANDS = "commands"
COMMITS = "commits seen"
OUTPUT = "rows seen"
FEED = "records given"
PROXIES = "faults of proxies"
OTHER_LANES = (AIMS, COMMANDS, PROXIES, COMMITS, OUTPUT, FEED)
"""no process has such a name"""
OWN = "pipeline"
"""the pipeline's own process, beside its roles"""
STRUCK = {"kill-node": "process-killed", "pause-node": "process-paused"}
"""what a fault of each kind does to a process"""
DOWN = ("process-killed", "process-ended")
OF_PROCESSES = ("process-started", "process-ready", "process-paused", "process-continued", *DOWN)
OF_WORK = ("work-stored", "work-restored")
LABELS = {"process-ready": "ready", "work-stored": "stored", "work-restored": "restored"}
"""what is written beside a sign of a kind of event"""
NAMED_ROWS = 3
"""so many rows of a kind are named in words"""
APART = 15.0
"""the least distance of two signs of one lane, in pixels"""
LONGEST_WAIT = 110.0
"""the width of a wait that is cut short, in pixels"""
WIDTH = 650.0
"""the width that a picture has if its signs allow it, in pixels"""
FASTEST = 0.5
"""the width of a millisecond, at most: what takes no time looks like it"""


class Event(Value, kw_only=True):
    """One event: where it is drawn, and what it is in words."""

    order: int
    at_us: int
    lane: str
    what: str
    words: str
    label: str = ""
    """what is written beside its sign"""
    amount: int = -1
    """how many records were given, or rows were seen, by then"""


class Life(Value, kw_only=True):
    """A life of a process; `last_us` is None if it ran until the end."""

    lane: str
    first_us: int
    ready_us: int
    """from when on it could be used: its start, if nothing says more"""
    last_us: int | None
    pauses: tuple[tuple[int, int | None], ...] = ()


class TimeLine(Value, kw_only=True):
    """A whole picture."""

    lanes: tuple[str, ...]
    """commands, aims, faults of proxies, commits, and the processes"""
    events: tuple[Event, ...]
    """in order"""
    lives: tuple[Life, ...]
    counters: dict[str, tuple[Counted, ...]]
    expected: int | None
    """how many rows the output has to have in the end"""
    ends_us: int


def lives_of(history: History | None, rows: Sequence[RowPair]) -> TimeLine | None:
    """The lives in a history; None if it has no process of a pipeline.  `rows` are those of its output."""
    if history is None or not any(entry.what == "process-started" for entry in history.timeline):
        return None
    expected = Counter(row.expected for row in rows if row.expected is not None) or None
    found = [*_of_pipeline(history), *_of_reader(history, expected), *_of_commits(history)]
    events = sorted(found, key=lambda one: one.order)
    counters = {} if not isinstance(history.counters, dict) else history.counters
    # The pipeline's own process is started behind all roles, and drawn above them.
    named = dict.fromkeys(one.lane for one in events)
    processes = sorted((name for name in named if name not in OTHER_LANES), key=lambda name: name != OWN)
    return TimeLine(
        lanes=(*(lane for lane in (COMMANDS, AIMS, PROXIES, COMMITS) if lane in named), *processes),
        events=tuple(events),
        lives=tuple(life for process in processes for life in _lives(process, history.timeline)),
        counters={name: tuple(taken) for name, taken in counters.items()},
        expected=None if expected is None else expected.total(),
        ends_us=max(one.at_us for one in events),
    )


def _of_pipeline(history: History) -> Iterator[Event]:
    faults = {_struck(history, entry): entry for entry in history.journal if isinstance(entry, FaultFired)}
    lanes = {"aim-met": AIMS, "records-given": FEED}
    for entry in history.timeline:
        if entry.what in (*OF_PROCESSES, *OF_WORK, *lanes):
            words, label = _said(entry, faults.get(entry.order))
            yield Event(
                order=entry.order,
                at_us=entry.at_us,
                lane=lanes.get(entry.what, entry.task),
                what=entry.what,
                words=words,
                label=label,
                amount=entry.position,
            )
    for event in history.journal:
        yield from _of_journal(event)


def _struck(history: History, fault: FaultFired) -> int | None:
    """The order of the kill or pause that a fault was; None if it was neither."""
    what = STRUCK.get(fault.kind)
    before = [entry.order for entry in history.timeline if entry.what == what and entry.order < fault.order]
    return max(before, default=None)


def _said(entry: Timed, fault: FaultFired | None) -> tuple[str, str]:
    """An entry in words, and what is written beside its sign."""
    aim = "" if fault is None else _aim(fault)
    held = f": {fault.detail}" if fault is not None and fault.detail else ""
    beside = "" if fault is None else f": {fault.phase}"
    words = sentence(replace(entry, detail=""))
    match entry.what:
        case "process-started" if entry.detail:
            return f"{words} {entry.detail}", ""
        case "process-killed" | "process-paused":
            return f"{words}{aim}{held}", f"{entry.what.removeprefix('process-')}{beside}"
        case "process-ended":
            return f"{words}: {entry.detail}", ""
        case "aim-met":
            return f"{entry.detail} {words}", entry.detail
    return words, LABELS.get(entry.what, "")


def _aim(fault: FaultFired) -> str:
    return f" at the aim {fault.phase!r}" if fault.phase != "at a time" else " at a time"


def _of_journal(event: AnyJournalEntry) -> Iterator[Event]:
    lane, what, words, label = COMMANDS, "", "", ""
    match event:
        case FaultFired(kind=kind, phase=phase, detail=detail) if kind not in STRUCK:
            lane, what, label = PROXIES, "fault-fired", f"{kind}: {phase}"
            words = f"{kind} takes effect{_aim(event)}" + (f": {detail}" if detail else "")
        case CommandIssued(kind=kind, drain=drain):
            label = kind + (" with drain" if drain else "")
            what, words = "command-issued", f"{label} is requested"
        case CommandReturned(error=""):
            what, words = "command-returned", "the command returns"
        case CommandReturned(error=error):
            what, words, label = "command-refused", f"the command fails: {error}", "refused"
        case JobEnded(status=status, reason=reason):
            lane, what, label = OWN, "job-ended", f"the job: {status}"
            words = f"the job ends: {status}" + (f": {reason}" if reason else "")
            words += "" if event.covers is None else f"; it covers {plural(event.covers.get(0, 0), 'record')}"
    if what:
        yield Event(order=event.order, at_us=event.at_us, lane=lane, what=what, words=words, label=label)


def _of_reader(history: History, expected: Counter[Row] | None) -> Iterator[Event]:
    """The reads that saw other rows than the one before."""
    seen = {read.ended: read.seen for read in history.reads}
    before = Counter[Row]()
    for number, entry in enumerate(one for one in history.timeline if one.what == "output-read"):
        rows = Counter(history.committed if entry.detail else seen.get(entry.order) or [])
        if rows != before or not number or entry.detail:
            yield _read(entry, before, rows, _faulty(history, entry, before, rows, expected), columns_of(history))
        before = rows


def _of_commits(history: History) -> Iterator[Event]:
    """The pipeline's own markers of commits, each when a read first saw it: nobody knows when it was made."""
    reads = [entry for entry in history.timeline if entry.what == "output-read"]
    for commit in history.commits or []:
        seen = next((entry for entry in reads if entry.order > commit.order), None)
        records = sum(commit.positions.values())
        if seen is not None:
            yield Event(
                order=commit.order,
                at_us=seen.at_us,
                lane=COMMITS,
                what="commit-seen",
                words=f"the first {plural(records, 'record')} are seen to be committed",
                label=f"{records:,}",
            )


class _Faulty(NamedTuple):
    """The rows of a read that are marked."""

    vanished: Counter[Row]
    wrong: Counter[Row]
    """too often there, or not expected, and not marked before"""
    missing: Counter[Row]


def _faulty(
    history: History, entry: Timed, before: Counter[Row], rows: Counter[Row], expected: Counter[Row] | None
) -> _Faulty:
    """What a read has that the pipeline's promises exclude.

    Rows that may be replaced are right or wrong in the end alone.
    """
    given, in_the_end = history.computed, bool(entry.detail)
    computed = isinstance(given, Computed) and not given.by_record
    replaced = computed or history.sink == "idempotent"
    vanished, wrong, missing = before - rows, Counter[Row](), Counter[Row]()
    if expected is not None and (in_the_end or not replaced):
        wrong = rows - expected if replaced else (rows - expected) - (before - expected)
        missing = expected - rows if in_the_end else missing
    if history.guarantee == "at-least-once" and expected is not None:
        wrong = Counter({row: times for row, times in wrong.items() if row not in expected})
    if history.guarantee == "at-most-once":
        missing = Counter()
    return _Faulty(Counter() if replaced else vanished, wrong, missing)


def _read(entry: Timed, before: Counter[Row], rows: Counter[Row], faulty: _Faulty, columns: tuple[str, ...]) -> Event:
    vanished, wrong, missing = faulty
    new = rows - before
    parts = [f"{plural(rows.total(), 'row')} seen{f' {entry.detail}' if entry.detail else ''}"]
    parts += [f"{new.total():,} new"] if new and before else []
    parts += [f"{vanished.total():,} vanished: {_rows(vanished, columns)}"] if vanished else []
    parts += [f"{wrong.total():,} wrong: {_rows(wrong, columns, rows)}"] if wrong else []
    parts += [f"{missing.total():,} missing: {_rows(missing, columns)}"] if missing else []
    beside = [f"{found.total():,} {word}" for found, word in ((wrong, "wrong"), (vanished, "vanished")) if found]
    beside += [f"{missing.total():,} missing"] if missing else []
    return Event(
        order=entry.order,
        at_us=entry.at_us,
        lane=OUTPUT,
        what="rows-wrong" if wrong or missing else "rows-vanished" if vanished else "output-read",
        words="; ".join(parts),
        label=", ".join(beside),
        amount=rows.total(),
    )


def _rows(some: Counter[Row], columns: tuple[str, ...], there: Counter[Row] | None = None) -> str:
    """Rows by name, a few of them; of those that are there several times, how often."""
    named = [
        f"({row_in_words(row, columns)})" + (f", {there[row]} times" if there is not None and there[row] > 1 else "")
        for row in list(some)[:NAMED_ROWS]
    ]
    return ", ".join(named) + (" …" if len(some) > NAMED_ROWS else "")


def _lives(process: str, timeline: Iterable[Timed]) -> Iterator[Life]:
    first: int | None = None
    ready = 0
    pauses: list[tuple[int, int | None]] = []
    for entry in (one for one in timeline if one.task == process):
        match entry.what:
            case "process-started":
                first = ready = entry.at_us
                pauses = []
            case "process-ready":
                ready = entry.at_us
            case "process-paused":
                pauses.append((entry.at_us, None))
            case "process-continued" if pauses:
                pauses[-1] = (pauses[-1][0], entry.at_us)
            case "process-killed" if entry.detail:  # a part of it: its command may go on
                pass
            case "process-killed" | "process-ended" if first is not None:
                yield Life(lane=process, first_us=first, ready_us=ready, last_us=entry.at_us, pauses=tuple(pauses))
                first = None
    if first is not None:
        yield Life(lane=process, first_us=first, ready_us=ready, last_us=None, pauses=tuple(pauses))


class Scale:
    """Maps the time of the run to a place, in pixels from the first event."""

    def __init__(self, lives: TimeLine, width: float = WIDTH) -> None:
        """`width` is what the places have if the signs allow it."""
        times = sorted({(one.at_us, one.lane if _has_sign(one) else "") for one in lives.events})
        times += [(taken.at_us, "") for values in lives.counters.values() for taken in values]
        times.sort()
        waits = [after[0] - before[0] for before, after in pairwise(times)]
        wanted = width
        self._lay_out(times, _speed(waits, wanted))
        while self.width > width and wanted > width / 2:  # signs that were moved apart have taken more
            wanted *= 0.95
            self._lay_out(times, _speed(waits, wanted))

    def _lay_out(self, times: Sequence[tuple[int, str]], speed: float) -> None:
        self._times: list[int] = []
        self._places: list[float] = []
        self.cuts: list[tuple[float, int]] = []
        """of each wait that is cut short: the place of its middle, and how long it is"""
        last: dict[str, float] = {}
        for at_us, lane in times:
            place = self._place_of(at_us, speed, last.get(lane) if lane else None)
            if lane:
                last[lane] = place
            if self._times and self._times[-1] == at_us:
                self._places[-1] = place
            else:
                self._times.append(at_us)
                self._places.append(place)
        self.width = self._places[-1]

    def _place_of(self, at_us: int, speed: float, neighbour: float | None) -> float:
        """The place of the next time, behind its neighbour on the same lane."""
        if not self._times:
            return 0.0
        wait = at_us - self._times[-1]
        wide = wait / 1e3 * speed
        place = self._places[-1] + min(wide, LONGEST_WAIT)
        if wide > LONGEST_WAIT * 1.5:
            self.cuts.append((self._places[-1] + LONGEST_WAIT / 2, wait))
        return place if neighbour is None else max(place, neighbour + APART)

    def x(self, at_us: int) -> float:
        """The place of a time; between two events it is in proportion."""
        found = bisect_right(self._times, at_us)
        if not found or found == len(self._times):
            return self._places[max(0, found - 1)]
        (first, last), (left, right) = self._times[found - 1 : found + 1], self._places[found - 1 : found + 1]
        return left + (right - left) * (at_us - first) / (last - first)


def _has_sign(one: Event) -> bool:
    return one.what not in ("records-given", "output-read")


def _speed(waits: Sequence[int], width: float) -> float:
    """Pixels a millisecond, so that all waits together have this width, long ones cut short."""
    slow, fast = 0.0, FASTEST
    for _ in range(40):
        middle = (slow + fast) / 2
        wide = sum(min(wait / 1e3 * middle, LONGEST_WAIT) for wait in waits)
        slow, fast = (middle, fast) if wide < width else (slow, middle)
    return slow
