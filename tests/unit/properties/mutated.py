"""Mutations of a history: each takes a correct one and returns it with one thing wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable

import msgspec

from cutproof.properties.model.history import Completed, History, Stored, StoredState, TaskRun, Transaction

Mutation = Callable[[History], None]


def mutated(history: History, mutation: Mutation) -> History:
    """A copy of a history with a mutation applied."""
    false = copy.deepcopy(history)
    mutation(false)
    return false


def with_rows(history: History, status: str = "committed") -> Transaction:
    return next(one for one in history.transactions if one.rows and one.status == status)


def completed(history: History, index: int = -1) -> Completed:
    return history.completed[index]


def runs_of(history: History, operator: str) -> list[TaskRun]:
    return [one for one in history.runs if one.operator == operator]


def stored(history: History, entry: Completed, task: str) -> Stored:
    return next(one for one in history.stored if one.handle == entry.handles[task])


def edit(history: History, entry: Completed, task: str, change: Callable[[StoredState], None]) -> None:
    """Change one task's snapshot in a completed checkpoint."""
    one = stored(history, entry, task)
    state = msgspec.json.decode(one.state, type=StoredState)
    change(state)
    one.state = msgspec.json.encode(state).decode()
