"""Entries of journals that former versions wrote, as this version writes them: saved runs can be judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...core.vocabulary import notes as n


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
    """A note was a word with fields that all notes had."""
    if isinstance(fields[0], int):
        return fields
    what, checkpoint, attempt, job, detail, *rest = fields
    return [job, msgspec.to_builtins(_NOTES[what](checkpoint, attempt, detail, tuple(*rest)))]


_FIELDS: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "CheckpointCompleting": _snapshot,
    "CheckpointCompleted": _snapshot,
    "Noted": _noted,
}
"""by event: its fields today"""

_NOTES: Mapping[str, Callable[[Any, Any, str, tuple[Any, ...]], n.Note]] = {
    "attempt-started": lambda restores, attempt, cause, _: n.AttemptStarted(attempt, restores, cause),
    "tasks-restarted": lambda restores, attempt, _, tasks: n.PartRestarted(attempt, restores, tasks, False),
    "tasks-recovered": lambda restores, attempt, _, tasks: n.PartRestarted(attempt, restores, tasks, True),
    "attempt-running": lambda checkpoint, attempt, detail, tasks: n.AttemptRunning(attempt),
    "checkpoint-triggered": lambda checkpoint, attempt, detail, _: n.CheckpointTriggered(
        checkpoint, attempt, detail == "savepoint"
    ),
    "checkpoint-acknowledged": lambda checkpoint, attempt, *_: n.CheckpointAcknowledged(checkpoint, attempt),
    "checkpoint-aborted": lambda checkpoint, attempt, reason, _: n.CheckpointAborted(checkpoint, attempt, reason),
}
