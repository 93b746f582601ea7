"""The engine's listing of its snapshots, compared with the store's: who refers to which files, and to how many bytes.

A user deletes by this listing.  So it has each retained snapshot once, with every file that the snapshot needs and no
other, and it counts those bytes as the snapshot's own that would go with it.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from ...model.history import Listed
from ...model.verdict import Violated
from ...model.words import journal_until
from ...quick_checker.case import Case


def wrongly_listed(case: Case) -> Violated | None:
    """A snapshot that is listed otherwise than it is, or that is missing in the listing."""
    residue = case.history.residue
    if isinstance(residue.listing, msgspec.UnsetType):
        return None
    numbers = sorted(one.checkpoint for one in residue.listing)
    if numbers != sorted(residue.retained):
        message = f"the snapshots {numbers} are listed, and {sorted(residue.retained)} are retained"
        return _violated(case, message, None)
    needed = {number: _needed(case, number) for number in numbers}
    holders = Counter(name for names in needed.values() for name in names)
    sizes = residue.sizes if isinstance(residue.sizes, dict) else {}
    for one in residue.listing:
        own = sum(sizes.get(name, 0) for name in needed[one.checkpoint] if holders[name] == 1)
        shared = sum(sizes.get(name, 0) for name in needed[one.checkpoint] if holders[name] > 1)
        if set(one.files) != needed[one.checkpoint]:
            return _violated(case, _differing(one, needed[one.checkpoint]), one.checkpoint)
        if all(name in sizes for name in one.files) and (one.own_bytes, one.shared_bytes) != (own, shared):
            message = (
                f"checkpoint {one.checkpoint} is listed with {one.own_bytes} bytes of its own and {one.shared_bytes}"
                f" that it shares, and has {own} and {shared}"
            )
            return _violated(case, message, one.checkpoint)
    return None


def _needed(case: Case, checkpoint: int) -> set[str]:
    """The files without which a snapshot cannot be restored."""
    completed = case.lineages.completed.get(checkpoint)
    handles = () if completed is None else tuple(completed.handles.values())
    stored = case.lineages.snapshots.handles
    return {*handles, *(name for handle in handles if handle in stored for name, _, _ in stored[handle].files)}


def _differing(one: Listed, needed: set[str]) -> str:
    name = min(needed.symmetric_difference(one.files))
    how = "without its file" if name in needed else "with a file that it does not need,"
    return f"checkpoint {one.checkpoint} is listed {how} {name}"


def _violated(case: Case, message: str, checkpoint: int | None) -> Violated:
    return Violated(
        difference="listed wrongly", message=message, checkpoint=checkpoint, events=journal_until(case.history, None)
    )
