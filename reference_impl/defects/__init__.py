"""Deliberately wrong variants of single decisions, each modelled on a real bug.

A defect replaces parts of the engine (`core.decisions.parts.Parts`) by variants with a
method or two overridden, and names the invariant that it must violate.  The core
knows nothing of them.  The ids are those of docs/defects.md, which describes
the bug, its upstream report and what the variant does.
"""

from __future__ import annotations

from ..core.decisions.parts import Parts
from . import (
    alignment,
    coordination,
    enumeration,
    event_time,
    finishing,
    in_flight,
    local,
    recovery,
    regions,
    sinks,
    sources,
    spilling,
    state,
)
from .registry import Defect
from .snapshots import (
    claims,
    copies,
    deletions,
    forks,
    incremental,
    rescaling,
    state_files,
    storing,
    upgrades,
)

GROUPS = (
    alignment,
    coordination,
    deletions,
    claims,
    forks,
    copies,
    upgrades,
    recovery,
    state,
    state_files,
    storing,
    sinks,
    sources,
    enumeration,
    finishing,
    event_time,
    regions,
    rescaling,
    in_flight,
    local,
    spilling,
    incremental,
)

DEFECTS: dict[str, Defect] = {defect.id: defect for group in GROUPS for defect in group.DEFECTS}
"""Every planted defect by its id."""


def parts_for(defect: str | None) -> Parts:
    """The decisions of a run: the correct ones, or with one defect planted.

    Raises KeyError for a defect that does not exist.
    """
    return Parts(**DEFECTS[defect].replacements()) if defect else Parts()


__all__ = ["DEFECTS", "Defect", "parts_for"]
