"""Entries of journals that former versions wrote, as this version writes them: saved runs can be judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...core.vocabulary import causes
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
    """A change was a word with fields that all changes had, and later a type of its own, with its cause in words."""
    if isinstance(fields[0], int):
        job, (kind, *rest) = fields
        return [job, [kind, *(_with_cause(rest) if kind in _WITH_CAUSE else rest)]]
    what, checkpoint, attempt, job, detail, *rest = fields
    return [job, msgspec.to_builtins(_STATUS_CHANGES[what](checkpoint, attempt, detail, tuple(*rest)))]


def _with_cause(fields: list[Any]) -> list[Any]:
    """The fields of a change whose cause, the third of them, may be a sentence."""
    attempt, checkpoint, cause, *rest = fields
    former = msgspec.to_builtins(causes.FormerSentence(cause)) if isinstance(cause, str) else cause
    return [attempt, checkpoint, former, *rest]


def _caused(fields: list[Any]) -> list[Any]:
    """Why a task declined a checkpoint was a text, beside whether nothing had failed."""
    return [_cause(field) for field in fields]


def _cause(value: Any) -> Any:
    """A cause, or whatever else stands in a field; a cause may hold another one."""
    if not isinstance(value, dict):
        return value
    if value.get("type") != causes.Declined.__name__ or "subsumed" not in value:
        return {name: _cause(field) for name, field in value.items()}
    detail = value["detail"]
    declining = causes.OtherBarrierFirst() if value["subsumed"] else causes.SnapshotNotWritten(detail)
    return msgspec.to_builtins(causes.Declined(value["task"], declining))


def _none_for_empty(*places: int) -> Callable[[list[Any]], list[Any]]:
    """These fields were "" where they said nothing."""

    def convert(fields: list[Any]) -> list[Any]:
        return [None if place in places and field == "" else field for place, field in enumerate(fields)]

    return convert


def _both(
    first: Callable[[list[Any]], list[Any]], then: Callable[[list[Any]], list[Any]]
) -> Callable[[list[Any]], list[Any]]:
    return lambda fields: then(first(fields))


_FIELDS: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "CheckpointCompleting": _snapshot,
    "CheckpointCompleted": _snapshot,
    "Noted": _noted,
    "TaskFailed": _caused,
    "CommandReturned": _both(_caused, _none_for_empty(2)),
    "JobEnded": _both(_caused, _none_for_empty(3)),
    "CoordinatorChanged": _none_for_empty(2),
    "CommandIssued": _none_for_empty(6),
    "Transacted": _none_for_empty(2),
    "Timed": _none_for_empty(3, 4, 5),
}
"""by event: its fields today"""

_STATUS_CHANGES: Mapping[str, Callable[[Any, Any, str, tuple[Any, ...]], changes.StatusChange]] = {
    "attempt-started": lambda restores, attempt, cause, _: changes.AttemptStarted(
        attempt, restores, causes.FormerSentence(cause)
    ),
    "tasks-restarted": lambda restores, attempt, _, tasks: changes.RegionRestarted(attempt, restores, tasks, False),
    "tasks-recovered": lambda restores, attempt, _, tasks: changes.RegionRestarted(attempt, restores, tasks, True),
    "attempt-running": lambda checkpoint, attempt, detail, tasks: changes.AttemptRunning(attempt),
    "checkpoint-triggered": lambda checkpoint, attempt, detail, _: changes.CheckpointTriggered(
        checkpoint, attempt, detail == "savepoint"
    ),
    "checkpoint-acknowledged": lambda checkpoint, attempt, *_: changes.CheckpointAcknowledged(checkpoint, attempt),
    "checkpoint-aborted": lambda checkpoint, attempt, reason, _: changes.CheckpointAborted(
        checkpoint, attempt, causes.FormerSentence(reason)
    ),
}

_WITH_CAUSE = (changes.AttemptStarted.__name__, changes.CheckpointAborted.__name__)
