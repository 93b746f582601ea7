"""What a planted defect is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ..core.decisions.part import Part


class Defect(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong variant of some decisions; `replacements` makes fresh ones for each run."""

    id: str
    upstream: str
    """the report of the bug that it is modelled on"""
    title: str
    invariant: str
    """what it must violate"""
    replacements: Callable[[], Mapping[str, Part]]
