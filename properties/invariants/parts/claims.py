"""Snapshots from which jobs were resumed: whose they are, and what follows from that.

A resume may say whose its snapshot is from then on.  A job that claims it owns it like a checkpoint of its own: it
deletes the snapshot once enough newer ones are complete, and may build on its files.  A job that does not claim it
never deletes it, and writes all its own files: its user may do with the snapshot what he likes.  The last state of a
task that had finished is the exception.  Nobody writes it again, so later records refer to the file that there is.
Without a word a checkpoint is the engine's and a savepoint its user's.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...model.history import Completed, CoordinatorDown, CoordinatorUp
from ...model.verdict import Violated
from ...model.words import journal_until
from ...quick_checker.case import Case
from ...reconstruct.commands import Asked
from ...reconstruct.lineage import INFINITE


def files_of(case: Case, entry: Completed) -> Iterator[tuple[str, str]]:
    """(task, name) of each file without which a complete snapshot cannot be restored."""
    stored = case.lineages.snapshots.handles
    for task, handle in entry.handles.items():
        yield task, handle
        if handle in stored:
            yield from ((task, name) for name, _, _ in stored[handle].files)


def written_behind(case: Case, one: Asked) -> list[Completed]:
    """The snapshots that completed between a resume and the next one."""
    resumes = [other.issued.order for other in case.commands.asked if other.issued.kind == "resume"]
    until = min((order for order in resumes if order > one.issued.order), default=INFINITE)
    return [entry for entry in case.history.completed if one.issued.order < entry.order < until]


def refers_to_unclaimed(case: Case) -> Violated | None:
    """A snapshot that needs a file of the one from which its job was resumed without claiming it."""
    for one in case.commands.claiming:
        named = one.answer.checkpoint if one.answer is not None else None
        begun = case.lineages.completed.get(-1 if named is None else named)
        if one.issued.claimed or begun is None:
            continue
        not_its_own = {name for _, name in files_of(case, begun)}
        for entry in written_behind(case, one):
            for task, name in files_of(case, entry):
                if name in not_its_own and task not in entry.finished:
                    message = (
                        f"checkpoint {entry.checkpoint} needs the file {name} of checkpoint {begun.checkpoint}, "
                        "from which the job was resumed without claiming it"
                    )
                    return _violated(case, entry.checkpoint, "file of an unclaimed snapshot", message, (task,))
    return None


def not_subsumed(case: Case) -> Violated | None:
    """A snapshot of the engine's own that is still retained, although as many newer ones are as the engine keeps.

    Snapshots are deleted when another one completes.  A coordinator that dies then leaves them to the next completion.
    """
    keep, last = case.history.retained_checkpoints, settled(case)
    if isinstance(keep, msgspec.UnsetType) or last is None:
        return None
    own = [one.checkpoint for one in case.history.completed if case.is_retained(one) and case.is_owned(one, last)]
    own.sort()
    if len(own) <= keep:
        return None
    what = "was claimed and is" if own[0] in case.commands.claims(last) else "is"
    message = f"checkpoint {own[0]} {what} still retained, although {own[1:]} are newer, and the job keeps {keep}"
    return _violated(case, own[0], "snapshot left", message)


def settled(case: Case) -> int | None:
    """When the last snapshot completed; None if there is none, or if another coordinator came up or died since."""
    last = max((entry.order for entry in case.history.completed), default=None)
    coordinators = (one.order for one in case.history.journal if isinstance(one, CoordinatorUp | CoordinatorDown))
    return last if last is not None and max(coordinators, default=0) < last else None


def _violated(case: Case, checkpoint: int, difference: str, message: str, tasks: tuple[str, ...] = ()) -> Violated:
    return Violated(
        difference=difference,
        message=message,
        checkpoint=checkpoint,
        tasks=tasks,
        events=journal_until(case.history, None),
    )
