"""Mutations of snapshots from which jobs were resumed that claimed them, or did not (see `tampering`)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..invariants.parts.claims import files_of, settled, written_behind
from ..model.history import Completed, History
from ..quick_checker.case import Case
from ..reconstruct.commands import Asked
from .cuts_and_records import Mutation, middle


def _said(case: Case, *, claimed: bool) -> list[tuple[Asked, Completed]]:
    """The resumes that claimed their snapshot, or did not, each with the snapshot; the last one of each snapshot."""
    by_number, claims = case.lineages.completed, case.commands.claims()
    found = [(one, one.answer.checkpoint) for one in case.commands.claiming if one.answer is not None]
    return [
        (one, by_number[number])
        for one, number in found
        if number in by_number and one.issued.claimed is claimed and claims[number] is claimed
    ]


def keep_claimed(case: Case) -> Mutation | None:
    """A snapshot that was claimed and deleted is still retained."""
    keep, last = case.history.retained_checkpoints, settled(case)
    if isinstance(keep, msgspec.UnsetType) or last is None:
        return None
    own = [one for one in case.history.completed if case.is_retained(one) and case.is_owned(one, last)]
    claimed = [entry for one, entry in _said(case, claimed=True) if one.issued.order < last]
    chosen = middle([entry for entry in claimed if not case.is_retained(entry)])
    if chosen is None or len(own) < keep:
        return None
    checkpoint = chosen.checkpoint

    def alter(history: History) -> None:
        history.residue.retained.append(checkpoint)
        history.residue.listing = msgspec.UNSET

    return ("no-leaks",), alter


def delete_unclaimed(case: Case) -> Mutation | None:
    """A snapshot that was not claimed is gone, with its files."""
    there = set(case.history.residue.files)
    kept = [entry for _, entry in _said(case, claimed=False) if case.is_kept(entry)]
    chosen = middle([entry for entry in kept if there.intersection(entry.handles.values())])
    if chosen is None or case.history.snapshots != "files":
        return None
    checkpoint, handles = chosen.checkpoint, set(chosen.handles.values())

    def alter(history: History) -> None:
        residue = history.residue
        residue.retained = [one for one in residue.retained if one != checkpoint]
        residue.files = [name for name in residue.files if name not in handles]

    return ("restored-state",), alter


def refer_to_unclaimed(case: Case) -> Mutation | None:
    """A later snapshot needs a file of one that was not claimed."""
    places = [
        (name, entry.handles[task])
        for one, begun in _said(case, claimed=False)
        for entry in written_behind(case, one)
        for task in entry.handles
        for _, name in files_of(case, begun)
        if task not in entry.finished and entry.handles[task] in case.lineages.snapshots.handles
    ]
    chosen = middle(places)
    if chosen is None or case.history.snapshots != "files":
        return None
    name, handle = chosen

    def alter(history: History) -> None:
        for one in history.stored:
            if one.handle == handle:
                one.files = [*one.files, (name, 1, False)]

    return ("restored-state",), alter


CLAIM_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "retain what was claimed": keep_claimed,
    "delete what was not claimed": delete_unclaimed,
    "refer to what was not claimed": refer_to_unclaimed,
}
"""Mutations that need a history in which a resume says whose its snapshot is."""
