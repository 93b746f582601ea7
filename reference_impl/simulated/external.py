"""The external transaction store: outside the engine, with a log and a reader of its own.

A sealed transaction survives every failure.  An open one does too, until it is aborted by its writer's next attempt, or
by the coordinator if the job is closed.  This store forgets a sealed transaction without rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from ..core.vocabulary.ids import AttemptId, CheckpointId, TaskId, is_newer
from ..core.vocabulary.transactions import (
    UNFINISHED,
    AbortTransaction,
    AnyRequest,
    Append,
    BeginTransaction,
    Commit,
    Denied,
    Done,
    Fence,
    Finalise,
    Flush,
    Outcome,
    PreCommit,
    Publish,
    Row,
    Standing,
    Unfinished,
    Upsert,
    Write,
    id_of,
    sealed_for,
)


class Account(msgspec.Struct, kw_only=True):
    """One transaction."""

    name: str
    writer: TaskId
    rows: list[Row] = []
    sealed_by: PreCommit | None = None
    """the request that sealed it; None: it has never been sealed"""
    standing: Standing = Standing.OPEN

    @property
    def unfinished(self) -> Unfinished:
        """As a fence lists it."""
        return self.name, sealed_for(self.sealed_by.checkpoint) if self.sealed_by is not None else None


class TransactionStore:
    """Requests in, outcomes out; the visible rows are in `visible`, or in `table` for upserts.

    What the writers in `passing` commit goes into tables of their own; a reader of the job's output does not read
    these.
    """

    def __init__(self, passing: Sequence[TaskId] = ()) -> None:
        self._passing = tuple(passing)
        self.accounts: dict[str, Account] = {}
        self.visible: list[Row] = []
        self.table: dict[tuple[Any, ...], Row] = {}
        self._fences: dict[TaskId, AttemptId] = {}
        self._shown: list[str] = []
        """the transactions whose rows are visible, in the order in which they became so"""
        self._written: list[Append | Upsert] = []

    def handle(self, request: AnyRequest) -> Outcome:
        """Do what is requested, or deny it; to repeat a request that was carried out changes nothing."""
        if request.attempt < self._fences.get(request.writer, 0) and not isinstance(request, Flush):
            return Denied(reason=f"{request.writer} has been fenced by a newer attempt")
        outcome: Outcome = self._on[type(request)](self, request)
        return outcome

    def rows(self) -> list[Row]:
        """What a reader sees now."""
        return list(self.table.values()) if self.table else list(self.visible)

    def up_to(self, checkpoint: CheckpointId, kept: Sequence[bool]) -> TransactionStore:
        """A copy that has no transaction which is open or was sealed for a later checkpoint, and none of their rows.

        `kept` says which of the rows that were written outside of a transaction it has, in their order.
        """
        other = TransactionStore(self._passing)
        for name, account in self.accounts.items():
            if account.sealed_by is not None and not is_newer(account.sealed_by.checkpoint, checkpoint):
                other.accounts[name] = msgspec.structs.replace(account, rows=list(account.rows))
        for name in self._shown:
            if name in other.accounts:
                other.visible.extend(other.accounts[name].rows)
        other._shown = [name for name in self._shown if name in other.accounts]
        for request, is_kept in zip(self._written, kept, strict=True):
            if is_kept:
                other.handle(request)
        return other

    def also_passing(self, writers: Sequence[TaskId]) -> TransactionStore:
        """The store itself, in which these writers are `passing` too: a job that begins with it may have more tasks."""
        self._passing = tuple(dict.fromkeys((*self._passing, *writers)))
        return self

    def expire(self, name: str) -> bool:
        """Abort a sealed transaction, as the store does after its timeout; whether there was one.  A final one does
        not expire."""
        account = self.accounts.get(name)
        if account is None or account.standing is not Standing.SEALED:
            return False
        account.standing = Standing.ABORTED
        return True

    def _fence(self, request: Fence) -> Outcome:
        self._fences[request.writer] = request.attempt
        unfinished = [
            account.unfinished
            for account in self.accounts.values()
            if account.writer == request.writer and account.standing in UNFINISHED
        ]
        return Done(unfinished=tuple(unfinished))

    def _append(self, request: Append) -> Outcome:
        self._written.append(request)
        self.visible.append(request.row)
        return Done()

    def _upsert(self, request: Upsert) -> Outcome:
        self._written.append(request)
        self.table[request.identity] = request.row
        return Done()

    def _begin(self, request: BeginTransaction) -> Outcome:
        if request.name in self.accounts:
            return self._reopen(self.accounts[request.name])
        self.accounts[request.name] = Account(name=request.name, writer=request.writer)
        return Done()

    def _reopen(self, account: Account) -> Outcome:
        """A name is used again.

        The rows that are committed under it stay its only rows: a store that goes by names takes the new rows for the
        old.
        """
        if account.standing is not Standing.COMMITTED:
            account.standing, account.rows, account.sealed_by = Standing.OPEN, [], None
        return Done()

    def _on_transaction(self, request: Write | PreCommit | Commit | Finalise | AbortTransaction) -> Outcome:
        account = self.accounts.get(request.name)
        if isinstance(request, Commit) and request.by_id:
            same = [one for one in self.accounts.values() if id_of(one.name) == id_of(request.name)]
            account = same[-1] if same else None
        if isinstance(request, AbortTransaction):
            if account is not None and account.standing in UNFINISHED:
                account.standing = Standing.ABORTED
            return Done()
        if account is None:
            return Denied(reason=f"it knows no transaction {request.name}", transaction=request.name)
        if account.standing is Standing.COMMITTED:
            return Done()
        if account.standing is Standing.ABORTED:
            return Denied(reason=f"transaction {request.name} has been aborted", transaction=request.name)
        if isinstance(request, Write):
            if account.standing is not Standing.OPEN:
                return Denied(reason=f"transaction {request.name} is sealed", transaction=request.name)
            account.rows.extend(request.rows)
        elif isinstance(request, PreCommit):
            self._seal(account, request)
        elif isinstance(request, Finalise):
            account.standing = Standing.FINAL
        else:
            self._show(account)
        return Done()

    def _publish(self, request: Publish) -> Outcome:
        """Everything that the request names becomes visible in one step, or nothing does."""
        accounts = [self.accounts.get(name) for name in request.names]
        for name, account in zip(request.names, accounts, strict=True):
            if account is None or account.standing not in (Standing.FINAL, Standing.COMMITTED):
                return Denied(reason=f"transaction {name} is not final", transaction=name)
        for account in accounts:
            if account is not None and account.standing is Standing.FINAL:
                self._show(account)
        return Done()

    def _show(self, account: Account) -> None:
        account.standing = Standing.COMMITTED
        if account.writer not in self._passing:
            self._shown.append(account.name)
            self.visible.extend(account.rows)

    def _seal(self, account: Account, request: PreCommit) -> None:
        account.standing, account.sealed_by = Standing.SEALED, request
        if not account.rows:
            del self.accounts[account.name]

    _on: ClassVar[Mapping[type, Callable[[Any, Any], Outcome]]] = {
        Fence: _fence,
        Append: _append,
        Upsert: _upsert,
        BeginTransaction: _begin,
        Publish: _publish,
        Flush: lambda self, flush: Done(),
        **dict.fromkeys((Write, PreCommit, Commit, Finalise, AbortTransaction), _on_transaction),
    }
