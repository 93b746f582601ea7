"""Snapshots that a user has deleted or copied: which may be, and which were refused.

The snapshot that an attempt would begin with after a failure cannot be deleted; every other one can.  So the command is
refused for the first, and only for the first.  Another snapshot may complete between a command and its answer, and
either answer is then right.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...model.causes import NeededForRecovery, NotCopied
from ...model.history import FaultFired
from ...model.struck import StruckCopy, TornWrite
from ...model.verdict import Violated
from ...model.words import journal_until
from ...quick_checker.case import Case
from ...reconstruct.commands import Asked


def deleted_what_is_restored(case: Case) -> Violated | None:
    """A snapshot that was deleted although an attempt would have begun with it."""
    for one in case.commands.deletions:
        named = one.issued.checkpoint
        if one.issued.kind == "move-snapshot":  # it may be deleted later than the command is answered
            needed = _restored_when_deleted(case, named or 0)
        else:
            needed = one.succeeded and named is not None and set(restored_meanwhile(case, one)) == {named}
        if needed:
            message = f"checkpoint {named} was deleted, and the job would have restored it after a failure"
            return _violated(case, one, "restorable snapshot deleted", message)
    return None


def _restored_when_deleted(case: Case, checkpoint: int) -> bool:
    deleted_at = case.commands.deleted_at(checkpoint)
    job = case.commands.job_at(deleted_at) if deleted_at is not None else None
    if deleted_at is None or job is None:
        return False
    chosen = case.to_restore(deleted_at, job)
    return chosen is not None and chosen.checkpoint == checkpoint


def moved_and_kept(case: Case) -> Violated | None:
    """A snapshot that was moved and is still retained at rest, although the job did not need it when it was moved, or
    has completed another one since that it would restore."""
    for one in case.commands.deletions:
        checkpoint = one.issued.checkpoint
        if one.issued.kind != "move-snapshot" or not one.succeeded or checkpoint not in case.history.residue.retained:
            continue
        if checkpoint not in restored_meanwhile(case, one) or _restorable_since(case, one):
            message = f"the command move-snapshot succeeded, and checkpoint {checkpoint} is still retained"
            return _violated(case, one, "command not obeyed", message)
    return None


def _restorable_since(case: Case, one: Asked) -> bool:
    ignores_savepoints = case.history.savepoints is not msgspec.UNSET
    return one.answer is not None and any(
        entry.order > one.answer.order and not (ignores_savepoints and entry.savepoint)
        for entry in case.history.completed
    )


def wrongly_refused(case: Case) -> Violated | None:
    """A snapshot that was not deleted for the reason that an attempt would begin with it, and none would."""
    for one in case.commands.deletions:
        named = one.issued.checkpoint
        needed = one.refused and one.answer is not None and isinstance(one.answer.cause, NeededForRecovery)
        if needed and named not in restored_meanwhile(case, one):
            message = f"checkpoint {named} was not deleted, although the job would restore another one"
            return _violated(case, one, "command answered wrongly", message)
    return None


def wrongly_uncopied(case: Case) -> Violated | None:
    """A snapshot that was not copied because of a file, although no fault had struck this copy, or had left a file torn
    or missing."""
    for one in case.commands.asked:
        answer = one.answer
        if not one.refused or answer is None or not isinstance(answer.cause, NotCopied):
            continue
        struck = (
            entry
            for entry in case.history.journal
            if isinstance(entry, FaultFired) and entry.order < answer.order and _hinders(entry, one)
        )
        if next(struck, None) is None:
            message = f"checkpoint {one.issued.checkpoint} was not copied because of a file: {answer.error}"
            return _violated(case, one, "command answered wrongly", message)
    return None


def _hinders(fault: FaultFired, one: Asked) -> bool:
    if isinstance(fault.struck, StruckCopy):
        return fault.struck.checkpoint == one.issued.checkpoint
    return isinstance(fault.struck, TornWrite) or fault.kind == "lose-unsynced"


def restored_meanwhile(case: Case, one: Asked) -> Iterator[int | None]:
    """The snapshots with which an attempt would have begun while the command was under way."""
    if one.answer is None or one.job is None:
        return
    begins, ends = one.issued.order, one.answer.order
    deleted_at = case.commands.deleted_at(one.issued.checkpoint or 0)
    if deleted_at is not None and begins < deleted_at < ends:
        ends = deleted_at
    completions = (entry.order + 1 for entry in case.history.completed)
    for order in (begins, *(one for one in completions if begins < one < ends), ends):
        chosen = case.to_restore(order, one.job)
        yield chosen.checkpoint if chosen is not None else None


def _violated(case: Case, one: Asked, difference: str, message: str) -> Violated:
    order = one.answer.order if one.answer is not None else None
    return Violated(
        difference=difference,
        message=message,
        checkpoint=one.issued.checkpoint,
        events=journal_until(case.history, order),
    )
