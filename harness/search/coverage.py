"""Coverage targets: protocol point x kind of fault x way of ending x alignment; and the snapshot targets.

The tally at the end counts both kinds: these, and those of `snapshot_targets`.

A fault that fired hits the target given by the point that triggered it, its kind,
the way in which the job ended, and the job's alignment.  Faults that a time or a
phase triggers, and faults in a job that never ended, hit no target.

The rules below say which targets are impossible, each with its reason.  A possible
target that was not hit is a shortfall, if the profile demands every target.  A hit on a target that a rule calls
impossible means that the rule or the subject is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TypeVar

import msgspec

from ...faults.plan import KINDS, AtPoint, kind_of
from ...faults.points import COPY_POINTS, DELETION_POINTS, FILE_POINT, POINTS, STATE_POINTS
from ...properties.model.history import FaultFired, History, JobEnded
from ...reports.model import Coverage, Impossible, SnapshotCoverage
from ...reports.nights.counts import CountTable, table_of
from ..scenario.actions import ACTIONS
from ..scenario.checks import SNAPSHOT_FORMATS, STATE_BACKENDS
from ..scenario.model import Scenario
from ..subject.abilities import is_promised, usable
from ..subject.port import Capabilities
from .fault_cells import FAULT_CELLS
from .snapshot_targets import (
    FAIL_COMMIT,
    SnapshotTarget,
    all_snapshot_targets,
    possible_snapshot_targets,
    snapshot_in_words,
    snapshot_rule_against,
)

MODES: dict[str, tuple[str, str]] = {
    "aligned": ("exactly-once", "aligned"),
    "unaligned": ("exactly-once", "unaligned"),
    "timeout": ("exactly-once", "timeout"),
    "in-turn": ("exactly-once", "in-turn"),
    "unblocked": ("at-least-once", "aligned"),
    "none": ("at-most-once", "aligned"),
}
"""(guarantee, alignment) of the engine, by name.

The alignment decides what happens to a channel whose barrier arrives before the others: the channel is blocked; the
barrier overtakes; the barrier overtakes after a timeout; each of these in turn; the task goes on reading
(at-least-once); there are no barriers (at-most-once).
"""

ENDINGS: tuple[str, ...] = ("finished", "drained", "stopped", "cancelled", "failed")
"""the ways in which a job ends, as in `JobEnded`"""

COVERED: tuple[str, ...] = tuple(point for point in POINTS if point not in COPY_POINTS)
"""the points of the targets: those that any job may reach.  Only a user who has a snapshot copied makes a job reach the
others, and the snapshot targets have that command with a coordinator that dies at each of them (`fault_cells`)"""

CHECKPOINT_POINTS: frozenset[str] = frozenset(
    {
        "barrier-sent",
        "barrier-received",
        "snapshot-taken",
        FILE_POINT,
        "snapshot-persisted",
        "ack-sent",
        "checkpoint-triggered",
        "ack-received",
        "checkpoint-acknowledged",
        "checkpoint-completed",
        "checkpoint-aborted",
        *DELETION_POINTS,
        "completion-notified",
        "state-loaded",
    }
)
"""points that only a job with checkpoints reaches"""
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


class CoverageTarget(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One combination; each name is one of its axis."""

    alignment: str
    ending: str
    point: str
    fault: str


AnyTarget = CoverageTarget | SnapshotTarget


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Why some targets can never be hit, whatever the engine does."""

    name: str
    reason: str
    """why: a fact of the protocol, of the engine's settings or of the harness"""
    forbids: Callable[[CoverageTarget], bool]


