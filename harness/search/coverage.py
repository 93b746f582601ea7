"""What was really tried, by cell: protocol point x fault x way of ending x alignment.

A fault that fired counts in the cell of the point that set it off, of its kind,
of how the job that it hit ended, and of how that job aligned.  Faults set off by
a time or a phase, and those in a job that never ended, have no cell.

What cannot happen follows from the few rules below, each with its reason.  A
cell that is possible and empty is a shortfall; one that fired although a rule
calls it impossible means that a rule or a subject is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import msgspec

from ...faults.plan import KINDS, AtPoint, kind_of
from ...faults.points import POINTS
from ...properties.model.history import FaultFired, History, JobEnded
from ...reports.model import Coverage, CoverageRow, Impossible
from ..scenario.model import Scenario
from ..subject.abilities import is_promised, usable
from ..subject.port import Capabilities

MODES: dict[str, tuple[str, str]] = {
    "aligned": ("exactly-once", "aligned"),
    "unaligned": ("exactly-once", "unaligned"),
    "timeout": ("exactly-once", "timeout"),
    "in-turn": ("exactly-once", "in-turn"),
    "unblocked": ("at-least-once", "aligned"),
    "none": ("at-most-once", "aligned"),
}
"""(guarantee, alignment) of the engine by what a task does with a channel whose barrier is in while others are
not: it waits, it does not and what the others bring is in flight, it waits only so long, each of these in turn; it
goes on reading, or there are no barriers."""

ENDINGS: tuple[str, ...] = ("finished", "drained", "stopped", "cancelled", "failed")
"""the ways in which a job ends, as in `JobEnded`"""

CHECKPOINT_POINTS: frozenset[str] = frozenset(
    {
        "barrier-sent",
        "barrier-received",
        "snapshot-taken",
        "snapshot-persisted",
        "ack-sent",
        "checkpoint-triggered",
        "ack-received",
        "checkpoint-acknowledged",
        "checkpoint-completed",
        "checkpoint-aborted",
        "completion-notified",
        "state-loaded",
    }
)
"""points that only a job with checkpoints comes to"""
TRANSACTION_POINTS: frozenset[str] = frozenset(
    {
        "transaction-begun",
        "transaction-written",
        "transaction-pre-committed",
        "commit-requested",
        "commit-answered",
    }
)
SNAPSHOT_FAULTS: frozenset[str] = frozenset({"fail-write", "fail-read", "tear-write", "lose-unsynced"})
STORE_FAULTS: frozenset[str] = frozenset({"fail-commit", "kill-database"})


class Cell(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One combination; each name is one of the axis' own."""

    alignment: str
    ending: str
    point: str
    fault: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Why some cells can never fire, whatever the engine does."""

    name: str
    reason: str
    """why: a fact of the protocol, of the engine's settings or of the harness"""
    forbids: Callable[[Cell], bool]


RULES: tuple[Rule, ...] = (
    Rule(
        name="no checkpoints",
        reason="at-most-once takes no checkpoints, so there is no barrier, no snapshot and nothing to restore",
        forbids=lambda cell: cell.alignment == "none" and cell.point in CHECKPOINT_POINTS,
    ),
    Rule(
        name="no snapshots to damage",
        reason="at-most-once writes and reads no snapshots, so no write or read of one can go wrong",
        forbids=lambda cell: cell.alignment == "none" and cell.fault in SNAPSHOT_FAULTS,
    ),
    Rule(
        name="no transactions",
        reason="at-most-once is refused with any sink but a plain one, so no transaction is begun or committed",
        forbids=lambda cell: (
            cell.alignment == "none" and (cell.point in TRANSACTION_POINTS or cell.fault in STORE_FAULTS)
        ),
    ),
    Rule(
        name="no record after the end",
        reason="without checkpoints no part of a job ends before the rest: once a partition ends, all input is worked "
        "off, and no record follows that a function could raise on",
        forbids=lambda cell: (
            cell.alignment == "none" and cell.point == "end-of-partition-sent" and cell.fault == "raise-in-operator"
        ),
    ),
    Rule(
        name="no savepoint to stop with",
        reason="a stop, with drain or without, takes a savepoint, which at-most-once refuses",
        forbids=lambda cell: cell.alignment == "none" and cell.ending in ("stopped", "drained"),
    ),
)


def rule_against(cell: Cell) -> Rule | None:
    """The first rule that calls a cell impossible; None when it can fire."""
    return next((rule for rule in RULES if rule.forbids(cell)), None)


def all_cells(faults: Iterable[str] = tuple(KINDS)) -> Iterator[Cell]:
    """Every combination, possible or not, in the order of the axes."""
    kinds = [kind for kind in KINDS if kind in set(faults)]
    for alignment in MODES:
        for ending in ENDINGS:
            for point in POINTS:
                for fault in kinds:
                    yield Cell(alignment=alignment, ending=ending, point=point, fault=fault)


@cache
def possible_cells(capabilities: Capabilities) -> tuple[Cell, ...]:
    """The cells that no rule forbids, of what a subject can do."""
    capabilities = usable(capabilities)
    return tuple(
        cell for cell in all_cells(capabilities.faults) if _is_asked(cell, capabilities) and rule_against(cell) is None
    )


def _is_asked(cell: Cell, capabilities: Capabilities) -> bool:
    """Whether the subject has what the cell needs: what it cannot is not asked of it."""
    guarantee, alignment = MODES[cell.alignment]
    if guarantee not in capabilities.guarantees or not any(is_promised(guarantee, sink) for sink in capabilities.sinks):
        return False
    if guarantee == "exactly-once" and alignment not in capabilities.alignments:
        return False
    if _COMMANDS.get(cell.ending, "") not in {"", *capabilities.commands}:
        return False
    at_once, commits = cell.point == "row-written", cell.point in TRANSACTION_POINTS or cell.fault in STORE_FAULTS
    if at_once and commits:  # takes an operator that commits before a sink that does not: few engines have one
        return False
    if at_once:
        return bool(capabilities.sinks & {"plain", "idempotent"})
    return not commits or "transactional" in capabilities.sinks


