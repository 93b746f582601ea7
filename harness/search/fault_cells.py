"""The faults as the snapshot targets tell them apart: by kind, and those that strike files by their mode too.

A write that fails, or is torn, strikes a task's snapshot, a file or a record that is deleted, or what a user has
copied; a coordinator that dies amid a copy, or amid a deletion that a user wished, does so before or after a point of
it.  Each of these leaves other files behind, so each is a cell of its own, such as `fail-write:delete-file`,
`kill-coordinator:after-file-copied` or `kill-coordinator:before-snapshot-deleted`.
"""

from __future__ import annotations

from ...faults.plan import KINDS, AnyFault, AtPoint, FailWrite, KillCoordinator, TearWrite, kind_of
from ...faults.points import COPY_POINTS, DELETION_POINTS
from ..scenario.checks import TEARS, WRITE_FAILURES

SIDES = ("before", "after")
DEATHS: dict[str, AtPoint] = {
    f"kill-coordinator:{side}-{point}": AtPoint(point=point, side=side)
    for point in (*COPY_POINTS, *DELETION_POINTS)
    for side in SIDES
}
"""By cell of a coordinator that dies amid a copy or a deletion: where it dies.  It is one of kind `kill-coordinator` as
well."""

_MODES: dict[str, tuple[str, ...]] = {
    "fail-write": tuple(f"fail-write:{what}" for what in WRITE_FAILURES[1:]),
    "tear-write": tuple(f"tear-write:{how}" for how in TEARS[1:]),
    "kill-coordinator": tuple(DEATHS),
}
"""by kind, its cells apart from the kind itself, which stands for the first mode, or for any other death"""

FAULT_CELLS: tuple[str, ...] = tuple(cell for kind in KINDS for cell in (kind, *_MODES.get(kind, ())))
"""in the order of the kinds"""

WRITES_OF_COPIES: frozenset[str] = frozenset({"fail-write:copy-file", "fail-write:copy-record", "tear-write:copy"})
OF_DELETIONS: frozenset[str] = frozenset(cell for cell, at in DEATHS.items() if at.point in DELETION_POINTS)
"""the cells that need a snapshot to be deleted by its user's command, and not because it is subsumed"""
OF_COPIES: frozenset[str] = (WRITES_OF_COPIES | frozenset(DEATHS)) - OF_DELETIONS
"""the cells that need a copy to be made"""
OF_COMMANDS: frozenset[str] = OF_COPIES | OF_DELETIONS
"""the cells that strike what a command does, which fails and is given once more"""
OF_MARKS: frozenset[str] = frozenset(cell for cell, at in DEATHS.items() if at.point == "snapshot-marked")
"""the cells that need a snapshot to be moved which the job would have restored"""
OF_SNAPSHOTS: frozenset[str] = frozenset({"fail-write:delete-file", "fail-write:delete-record", "tear-write:lost-link"})
"""the modes that strike the files of the job's own snapshots"""
OF_FILES: frozenset[str] = WRITES_OF_COPIES | OF_SNAPSHOTS
"""the modes that only a subject with snapshots in files can have"""


def kind_in(cell: str) -> str:
    """The kind of the faults of a cell."""
    return cell.partition(":")[0]


def mode_in(cell: str) -> str:
    """The mode of the faults of a cell; empty for the first one, and for a kind without modes."""
    return cell.partition(":")[2]


def cells_of(fault: AnyFault) -> tuple[str, ...]:
    """The cells in which a planned fault counts; in one `OF_DELETIONS` only if it strikes the deletion of a user."""
    kind = kind_of(fault)
    match fault:
        case FailWrite(what=mode) | TearWrite(how=mode):
            cell = f"{kind}:{mode}"
            return (cell if cell in FAULT_CELLS else kind,)
        case KillCoordinator(trigger=AtPoint(point=point, side=side)) if point in (*COPY_POINTS, *DELETION_POINTS):
            return (kind, f"{kind}:{side}-{point}")
        case _:
            return (kind,)