RULES: tuple[Rule, ...] = (
    Rule(
        name="no checkpoints",
        reason="at-most-once takes no checkpoints, so there is no barrier, no snapshot and nothing to restore",
        forbids=lambda target: target.alignment == "none" and target.point in CHECKPOINT_POINTS,
    ),
    Rule(
        name="no snapshots to damage",
        reason="at-most-once writes and reads no snapshots, so no write or read of one can go wrong",
        forbids=lambda target: target.alignment == "none" and target.fault in SNAPSHOT_FAULTS,
    ),
    Rule(
        name="no transactions",
        reason="at-most-once is refused with any sink but a plain one, so no transaction is begun or committed",
        forbids=lambda target: (
            target.alignment == "none" and (target.point in TRANSACTION_POINTS or target.fault == FAIL_COMMIT)
        ),
    ),
    Rule(
        name="no record after the end",
        reason="without checkpoints no part of a job ends before the rest: once a partition ends, all input has been "
        "processed, and no function receives another record",
        forbids=lambda target: (
            target.alignment == "none"
            and target.point == "end-of-partition-sent"
            and target.fault == "raise-in-operator"
        ),
    ),
    Rule(
        name="no savepoint to stop with",
        reason="a stop, with drain or without, takes a savepoint, which at-most-once refuses",
        forbids=lambda target: target.alignment == "none" and target.ending in ("stopped", "drained"),
    ),
)


def rule_against(target: CoverageTarget) -> Rule | None:
    """The first rule that calls a target impossible; None if it can be hit."""
    return next((rule for rule in RULES if rule.forbids(target)), None)


def all_targets(faults: Iterable[str] = tuple(KINDS)) -> Iterator[CoverageTarget]:
    """Every combination, possible or not, in the order of the axes."""
    kinds = [kind for kind in KINDS if kind in set(faults)]
    for alignment in MODES:
        for ending in ENDINGS:
            for point in COVERED:
                for fault in kinds:
                    yield CoverageTarget(alignment=alignment, ending=ending, point=point, fault=fault)


@cache
def possible_targets(capabilities: Capabilities) -> tuple[CoverageTarget, ...]:
    """The targets that no rule forbids and for which a subject has the abilities."""
    capabilities = usable(capabilities)
    return tuple(
        target
        for target in all_targets(capabilities.faults)
        if _is_asked(target, capabilities) and rule_against(target) is None
    )


def _is_asked(target: CoverageTarget, capabilities: Capabilities) -> bool:
    """Whether the subject has the abilities that the target needs; if not, the target is not asked of it."""
    guarantee, alignment = MODES[target.alignment]
    if guarantee not in capabilities.guarantees or not any(is_promised(guarantee, sink) for sink in capabilities.sinks):
        return False
    if guarantee == "exactly-once" and alignment not in capabilities.alignments:
        return False
    if _COMMANDS.get(target.ending, "") not in {"", *capabilities.commands}:
        return False
    if target.point in STATE_POINTS and "lsm" not in capabilities.state_backends:
        return False
    if target.point == FILE_POINT and not capabilities.file_faults:
        return False
    if target.point in DELETION_POINTS and "delete-snapshot" not in capabilities.commands:
        return False
    at_once, commits = target.point == "row-written", target.point in TRANSACTION_POINTS or target.fault == FAIL_COMMIT
    if at_once and commits:  # needs an operator that commits in front of a sink that does not: few engines have one
        return False
    if at_once:
        return bool(capabilities.sinks & {"plain", "idempotent"})
    return not commits or "transactional" in capabilities.sinks


_COMMANDS = {"drained": "stop-with-savepoint", "stopped": "stop-with-savepoint", "cancelled": "cancel"}
"""the command that ends a job in this way"""


def targets_hit(scenario: Scenario, history: History) -> tuple[CoverageTarget, ...]:
    """The target of each fault that fired, each fault counted once; faults without a target are left out."""
    engine = scenario.engine
    alignment = next((name for name, mode in MODES.items() if mode == (engine.guarantee, engine.alignment)), "")
    waiting: dict[int, None] = {}
    """faults that fired in the job that still runs"""
    counted: set[int] = set()
    found: list[CoverageTarget] = []
    for entry in history.journal:
        if isinstance(entry, FaultFired) and entry.fault not in counted:
            counted.add(entry.fault)
            waiting[entry.fault] = None
        elif isinstance(entry, JobEnded):
            for number in waiting:
                target = _target_of(scenario, number, alignment, entry.status)
                if target is not None:
                    found.append(target)
            waiting.clear()
    return tuple(found)