_COMMANDS = {"drained": "stop-with-savepoint", "stopped": "stop-with-savepoint", "cancelled": "cancel"}
"""the command that ends a job so"""


def cells_hit(scenario: Scenario, history: History) -> tuple[Cell, ...]:
    """The cell of each fault that fired, each fault counted once; those without a cell are left out."""
    engine = scenario.engine
    alignment = next((name for name, mode in MODES.items() if mode == (engine.guarantee, engine.alignment)), "")
    waiting: dict[int, None] = {}
    """faults that fired in the job that goes on"""
    counted: set[int] = set()
    found: list[Cell] = []
    for entry in history.journal:
        if isinstance(entry, FaultFired) and entry.fault not in counted:
            counted.add(entry.fault)
            waiting[entry.fault] = None
        elif isinstance(entry, JobEnded):
            for number in waiting:
                cell = _cell_of(scenario, number, alignment, entry.status)
                if cell is not None:
                    found.append(cell)
            waiting.clear()
    return tuple(found)


def _cell_of(scenario: Scenario, number: int, alignment: str, ending: str) -> Cell | None:
    """None for what has no place on an axis, as when a subject reports what nobody planned."""
    if number >= len(scenario.faults) or alignment not in MODES or ending not in ENDINGS:
        return None
    fault = scenario.faults[number]
    if not isinstance(fault.trigger, AtPoint) or fault.trigger.point not in POINTS:
        return None
    return Cell(alignment=alignment, ending=ending, point=fault.trigger.point, fault=kind_of(fault))


class CoverageTally:
    """Counts fired cells over scenarios; adding in any order gives the same."""

    def __init__(self) -> None:
        self._fired = Counter[Cell]()
        self._outside = 0

    def add(self, cells: Iterable[Cell], fired: int) -> None:
        """The cells of one scenario, and how many of its faults fired in all."""
        cells = tuple(cells)
        self._fired.update(cells)
        self._outside += fired - len(cells)

    def coverage(self, capabilities: Capabilities) -> Coverage:
        """All of it as it stands in the summary."""
        possible = possible_cells(capabilities)
        counts = {cell: self._fired[cell] for cell in possible} | dict(self._fired)
        return Coverage(
            possible=len(possible),
            hit=sum(self._fired[cell] > 0 for cell in possible),
            fired=self._fired.total(),
            outside=self._outside,
            rows=_rows(counts),
            impossible=_impossible(capabilities),
        )

    def contradictions(self) -> list[str]:
        """What fired although a rule calls it impossible, each in one sentence."""
        told: list[str] = []
        for cell in sorted(self._fired):
            rule = rule_against(cell)
            if rule is not None:
                told.append(f"coverage: {in_words(cell)} fired, and is called impossible: {rule.reason}")
        return told

    def empty(self, capabilities: Capabilities) -> list[Cell]:
        """The possible cells that never fired, in the order of the axes."""
        return [cell for cell in possible_cells(capabilities) if not self._fired[cell]]


def in_words(cell: Cell) -> str:
    return f"{cell.fault} at {cell.point} in a job that {_ENDED[cell.ending]}, {_ALIGNED[cell.alignment]}"


_ENDED = {
    "finished": "finished",
    "drained": "was drained",
    "stopped": "was stopped",
    "cancelled": "was cancelled",
    "failed": "failed",
}
_ALIGNED = {
    "aligned": "aligned",
    "unaligned": "unaligned",
    "timeout": "unaligned after a time-out",
    "in-turn": "aligned and unaligned in turn",
    "unblocked": "unblocked",
    "none": "without barriers",
}


def _rows(counts: dict[Cell, int]) -> list[CoverageRow]:
    places = {name: place for axis in (MODES, ENDINGS, POINTS, KINDS) for place, name in enumerate(axis)}
    rows: dict[tuple[str, str, str], dict[str, int]] = {}
    for cell in sorted(counts, key=lambda cell: tuple(places[name] for name in msgspec.structs.astuple(cell))):
        rows.setdefault((cell.alignment, cell.ending, cell.point), {})[cell.fault] = counts[cell]
    return [
        CoverageRow(alignment=alignment, ending=ending, point=point, fired=fired)
        for (alignment, ending, point), fired in rows.items()
    ]


@cache
def _counted(faults: frozenset[str]) -> tuple[tuple[Rule, int], ...]:
    blamed = Counter(rule.name for cell in _all_of(faults) if (rule := rule_against(cell)) is not None)
    return tuple((rule, blamed[rule.name]) for rule in RULES)


def _impossible(capabilities: Capabilities) -> list[Impossible]:
    counted = _counted(capabilities.faults)
    found = [Impossible(rule=rule.name, reason=rule.reason, cells=number) for rule, number in counted if number]
    unasked = len(_all_of(capabilities.faults)) - len(possible_cells(capabilities)) - sum(one.cells for one in found)
    if unasked:
        found.append(Impossible(rule=UNASKED, reason=_WHY_UNASKED, cells=unasked))
    return found


UNASKED = "not asked"
_WHY_UNASKED = (
    "they take a guarantee, a command or a sink that the subject has not, or a sink that both writes and commits"
)


@cache
def _all_of(faults: frozenset[str]) -> tuple[Cell, ...]:
    return tuple(all_cells(faults))
