"""The coverage in a report: a heat map for each alignment mode and for each snapshot format and state backend, the ways
to end, and the targets without a hit."""

from __future__ import annotations

from collections.abc import Iterator

from ..faults.plan import KINDS
from .model import Coverage, StopCounts, Summary, Value
from .words import plural

MOST_EMPTY = 12
"""how many targets without a hit are named"""

MODES: dict[str, str] = {
    "aligned": "Barriers aligned (exactly-once)",
    "unaligned": "Barriers overtake (exactly-once)",
    "timeout": "Barriers overtake after a timeout (exactly-once)",
    "in-turn": "Each checkpoint the next of these (exactly-once)",
    "unblocked": "Barriers not waited for (at-least-once)",
    "none": "No barriers (at-most-once)",
}

WAYS: dict[str, str] = {
    "natural-end": "end of all input",
    "stop": "stop with savepoint",
    "drain": "stop with savepoint and drain",
    "cancel": "cancel",
    "resume": "resume",
    "unfit-resume": "resume with an incompatible snapshot",
}


class TargetTotal(Value, kw_only=True):
    """One protocol point and kind of fault, over all ways of ending."""

    fired: int = 0
    empty: tuple[str, ...] = ()
    """the ways of ending in which the fault could have fired and did not"""
    possible: bool = True
    heat: float = 0.0
    """0 … 1"""

    @property
    def text(self) -> str:
        """The text of the cell: how many faults fired, a dot where none did, nothing where none can."""
        if not self.possible:
            return ""
        return f"{self.fired:,}" if self.fired else "·"


class CoverageMap(Value, kw_only=True):
    """The coverage in one alignment mode."""

    title: str
    kinds: tuple[str, ...]
    lines: tuple[tuple[str, tuple[TargetTotal, ...]], ...]
    """by point: a cell for each kind"""
    endings: tuple[tuple[str, int, int, int], ...]
    """(way of ending, possible targets, targets hit, faults that fired)"""

    @property
    def possible(self) -> int:
        return sum(possible for _, possible, _, _ in self.endings)

    @property
    def hit(self) -> int:
        return sum(hit for _, _, hit, _ in self.endings)

    @property
    def share(self) -> str:
        """The share of the possible targets that were hit, in percent."""
        return f"{100 * self.hit / self.possible:.1f} %" if self.possible else "–"


class StopLine(Value, kw_only=True):
    """One way to end a job, or to go on."""

    name: str
    counts: StopCounts
    by: str
    """the faults that hit it, by kind and phase, in words"""
    at: str
    """the points at which they hit it, in words"""


Row = tuple[str, str, dict[str, int]]
"""way of ending, point, and the faults that fired, by kind: 0 for a target that was not hit"""


class SnapshotMap(Value, kw_only=True):
    """The snapshot targets of one format and state backend."""

    title: str
    kinds: tuple[str, ...]
    lines: tuple[tuple[str, tuple[TargetTotal, ...]], ...]
    """by what the user did: a cell for each kind"""
    possible: int
    hit: int


BACKENDS = {"heap": "on the heap", "lsm": "in an LSM store"}


def snapshot_maps(coverage: Coverage) -> tuple[SnapshotMap, ...]:
    """A map for each format and backend that has possible targets, in the order of the table."""
    table = coverage.snapshots.table
    by_map: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
    for row, fired in table.by_row():
        form, backend, action = _three(row)
        by_map.setdefault((form, backend), {})[action] = fired
    return tuple(_snapshot_map(form, backend, tuple(table.columns), lines) for (form, backend), lines in by_map.items())


def _snapshot_map(form: str, backend: str, kinds: tuple[str, ...], lines: dict[str, dict[str, int]]) -> SnapshotMap:
    counts = [count for fired in lines.values() for count in fired.values()]
    return SnapshotMap(
        title=f"{form} snapshots, state {BACKENDS.get(backend, backend)}",
        kinds=kinds,
        lines=tuple(
            (_done(action), tuple(_one(fired.get(kind), max(counts, default=0)) for kind in kinds))
            for action, fired in lines.items()
        ),
        possible=len(counts),
        hit=sum(count > 0 for count in counts),
    )


def _one(fired: int | None, most: int) -> TargetTotal:
    return _warmed(TargetTotal(fired=fired or 0, possible=fired is not None), most)


def snapshot_lead(coverage: Coverage) -> str:
    """The snapshot targets in one sentence; empty if there is none."""
    found = coverage.snapshots
    return f"{found.hit:,} of {plural(found.possible, 'possible snapshot target')} were hit." if found.possible else ""


def snapshots_not_hit(coverage: Coverage) -> tuple[str, ...]:
    """Possible snapshot targets that no scenario hit: some by name, the others counted."""
    found = [
        f"{kind} and {_done(action)}, {form} snapshots, state {BACKENDS.get(backend, backend)}"
        for row, fired in coverage.snapshots.table.by_row()
        for form, backend, action in (_three(row),)
        for kind, count in fired.items()
        if not count
    ]
    return _some(found)


