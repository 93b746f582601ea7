"""Groups of coverage targets that one scenario of the template `cells` can hit together, and their needs."""

from __future__ import annotations

import msgspec

from ....faults.points import STATE_POINTS
from ...scenario.actions import NONE
from ...search.coverage import MODES
from ...search.fault_cells import OF_COMMANDS, OF_SNAPSHOTS, kind_in
from ...search.snapshot_targets import SnapshotTarget

Pair = tuple[str, str]
"""a protocol point, and the fault that it triggers: its kind, or one of `FAULT_CELLS`"""

ENDS = frozenset({"end-of-data-sent", "end-of-partition-sent"})
RECOVERY = frozenset({"task-deployed", "state-loaded", "task-running"})
MESSAGES = frozenset({"lose-message", "late-message", "repeat-message"})
UPSETTING = frozenset(
    {
        "kill-task",
        "kill-node",
        "kill-coordinator",
        "pause-task",
        "cut-channel",
        "tear-write",
        "lose-unsynced",
        "fail-read",
        "raise-in-operator",
    }
)
"""kinds after which the job mostly starts another attempt, or fails if no restart is left"""


class SnapshotUse(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the snapshots of a scenario that aims at snapshot targets."""

    format: str
    """of checkpoints and savepoints"""
    backend: str
    actions: tuple[str, ...]
    """what the user does, in this order; empty for nothing"""


class TargetGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The coverage targets of one scenario, and what the scenario needs to hit them."""

    alignment: str
    """an alignment mode of the coverage"""
    sink: str
    ending: str
    pairs: tuple[Pair, ...]
    needs: frozenset[str]
    use: SnapshotUse | None = None
    """of a group that aims at snapshot targets; then the points of its pairs are no aim"""

    @property
    def guarantee(self) -> str:
        return MODES[self.alignment][0]

    @property
    def apart(self) -> bool:
        """One input ends long before the others."""
        return "apart" in self.needs

    @property
    def kills_coordinator(self) -> bool:
        return any(kind_in(cell) == "kill-coordinator" for _, cell in self.pairs)

    @property
    def whole(self) -> bool:
        """All input ends, and the command that ends the job comes meanwhile.  Without checkpoints no part of the job
        ends earlier."""
        return "whole" in self.needs


def snapshot_targets_of(group: TargetGroup) -> tuple[SnapshotTarget, ...]:
    """The snapshot targets at which a group aims."""
    use = group.use
    if use is None:
        return ()
    return tuple(
        SnapshotTarget(format=use.format, backend=use.backend, action=action, fault=kind)
        for action in use.actions or (NONE,)
        for _, kind in group.pairs
    )


def sink_for(pair: Pair, guarantee: str, sinks: frozenset[str]) -> str:
    """The sink of a target.  A sink that writes rows at once is used only for the point `row-written`, and in
    at-most-once, which allows only the plain sink."""
    at_once = "idempotent" if guarantee == "exactly-once" else "plain"
    wanted = at_once if guarantee == "at-most-once" or pair[0] == "row-written" else "transactional"
    return wanted if wanted in sinks else min(sinks)


def room_in(most: int, ending: str, needs: frozenset[str]) -> int:
    """The number of targets for one scenario: their needs, and a failure that ends the job, use up faults too."""
    return max(1, most - len(needs & COSTING) - (ending == "failed"))


def is_upsetting(pair: Pair) -> bool:
    return kind_in(pair[1]) in UPSETTING


COSTING = frozenset({"abort", "restart before", "restart after"})
"""needs that take a fault of their own"""


def needs_of(pair: Pair, guarantee: str) -> frozenset[str]:
    point, fault = pair
    needs: set[str] = set()
    whole = guarantee == "at-most-once" and point == "end-of-partition-sent"
    if whole:
        needs.add("whole")
    elif point in ENDS:
        needs.add("apart")
    if point in STATE_POINTS:
        needs.add("state in files")
    if point == "checkpoint-aborted":
        needs.add("abort")
    if point == "savepoint-requested":
        needs.add("savepoint")
    if point == "state-loaded" or (point in RECOVERY and fault == "lose-unsynced"):
        needs.add("restart before")
    if fault == "fail-read" or (fault in MESSAGES and guarantee == "at-most-once" and not whole):
        needs.add("restart after")
    if fault == "lose-unsynced":
        needs.add("slow writes")
    if fault in OF_SNAPSHOTS:
        needs.add("files")
    if fault in OF_COMMANDS:
        needs.add("again")
    return frozenset(needs)
