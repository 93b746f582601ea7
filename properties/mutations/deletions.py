"""Mutations of snapshots that a user has deleted (see `tampering`)."""

from __future__ import annotations

from collections.abc import Callable

from ..invariants.parts.deletions import restored_meanwhile
from ..model.causes import NeededForRecovery
from ..model.history import CommandIssued, CommandReturned, History, Listed
from ..quick_checker.case import Case
from ..reconstruct.commands import Asked
from .cuts_and_records import Alteration, Mutation, middle


def _gone(case: Case) -> list[Asked]:
    """The commands that had a snapshot deleted which is no longer there."""
    retained = case.history.residue.retained
    return [one for one in case.commands.deletions if one.succeeded and one.issued.checkpoint not in retained]


def drop_deletion(case: Case) -> Mutation | None:
    """The files of a savepoint are gone, and no user had it deleted."""
    there, by_number = set(case.history.residue.files), case.lineages.completed
    gone = [by_number[one.issued.checkpoint] for one in _gone(case) if one.issued.checkpoint in by_number]
    chosen = middle([one for one in gone if one.savepoint and any(name not in there for name in one.handles.values())])
    if chosen is None or case.history.snapshots != "files":
        return None
    wished = {one.issued.command for one in case.commands.deletions if one.issued.checkpoint == chosen.checkpoint}

    def alter(history: History) -> None:
        history.journal = [
            entry
            for entry in history.journal
            if not (isinstance(entry, CommandIssued | CommandReturned) and entry.command in wished)
        ]

    return ("restored-state",), alter


def retain_deleted(case: Case) -> Mutation | None:
    """A snapshot that was deleted is still retained."""
    chosen = middle(_gone(case))
    if chosen is None or chosen.issued.checkpoint is None:
        return None
    checkpoint = chosen.issued.checkpoint

    def alter(history: History) -> None:
        history.residue.retained.append(checkpoint)

    return ("progress",), alter


def delete_restored(case: Case) -> Mutation | None:
    """The snapshot was deleted that the job would have restored."""
    refused = [one for one in case.commands.deletions if one.refused and _would_restore(case, one) == {True}]
    chosen = middle(refused)
    return None if chosen is None else (("restored-state",), _answered(chosen, None))


def refuse_deletable(case: Case) -> Mutation | None:
    """A snapshot was not deleted, although the job would have restored another one."""
    chosen = middle([one for one in case.commands.deletions if one.succeeded and True not in _would_restore(case, one)])
    if chosen is None or chosen.issued.checkpoint is None:
        return None
    return ("progress",), _answered(chosen, NeededForRecovery(checkpoint=chosen.issued.checkpoint))


def _would_restore(case: Case, one: Asked) -> set[bool]:
    """Whether the job would have restored the snapshot while the command was under way."""
    return {chosen == one.issued.checkpoint for chosen in restored_meanwhile(case, one)}


def _answered(one: Asked, cause: NeededForRecovery | None) -> Alteration:
    def alter(history: History) -> None:
        for entry in history.journal:
            if isinstance(entry, CommandReturned) and entry.command == one.issued.command:
                entry.cause, entry.error = cause, "needed" if cause is not None else ""
                entry.checkpoint = one.issued.checkpoint if cause is None else None

    return alter


def list_too_few(case: Case) -> Mutation | None:
    """A snapshot is listed without one of its files."""

    def change(one: Listed) -> None:
        one.files = one.files[1:]

    return _listed_otherwise(case, change)


def list_as_own(case: Case) -> Mutation | None:
    """Bytes that a snapshot shares are listed as its own."""

    def change(one: Listed) -> None:
        one.own_bytes, one.shared_bytes = one.own_bytes + one.shared_bytes + 1, 0

    return _listed_otherwise(case, change)


def _listed_otherwise(case: Case, change: Callable[[Listed], None]) -> Mutation | None:
    """One snapshot that has files is listed as `change` leaves it."""
    chosen = middle([one for one in _listing(case.history) if one.files])
    if chosen is None:
        return None

    def alter(history: History) -> None:
        for one in _listing(history):
            if one.checkpoint == chosen.checkpoint:
                change(one)

    return ("no-leaks",), alter


def _listing(history: History) -> list[Listed]:
    """The engine's own; empty without one."""
    return history.residue.listing if isinstance(history.residue.listing, list) else []


LISTING_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "list a snapshot without a file": list_too_few,
    "list shared bytes as a snapshot's own": list_as_own,
}
"""Mutations that need a history with the engine's listing of its snapshots."""

DELETION_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "forget who had a savepoint deleted": drop_deletion,
    "retain what was deleted": retain_deleted,
    "delete what would be restored": delete_restored,
    "refuse to delete what can be": refuse_deletable,
}
"""Mutations that need a history in which a user had snapshots deleted."""
