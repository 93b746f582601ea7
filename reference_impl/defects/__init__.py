"""Deliberately wrong variants of single decisions, each modelled on a real bug."""

from __future__ import annotations

from ..core.parts import Parts

DEFECTS: dict[str, object] = {}


def parts_for(defect: str | None) -> Parts:
    """The decisions of a run: the correct ones, or with one defect planted."""
    return Parts()