def _done(action: str) -> str:
    """What the user did, in words."""
    return "no command" if action == "none" else action


def _three(row: str) -> tuple[str, str, str]:
    first, _, rest = row.partition(" ")
    second, _, third = rest.partition(" ")
    return first, second, third


def coverage_maps(coverage: Coverage) -> tuple[CoverageMap, ...]:
    """A map for each alignment mode that has possible targets, in the order of `MODES`."""
    by_mode: dict[str, list[Row]] = {}
    for mode, row in _rows(coverage):
        by_mode.setdefault(mode, []).append(row)
    modes = [*(mode for mode in MODES if mode in by_mode), *sorted(set(by_mode) - set(MODES))]
    return tuple(_map(MODES.get(mode, mode), by_mode[mode]) for mode in modes)


def _rows(coverage: Coverage) -> Iterator[tuple[str, Row]]:
    """Each row, behind its alignment mode."""
    for one in coverage.rows or ():
        yield one.alignment, (one.ending, one.point, one.fired)
    for name, fired in coverage.table.by_row():
        mode, ending, point = _three(name)
        yield mode, (ending, point, fired)


def _map(title: str, rows: list[Row]) -> CoverageMap:
    kinds = tuple(kind for kind in KINDS if any(kind in fired for _, _, fired in rows))
    points = tuple(dict.fromkeys(point for _, point, _ in rows))
    sums = {(point, kind): _sum(rows, point, kind) for point in points for kind in kinds}
    most = max((total.fired for total in sums.values()), default=0)
    lines = tuple((point, tuple(_warmed(sums[point, kind], most) for kind in kinds)) for point in points)
    endings = dict.fromkeys(ending for ending, _, _ in rows)
    return CoverageMap(title=title, kinds=kinds, lines=lines, endings=tuple(_ending(rows, name) for name in endings))


def _sum(rows: list[Row], point: str, kind: str) -> TargetTotal:
    found = [(ending, fired[kind]) for ending, where, fired in rows if where == point and kind in fired]
    return TargetTotal(
        fired=sum(number for _, number in found),
        empty=tuple(ending for ending, number in found if not number),
        possible=bool(found),
    )


def _warmed(total: TargetTotal, most: int) -> TargetTotal:
    return TargetTotal(
        fired=total.fired, empty=total.empty, possible=total.possible, heat=total.fired / most if most else 0.0
    )


def _ending(rows: list[Row], ending: str) -> tuple[str, int, int, int]:
    numbers = [number for own, _, fired in rows if own == ending for number in fired.values()]
    return ending, len(numbers), sum(number > 0 for number in numbers), sum(numbers)


def coverage_lead(coverage: Coverage) -> str:
    """The coverage in one sentence; empty if there is none."""
    if not coverage.possible:
        return ""
    hit = f"{coverage.hit:,} of {plural(coverage.possible, 'possible coverage target')}"
    return f"{hit} were hit, by {plural(coverage.fired, 'fault')}."


def targets_not_hit(coverage: Coverage) -> tuple[str, ...]:
    """Possible targets that were not hit: some by name, the others counted."""
    return _some(list(_empty(coverage)))


def _some(found: list[str]) -> tuple[str, ...]:
    more = len(found) - MOST_EMPTY
    return (*found[:MOST_EMPTY], *((f"and {more:,} more",) if more > 0 else ()))


def _empty(coverage: Coverage) -> Iterator[str]:
    for mode, (ending, point, fired) in _rows(coverage):
        for kind, number in fired.items():
            if not number:
                yield f"{kind} at {point}, {ending}, {mode}"


def stops_shown(summary: Summary) -> dict[str, StopCounts]:
    """Every way to end a job; of a pipeline those that were planned, if it was more than the end of its input."""
    if not summary.pipeline:
        return summary.stops
    planned = {kind: counts for kind, counts in summary.stops.items() if counts.planned}
    return planned if set(planned) - {"natural-end"} else {}


def stop_lines(summary: Summary) -> tuple[StopLine, ...]:
    """The ways to end a job that are shown, in the order of `WAYS`."""
    shown = stops_shown(summary)
    known = [kind for kind in WAYS if kind in shown]
    return tuple(_stop_line(kind, shown[kind]) for kind in (*known, *sorted(set(shown) - set(WAYS))))


def _stop_line(kind: str, counts: StopCounts) -> StopLine:
    by = [
        f"{fault} {sum(phases.values()):,} ({', '.join(f'{phase} {number:,}' for phase, number in phases.items())})"
        for fault, phases in counts.faults.items()
    ]
    begins = ", ".join(f"{number:,} with {_BEGINS.get(what, what)}" for what, number in counts.begins_with.items())
    name = WAYS.get(kind, kind) + (f" ({begins})" if begins else "")
    at = ", ".join(f"{point} {number:,}" for point, number in counts.points.items())
    return StopLine(name=name, counts=counts, by="; ".join(by), at=at)


_BEGINS = {"savepoint": "a savepoint", "checkpoint": "a checkpoint", "nothing": "nothing to restore"}
