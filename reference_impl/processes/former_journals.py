"""Entries of journals that former versions wrote, as this version writes them: saved runs can be judged again."""

from __future__ import annotations

from typing import Any

SNAPSHOTS = ("CheckpointCompleting", "CheckpointCompleted")


def as_today(entry: list[Any]) -> tuple[int, list[Any]]:
    """An entry's stamp and its event, which has its type in front of its fields."""
    if isinstance(entry[0], str):  # [type, stamp, fields ...] instead of [stamp, [type, fields ...]]
        kind, stamp, *fields = entry
    else:
        stamp, (kind, *fields) = entry
    if kind in SNAPSHOTS:
        snapshot = fields[0]
        fields = [{**snapshot, "ending": snapshot["ending"] or None}]  # it was "" if the job went on
    return stamp, [kind, *fields]
