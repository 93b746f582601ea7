"""An incremental checkpoint that was used for recovery: who refers to its files, and when they are deleted (SNAP-3,
SNAP-7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ....faults.plan import AtPoint, AtRest, AtTime, KillTask
from ....properties.model.history import AttemptStarted, Completed, History, SnapshotDeleted
from ....properties.model.workload import Count, Input, Node, Workload
from ...scenario import topologies
from ...scenario.model import Engine, Fork, Savepoint, Scenario
from ..claims import Claim, Comparison, Example, Ran, Variant, numbered, require
from ..texts import PROPOSAL


def files_of(history: History, completed: Completed) -> list[str]:
    """The files to which the parts of a complete snapshot refer, besides the parts themselves."""
    stored = {one.handle: one for one in history.stored}
    parts = (stored[handle] for handle in completed.handles.values() if handle in stored)
    return list(dict.fromkeys(name for part in parts for name, _, _ in part.files))


def referring(history: History) -> dict[str, list[Completed]]:
    """By file, the complete snapshots that refer to it; a file in the order in which it was first referred to."""
    found: dict[str, list[Completed]] = {}
    for completed in sorted(history.completed, key=lambda one: one.order):
        for name in files_of(history, completed):
            found.setdefault(name, []).append(completed)
    return found


def sizes(history: History) -> dict[str, int]:
    return {name: size for one in history.stored for name, size, _ in one.files}


def deleted(history: History) -> dict[str, int]:
    """By file or part that was deleted: the order of that."""
    found: dict[str, int] = {}
    for entry in history.journal:
        if isinstance(entry, SnapshotDeleted):
            for name in entry.handles:
                found.setdefault(name, entry.order)
    return found


def let_go(history: History, completed: Completed) -> int | None:
    """When a snapshot's own parts were deleted: from then on it refers to nothing.  None: it is retained."""
    orders = [order for name, order in deleted(history).items() if name in completed.handles.values()]
    return min(orders, default=None)


def used_for_recovery(history: History) -> Completed:
    """The checkpoint with files that an attempt restored after a failure."""
    restored = [one.restores for one in history.journal if isinstance(one, AttemptStarted) and one.restores]
    found = [one for one in history.completed if one.checkpoint in restored and files_of(history, one)]
    require(bool(found), "no checkpoint with files was used for recovery")
    return found[0]


def numbers(snapshots: list[Completed]) -> str:
    return ", ".join(f"{one.checkpoint}{' (a savepoint)' if one.savepoint else ''}" for one in snapshots)


def _incremental(scenario: Scenario, history: History) -> str:
    used = used_for_recovery(history)
    files = files_of(history, used)
    written = {name for one in history.stored if one.checkpoint == used.checkpoint for name, _, new in one.files if new}
    older = [name for name in files if name not in written]
    require(bool(older) and bool(written), f"checkpoint {used.checkpoint} wrote {len(written)} of {len(files)} files")
    return (
        f"a failure was recovered from checkpoint {used.checkpoint}, which wrote {len(written)} file and refers to "
        f"{len(older)} of earlier checkpoints"
    )


def _referenced(scenario: Scenario, history: History) -> str:
    used = used_for_recovery(history)
    later = {
        name: [one for one in snapshots if one.order > used.order]
        for name, snapshots in referring(history).items()
        if name in files_of(history, used)
    }
    require(any(later.values()), f"no later checkpoint refers to files of checkpoint {used.checkpoint}")
    last = list(later)[-1]
    return f"of its files, {last} is also referred to by checkpoint {numbers(later[last])}; the table lists all files"


def _cleaned_up(scenario: Scenario, history: History) -> str:
    used, gone = used_for_recovery(history), deleted(history)
    own = [name for one in history.stored if one.checkpoint == used.checkpoint for name, _, new in one.files if new]
    left = [name for name in (*used.handles.values(), *own) if name not in gone]
    require(not left, f"never deleted of checkpoint {used.checkpoint}: {', '.join(left)}")
    parts = let_go(history, used) or 0
    require(all(gone[name] > parts for name in own), "its files were deleted before it was let go")
    between = [one for one in history.completed if parts < one.order < max(gone[name] for name in own)]
    require(bool(between), "no checkpoint completed between its parts' deletion and that of its files")
    return (
        f"the engine deleted the parts of checkpoint {used.checkpoint} once a newer one was complete, and its file "
        f"when checkpoint {between[-1].checkpoint} was complete, to which the file was of no use"
    )


