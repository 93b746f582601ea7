"""Which snapshot of a directory a recovery of its last job would choose: the engine's own choice, asked of it.

It need not be the newest.  A job that its user began from an older snapshot never goes back to a newer one of a former
job, and two kinds of savepoints are never restored (SNAP-6).  The run beside the snapshots tells of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....properties.reconstruct.commands import Commands
from ....reference_impl.core.decisions.checkpointing import RestoreChoice
from ....reference_impl.core.vocabulary.ids import CheckpointId
from ...runtime.exit_codes import UsageError
from .beginning import run_before
from .directory import JOBS, Directory

_JOB = re.compile(r"job-([1-9][0-9]{0,8})")
_BEGUN = tuple[CheckpointId | None, bool]
"""from which snapshot the user began the last job, if he named one, and whether savepoints are restored"""


def choices(directory: Directory) -> tuple[int, ...]:
    """The snapshots among which a recovery would choose, oldest first: one or none, none of copies.  Several if
    their kind or age matters, and no run in the directory says how its last job began."""
    if directory.unreadable or directory.has_copies:
        return ()
    job = _last_job(directory)
    former = [one.checkpoint for one in directory.records.values() if one.job != job]
    ways: list[_BEGUN] = [(named, restored) for named in (None, CheckpointId(0), *former) for restored in (True, False)]
    found = _chosen(directory, job, ways)
    return found if len(found) <= 1 else _chosen(directory, job, list(_begun(directory, job)) or ways)


def demand_unneeded(directory: Directory, number: int, instead: str = "") -> None:
    """Raise UsageError for a snapshot with which a job would begin: the next one, or the last one after a failure.  If
    neither can be restored, also for the newest that can.  Copies are their user's: each may go."""
    if directory.has_copies:
        return
    chosen, newest = choices(directory), directory.newest
    if number in chosen:
        what = f"the newest of {directory.root}" if number == newest else f"the one of {directory.root}"
        unknown = "" if len(chosen) == 1 else " (no run there says how its last job began)"
        why = f"{what} which a recovery {'would' if len(chosen) == 1 else 'may'} choose{unknown}"
    elif number == newest:
        why = f"the newest of {directory.root}, with which a new job begins"
    elif newest is not None and (damage := _damage(directory, number, {*chosen, newest})):
        why = f"the newest of {directory.root} that can be restored, as {damage}"
    else:
        return
    raise UsageError(f"snapshot {number} is {why}: it stays{instead}")


def _damage(directory: Directory, number: int, needed: set[int]) -> str:
    """What is wrong with the snapshots with which a job would begin, if this is the newest other that can be restored;
    otherwise empty."""
    newest_first = [*sorted(needed, reverse=True), *sorted(directory.records.keys() - needed, reverse=True)]
    damage = ""
    for one in newest_first:
        problem = directory.problem(directory.records[one])
        if not problem:
            return damage if one == number else ""
        damage = damage or f"{one} is damaged ({problem})"
    return ""


def _chosen(directory: Directory, job: int, ways: list[_BEGUN]) -> tuple[int, ...]:
    engine, records = RestoreChoice(), tuple(directory.records.values())
    chosen = [engine.choose(engine.recoverable(records, job, named, restored)) for named, restored in ways]
    return tuple(sorted({int(one.checkpoint) for one in chosen if one is not None}))


def _begun(directory: Directory, job: int) -> Iterator[_BEGUN]:
    """How the last job began, if a run that can be read has it."""
    try:
        before = run_before(directory.root)
    except UsageError:
        return
    if before is None or all(getattr(entry, "job", None) != job for entry in before[1].journal):
        return
    resume = Commands(before[1]).resume_of(job)
    named = resume.issued.checkpoint if resume is not None else None
    yield None if named is None else CheckpointId(named), before[0].engine.savepoints == "snapshots"


def _last_job(directory: Directory) -> int:
    """The number of the last job that used the directory."""
    folder = directory.root / JOBS
    saved = (_JOB.fullmatch(path.name) for path in folder.iterdir()) if folder.is_dir() else ()
    return max([one.job for one in directory.records.values()] + [int(match[1]) for match in saved if match], default=0)
