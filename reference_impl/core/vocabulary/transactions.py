"""The requests of a sink to the external transaction store, and the answers.

The store is outside the engine: it can be slow, refuse a request, or lose a response.
Requests of one task reach it in the order in which they were sent.
"""

from __future__ import annotations

from enum import Enum
from typing import dataclass_transform

import msgspec

from .errors import require
from .ids import AttemptId, CheckpointId, TaskId

Row = tuple[int | None, int | None, int, int]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="request"):
    """Base of the requests of a writer's attempt.  The store refuses a request of an
    attempt older than the writer's last `Fence`."""

    writer: TaskId
    attempt: AttemptId


class Fence(Request, kw_only=True, tag="fence"):
    """From now on only this attempt of the writer may write; answered with the writer's
    unfinished transactions."""


class BeginTransaction(Request, kw_only=True, tag="begin"):
    name: str


class Write(Request, kw_only=True, tag="write"):
    """Rows into a transaction; answered only when it is refused."""

    name: str
    rows: tuple[Row, ...]


class PreCommit(Request, kw_only=True, tag="pre-commit"):
    """Seal it: nothing can be added, and it survives until committed or aborted."""

    name: str
    checkpoint: CheckpointId | None
    """see `state.Sealed`"""


class Commit(Request, kw_only=True, tag="commit"):
    """Make it visible; committing a committed one again changes nothing.

    With `by_id` the store takes the newest transaction of the same transactional id, whatever its epoch.
    """

    name: str
    by_id: bool = False


class Finalise(Request, kw_only=True, tag="finalise"):
    """Make a sealed transaction final, but not visible yet: a `Publish` that names it will."""

    name: str


class Publish(Request, kw_only=True, tag="publish"):
    """Publish a new version of the table: these final transactions become visible, all or none.
    A transaction that is visible already stays so."""

    checkpoint: CheckpointId
    names: tuple[str, ...]


class AbortTransaction(Request, kw_only=True, tag="abort"):
    """Drop it; aborting an aborted or unknown one changes nothing."""

    name: str


class Append(Request, kw_only=True, tag="append"):
    """A plain sink's row: visible at once."""

    row: Row


class Upsert(Request, kw_only=True, tag="upsert"):
    """An idempotent sink's row: it replaces the row with the same `identity`."""

    identity: tuple[int | None, ...]
    row: Row


class Flush(Request, kw_only=True, tag="flush"):
    """Answered once everything that the writer sent before is in the store."""


EPOCH = "#"
"""In a transaction's name, between its transactional id and the epoch that distinguishes it from others of that id."""


def id_of(name: str) -> str:
    """The transactional id in a name; the whole name where ids are not reused."""
    return name.partition(EPOCH)[0]


def pooled_id_in(name: str) -> str | None:
    """The transactional id in a name, if it is one that is used again."""
    return id_of(name) if EPOCH in name else None


def writer_in(name: str) -> TaskId:
    """The task that began a transaction, read from its name: for those who have only the name, in a snapshot or in a
    journal (see `decisions.snapshots.naming`)."""
    writer = name.partition("/")[2].rpartition("/")[0]
    require(bool(writer), f"the transaction {name!r} names no writer")
    return TaskId(writer)


class NoCheckpoint(Enum):
    """In the place of the checkpoint that a transaction was sealed for."""

    SEALED_FOR_NONE = "sealed for no checkpoint"


Unfinished = tuple[str, CheckpointId | NoCheckpoint | None]
"""A transaction's name, and what it was sealed for; None: it is open."""


def sealed_for(checkpoint: CheckpointId | None) -> CheckpointId | NoCheckpoint:
    """What a `PreCommit` with this checkpoint sealed a transaction for."""
    return checkpoint if checkpoint is not None else NoCheckpoint.SEALED_FOR_NONE


CommitRequest = Commit | Finalise | Publish
"""Requests that follow a completed checkpoint; they are repeated until the answer is definite."""

AnyRequest = Flush | Fence | BeginTransaction | Write | PreCommit | CommitRequest | AbortTransaction | Append | Upsert


def names_of(request: CommitRequest) -> tuple[str, ...]:
    """The transactions that a request is about."""
    return request.names if isinstance(request, Publish) else (request.name,)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of the answers."""


class Done(Outcome, kw_only=True):
    """It was done; `unfinished` answers a `Fence`, in the order in which they were begun."""

    unfinished: tuple[Unfinished, ...] = ()


class Denied(Outcome, kw_only=True):
    """It was not done and never will be: the attempt is fenced, or the transaction does not exist."""

    reason: str
    transaction: str | None = None
    """the one that it is about; None for a refusal of the writer, whatever it asks"""


class NoAnswer(Outcome, kw_only=True):
    """An error or a timeout: it may have been done or not; ask again."""

    reason: str
    at_once: bool = False
    """an error came back; otherwise the asker waits until its time is up"""


class Standing(Enum):
    """How far a transaction is in a store."""

    OPEN = "open"
    SEALED = "sealed"
    FINAL = "final"
    """as `Finalise` leaves it"""
    COMMITTED = "committed"
    ABORTED = "aborted"


UNFINISHED = (Standing.OPEN, Standing.SEALED)
"""A final transaction is not its writer's any more."""