def _target_of(scenario: Scenario, number: int, alignment: str, ending: str) -> CoverageTarget | None:
    """None if a name is on no axis, as when a subject reports something that was not planned."""
    if number >= len(scenario.faults) or alignment not in MODES or ending not in ENDINGS:
        return None
    fault = scenario.faults[number]
    if not isinstance(fault.trigger, AtPoint) or fault.trigger.point not in COVERED:
        return None
    return CoverageTarget(alignment=alignment, ending=ending, point=fault.trigger.point, fault=kind_of(fault))


class CoverageTally:
    """Counts hits of targets over scenarios; adding in any order gives the same."""

    def __init__(self) -> None:
        self._fired = Counter[CoverageTarget]()
        self._outside = 0
        self._snapshots = Counter[SnapshotTarget]()

    def add(self, targets: Iterable[CoverageTarget], fired: int, snapshots: Iterable[SnapshotTarget] = ()) -> None:
        """Add the targets that one scenario hit, and how many of its faults fired in all."""
        targets = tuple(targets)
        self._fired.update(targets)
        self._outside += fired - len(targets)
        self._snapshots.update(snapshots)

    def add_all(self, other: CoverageTally) -> None:
        """Add what another tally has counted."""
        self._fired.update(other._fired)
        self._outside += other._outside
        self._snapshots.update(other._snapshots)

    def coverage(self, capabilities: Capabilities) -> Coverage:
        """The coverage as it stands in the summary."""
        possible = possible_targets(capabilities)
        return Coverage(
            possible=len(possible),
            hit=sum(self._fired[target] > 0 for target in possible),
            fired=self._fired.total(),
            outside=self._outside,
            table=_table(possible, self._fired),
            impossible=_impossible(capabilities),
            snapshots=self._of_snapshots(capabilities),
        )

    def _of_snapshots(self, capabilities: Capabilities) -> SnapshotCoverage:
        possible = possible_snapshot_targets(capabilities)
        return SnapshotCoverage(
            possible=len(possible),
            hit=sum(self._snapshots[target] > 0 for target in possible),
            table=_table(possible, self._snapshots),
            impossible=_impossible_snapshots(capabilities),
        )

    def contradictions(self) -> list[str]:
        """The hits that a rule calls impossible, each in one sentence."""
        sentences: list[str] = []
        for target in sorted(self._fired):
            rule = rule_against(target)
            if rule is not None:
                sentences.append(
                    f"coverage: {in_words(target)} fired, although a rule calls it impossible: {rule.reason}"
                )
        return sentences

    def empty(self, capabilities: Capabilities) -> list[AnyTarget]:
        """The possible targets that were never hit, in the order of the axes."""
        return [target for target in every_target(capabilities) if not self._hits_of(target)]

    def _hits_of(self, target: AnyTarget) -> int:
        return self._snapshots[target] if isinstance(target, SnapshotTarget) else self._fired[target]


def every_target(capabilities: Capabilities) -> tuple[AnyTarget, ...]:
    """Every target of either kind that a subject can hit."""
    return (*possible_targets(capabilities), *possible_snapshot_targets(capabilities))


def not_hit(empty: Sequence[AnyTarget], capabilities: Capabilities, who: str) -> list[str]:
    """The targets that were not hit, of each kind in one sentence; `who` begins it, as in `no night hit`."""
    found: list[str] = []
    for kind, what, all_of in (
        (CoverageTarget, "coverage", possible_targets(capabilities)),
        (SnapshotTarget, "snapshot", possible_snapshot_targets(capabilities)),
    ):
        mine = [target for target in empty if isinstance(target, kind)]
        if mine:
            some = "; ".join(in_words(target) for target in mine[:TARGETS_NAMED])
            found.append(f"{who} {len(mine):,} of {len(all_of):,} possible {what} targets, such as {some}")
    return found


TARGETS_NAMED = 3
"""how many targets that were not hit are named"""


def _row_of(target: AnyTarget) -> str:
    """The row of a table in which a target is counted; its column is the kind of fault."""
    if isinstance(target, SnapshotTarget):
        return f"{target.format} {target.backend} {target.action}"
    return f"{target.alignment} {target.ending} {target.point}"


