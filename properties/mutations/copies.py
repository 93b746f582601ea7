"""Mutations of the copies that a user has of snapshots (see `tampering`)."""

from __future__ import annotations

from collections.abc import Callable

from ..model.history import COPYING, History
from ..quick_checker.case import Case
from .cuts_and_records import Mutation, middle


def drop_copied_file(case: Case) -> Mutation | None:
    """A copy lacks one of its files."""
    residue = case.history.residue
    copies = residue.copies if isinstance(residue.copies, list) else []
    handles = [one.handles for one in case.history.completed if one.checkpoint in copies]
    name = middle([handle for each in handles for handle in each.values()])
    if name is None or "restored-state" not in case.promised:
        return None

    def alter(history: History) -> None:
        assert isinstance(history.residue.copied, list)
        history.residue.copied.remove(name)

    return ("restored-state",), alter


def leave_copied_file(case: Case) -> Mutation | None:
    """A file is left in the directory of a user, and belongs to no copy."""
    if not isinstance(case.history.residue.copied, list):
        return None

    def alter(history: History) -> None:
        assert isinstance(history.residue.copied, list)
        history.residue.copied.append("left")

    return ("no-leaks",), alter


def drop_copy(case: Case) -> Mutation | None:
    """A copy that was promised is not there."""
    residue = case.history.residue
    asked = [one.issued for one in case.commands.asked if one.succeeded and one.issued.kind in COPYING]
    if not asked or not isinstance(residue.copies, list):
        return None

    def alter(history: History) -> None:
        history.residue.copies, history.residue.copied = [], []

    return ("progress",), alter


COPY_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "drop a file of a copy": drop_copied_file,
    "leave a file beside the copies": leave_copied_file,
    "drop the copies": drop_copy,
}
"""Mutations that need a history in which a user had snapshots copied."""
