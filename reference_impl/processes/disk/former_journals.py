"""Entries of journals that former versions wrote, as this version writes them: saved runs can be judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...core.vocabulary import status_changes as changes


def as_today(entry: list[Any]) -> tuple[int, list[Any]]:
    """An entry's stamp and its event, which has its type in front of its fields."""
    if isinstance(entry[0], str):  # [type, stamp, fields ...] instead of [stamp, [type, fields ...]]
        kind, stamp, *fields = entry
    else:
        stamp, (kind, *fields) = entry
    return stamp, [kind, *_FIELDS.get(kind, _same)(fields)]


def _same(fields: list[Any]) -> list[Any]:
    return fields


def _snapshot(fields: list[Any]) -> list[Any]:
    """The ending was a text, and "" if the job went on."""
    (snapshot,) = fields
    return [{**snapshot, "ending": snapshot["ending"] or None}]


def _noted(fields: list[Any]) -> list[Any]:
    """A change was a word with fields that all changes had."""
    if isinstance(fields[0], int):
        return fields
    what, checkpoint, attempt, job, detail, *rest = fields
    return [job, msgspec.to_builtins(_STATUS_CHANGES[what](checkpoint, attempt, detail, tuple(*rest)))]


_FIELDS: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "CheckpointCompleting": _snapshot,
    "CheckpointCompleted": _snapshot,
    "Noted": _noted,
}
"""by event: its fields today"""

_STATUS_CHANGES: Mapping[str, Callable[[Any, Any, str, tuple[Any, ...]], changes.StatusChange]] = {
    "attempt-started": lambda restores, attempt, cause, _: changes.AttemptStarted(attempt, restores, cause),
    "tasks-restarted": lambda restores, attempt, _, tasks: changes.RegionRestarted(attempt, restores, tasks, False),
    "tasks-recovered": lambda restores, attempt, _, tasks: changes.RegionRestarted(attempt, restores, tasks, True),
    "attempt-running": lambda checkpoint, attempt, detail, tasks: changes.AttemptRunning(attempt),
    "checkpoint-triggered": lambda checkpoint, attempt, detail, _: changes.CheckpointTriggered(
        checkpoint, attempt, detail == "savepoint"
    ),
    "checkpoint-acknowledged": lambda checkpoint, attempt, *_: changes.CheckpointAcknowledged(checkpoint, attempt),
    "checkpoint-aborted": lambda checkpoint, attempt, reason, _: changes.CheckpointAborted(checkpoint, attempt, reason),
}