def in_a_table(hits: Mapping[AnyTarget, int]) -> CountTable:
    """Hits as the record of a night has them: by all but the fault, and by fault."""
    counts = {(_row_of(one), one.fault): count for one, count in hits.items()}
    cells = {one.fault for one in hits}
    return table_of(counts, [cell for cell in FAULT_CELLS if cell in cells])


T = TypeVar("T", CoverageTarget, SnapshotTarget)


def _table(possible: Sequence[T], hits: Counter[T]) -> CountTable:
    """Counts as the summary has them, in the order of the possible targets: one of these that was not hit is a 0."""
    targets = list(possible)
    targets += sorted(hits)
    used = {one.fault for one in targets}
    cells_used = [cell for cell in FAULT_CELLS if cell in used]
    places = {cell: place for place, cell in enumerate(cells_used)}
    rows: dict[str, list[str]] = {}
    for target in targets:
        rows.setdefault(_row_of(target), [""] * len(cells_used))[places[target.fault]] = str(hits[target])
    return CountTable(columns=cells_used, rows={row: ",".join(cells).rstrip(",") for row, cells in rows.items()})


def from_a_table(table: CountTable) -> Iterator[tuple[str, int]]:
    """The hits of such a table, by target in words; what is no target of this version is left out."""
    for row, fault, count in table.counts():
        words = _words_at(row, fault)
        if words:
            yield words, count


@lru_cache(maxsize=100_000)
def _words_at(row: str, fault: str) -> str:
    first, _, rest = row.partition(" ")
    second, _, third = rest.partition(" ")
    if fault in FAULT_CELLS and first in SNAPSHOT_FORMATS and second in STATE_BACKENDS and third in ACTIONS:
        return in_words(SnapshotTarget(format=first, backend=second, action=third, fault=fault))
    if fault in KINDS and first in MODES and second in ENDINGS and third in COVERED:
        return in_words(CoverageTarget(alignment=first, ending=second, point=third, fault=fault))
    return ""


@cache
def targets_by_words() -> dict[str, AnyTarget]:
    """Every target of either kind, possible or not, by its words."""
    return {in_words(target): target for targets in (all_targets(), all_snapshot_targets()) for target in targets}


def in_words(target: AnyTarget) -> str:
    if isinstance(target, SnapshotTarget):
        return snapshot_in_words(target)
    return f"{target.fault} at {target.point} in a job that {_ENDED[target.ending]}, {_ALIGNED[target.alignment]}"


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
    "timeout": "unaligned after a timeout",
    "in-turn": "aligned and unaligned in turn",
    "unblocked": "unblocked",
    "none": "without barriers",
}


@cache
def _counted(faults: frozenset[str]) -> tuple[tuple[Rule, int], ...]:
    blamed = Counter(rule.name for target in _all_of(faults) if (rule := rule_against(target)) is not None)
    return tuple((rule, blamed[rule.name]) for rule in RULES)


def _impossible(capabilities: Capabilities) -> list[Impossible]:
    counted = _counted(capabilities.faults)
    found = [Impossible(rule=rule.name, reason=rule.reason, cells=number) for rule, number in counted if number]
    unasked = len(_all_of(capabilities.faults)) - len(possible_targets(capabilities)) - sum(one.cells for one in found)
    if unasked:
        found.append(Impossible(rule=UNASKED, reason=_WHY_UNASKED, cells=unasked))
    return found


@cache
def _impossible_snapshots(capabilities: Capabilities) -> list[Impossible]:
    able = usable(capabilities)
    blamed = Counter[tuple[str, str]]()
    for target in all_snapshot_targets(able.faults):
        if (rule := snapshot_rule_against(target, able)) is not None:
            blamed[rule.name, rule.reason] += 1
    return [Impossible(rule=name, reason=reason, cells=number) for (name, reason), number in blamed.items()]


UNASKED = "not asked"
_WHY_UNASKED = (
    "they need a guarantee, a command or a sink that the subject does not have, or a sink that both writes and commits"
)


@cache
def _all_of(faults: frozenset[str]) -> tuple[CoverageTarget, ...]:
    return tuple(all_targets(faults))