def _early(history: History) -> Iterator[str]:
    """The files that were deleted while a complete snapshot referred to them."""
    gone = deleted(history)
    for name, snapshots in referring(history).items():
        until = [let_go(history, one) for one in snapshots]
        if name in gone and any(order is None or order > gone[name] for order in until):
            yield name


def _only_unneeded(scenario: Scenario, history: History) -> str:
    early = list(_early(history))
    require(not early, f"deleted while a snapshot referred to them: {', '.join(early)}")
    shared = [name for name, snapshots in referring(history).items() if len(snapshots) > 1]
    require(bool(shared), "no file was shared")
    retained = [one for one in history.completed if one.checkpoint in history.residue.retained]
    needed = {name for one in retained for name in (*one.handles.values(), *files_of(history, one))}
    require(set(history.residue.files) == needed, "at the end the store has files that no retained snapshot needs")
    return (
        f"{len(shared)} files were shared, none was deleted while a snapshot referred to it, and at the end the store "
        f"has the {len(needed)} files that snapshots {numbers(retained)} need, and no others"
    )


def _users_own(own: Ran, companions: Sequence[Ran]) -> str:
    history = own.history
    taken = [one for one in history.completed if one.savepoint]
    require(bool(taken), "no savepoint completed")
    files = files_of(history, taken[0])
    shared = [name for name in files if len(referring(history)[name]) > 1]
    require(bool(shared), "the savepoint shares no file with a checkpoint")
    gone = [name for name in files if name in deleted(history)]
    require(not gone and taken[0].checkpoint in history.residue.retained, "the savepoint was deleted, or a file of it")
    (forking,) = companions
    forks = forking.history.forks if isinstance(forking.history.forks, list) else []
    begun = [one for one in forks if one.checkpoint == taken[0].checkpoint and one.history.quiet]
    require(bool(begun) and not forking.violated, "no job was begun from the savepoint at the end, or not rightly")
    return (
        f"savepoint {taken[0].checkpoint} refers to {len(shared)} files of checkpoints.  They are kept for it, and a "
        "job that began with it at the end came to its end"
    )


_KEYS = 40
_WORKLOAD = Workload(
    name="retained-incremental",
    inputs=(Input(name="source", splits=(numbered(200, _KEYS),)),),
    nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
)

_RETAINED = Scenario(
    name="retained-incremental",
    workload=_WORKLOAD,
    topology=topologies.lay_out(_WORKLOAD, {"source": 1, "count": 1, "sink": 1}),
    engine=Engine(checkpoint_interval_us=4_000, snapshot_format="incremental", full_every=4),
    commands=(Savepoint(trigger=AtTime(at_us=33_500), format="incremental"),),
    faults=(KillTask(task="count-0", trigger=AtPoint(point="checkpoint-completed", occurrence=3)),),
)
_FORKED = Variant(
    name="at the end a job begins from each retained snapshot",
    scenario=msgspec.structs.replace(_RETAINED, commands=(*_RETAINED.commands, Fork(trigger=AtRest()))),
)

RETAINED_INCREMENTAL = Example(
    about="an incremental checkpoint that was used for recovery: who refers to its files, and when they are deleted",
    document=PROPOSAL,
    scenario=_RETAINED,
    claims=(
        Claim(text="there may be retained incremental checkpoints that … were used for recovery after a failure",
              find=_incremental),
        Claim(text="referenced by subsequent checkpoints", find=_referenced),
        Claim(text="checkpoints were created as a system property and their lifecycle was expected to be totally under "
              "system control", find=_cleaned_up),
        Claim(text="deleting or moving a snapshot must be done by Flink", find=_only_unneeded),
        Comparison(text="they will not be automatically deleted by Flink", companions=(_FORKED,), find=_users_own),
    ),
)  # fmt: skip
