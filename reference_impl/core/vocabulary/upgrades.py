"""What a user changes in a job on resuming it, and what becomes of the states in its snapshot (SNAP-5)."""

from __future__ import annotations

import msgspec

WHOLE, HUNDREDTHS = "whole", "hundredths"
"""The types of the state of a sum: the sum itself, or in hundredths."""

TOTAL = "total"
"""The name by which a sum declares its state."""

CONVERSIONS: dict[tuple[str, str], str] = {(WHOLE, HUNDREDTHS): "whole-to-hundredths"}
"""By the type in a snapshot and that of the operator: what takes the one to the other.  Nothing takes it back, since a
state could have hundredths that are no whole number."""


class StateMapping(msgspec.Struct, frozen=True, kw_only=True):
    """Which operator of the new job takes which state of the old one, where the uids alone do not say it."""

    moves: dict[str, str] = {}
    """by uid in the snapshot: the uid of the operator that takes the state"""
    converts: dict[str, str] = {}
    """by uid in the snapshot: the conversion of the state to the type that the operator keeps (`CONVERSIONS`)"""
    begin_empty: tuple[str, ...] = ()
    """uids of operators of which the snapshot has no state"""
    allow_non_restored_state: bool = False
    """states of operators that the job does not have may be dropped"""


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """The operators that the job has from now on, and the mapping of their states."""

    renamed: dict[str, str] = {}
    """by operator: its new uid"""
    retyped: dict[str, str] = {}
    """by operator: the type of the state that it keeps"""
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    mapping: StateMapping = StateMapping()
