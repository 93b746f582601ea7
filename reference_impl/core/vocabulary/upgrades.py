"""What a user changes in a job on resuming it, and what becomes of the states in its snapshot (SNAP-5)."""

from __future__ import annotations

import msgspec


class StateMapping(msgspec.Struct, frozen=True, kw_only=True):
    """Which operator of the new job takes which state of the old one, where the uids alone do not say it."""

    moves: dict[str, str] = {}
    """by uid in the snapshot: the uid of the operator that takes the state"""


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """The operators that the job has from now on, and the mapping of their states."""

    renamed: dict[str, str] = {}
    """by operator: its new uid"""
    mapping: StateMapping = StateMapping()
