"""The coverage in a report: a heat map for each alignment mode, the ways to end, and the targets without a hit."""

from __future__ import annotations

from collections.abc import Iterator

from ..faults.plan import KINDS
from .model import Coverage, CoverageRow, StopCounts, Summary, Value
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


def coverage_maps(coverage: Coverage) -> tuple[CoverageMap, ...]:
    """A map for each alignment mode that has possible targets, in the order of `MODES`."""
    by_mode: dict[str, list[CoverageRow]] = {}
    for row in coverage.rows:
        by_mode.setdefault(row.alignment, []).append(row)
    modes = [*(mode for mode in MODES if mode in by_mode), *sorted(set(by_mode) - set(MODES))]
    return tuple(_map(MODES.get(mode, mode), by_mode[mode]) for mode in modes)


def _map(title: str, rows: list[CoverageRow]) -> CoverageMap:
    kinds = tuple(kind for kind in KINDS if any(kind in row.fired for row in rows))
    points = tuple(dict.fromkeys(row.point for row in rows))
    sums = {(point, kind): _sum(rows, point, kind) for point in points for kind in kinds}
    most = max((total.fired for total in sums.values()), default=0)
    lines = tuple((point, tuple(_warmed(sums[point, kind], most) for kind in kinds)) for point in points)
    endings = dict.fromkeys(row.ending for row in rows)
    return CoverageMap(title=title, kinds=kinds, lines=lines, endings=tuple(_ending(rows, name) for name in endings))


def _sum(rows: list[CoverageRow], point: str, kind: str) -> TargetTotal:
    found = [(row.ending, row.fired[kind]) for row in rows if row.point == point and kind in row.fired]
    return TargetTotal(
        fired=sum(number for _, number in found),
        empty=tuple(ending for ending, number in found if not number),
        possible=bool(found),
    )


def _warmed(total: TargetTotal, most: int) -> TargetTotal:
    return TargetTotal(
        fired=total.fired, empty=total.empty, possible=total.possible, heat=total.fired / most if most else 0.0
    )


def _ending(rows: list[CoverageRow], ending: str) -> tuple[str, int, int, int]:
    numbers = [number for row in rows if row.ending == ending for number in row.fired.values()]
    return ending, len(numbers), sum(number > 0 for number in numbers), sum(numbers)


def coverage_lead(coverage: Coverage) -> str:
    """The coverage in one sentence; empty if there is none."""
    if not coverage.possible:
        return ""
    hit = f"{coverage.hit:,} of {plural(coverage.possible, 'possible coverage target')}"
    return f"{hit} were hit, by {plural(coverage.fired, 'fault')}."


def targets_not_hit(coverage: Coverage) -> tuple[str, ...]:
    """Possible targets that were not hit: some by name, the others counted."""
    found = list(_empty(coverage))
    more = len(found) - MOST_EMPTY
    return (*found[:MOST_EMPTY], *((f"and {more:,} more",) if more > 0 else ()))


def _empty(coverage: Coverage) -> Iterator[str]:
    for row in coverage.rows:
        for kind, number in row.fired.items():
            if not number:
                yield f"{kind} at {row.point}, {row.ending}, {row.alignment}"


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
