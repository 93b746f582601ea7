"""The external transaction store as one file of SQLite, which every writer opens (see `sqlite_reader` for its tables).

`SqliteStore.handle` means what `TransactionStore.handle` means in the simulator.  Each request is one transaction of
SQLite, which begins with the store's only write lock.  A transaction of a sink is rows with a status: it outlives the
process that opened it, so a fence reports open transactions too.  Rows are signed 64-bit integers.

Why no zombie escapes a fence.  A request reads its writer's fence and does its work under the same write lock, all or
nothing.  So it was done before the fence, which then sees what it did; or it comes after the fence, sees it and does
nothing.

A process may be stopped while it has the lock.  The others then wait for WAIT_S, once.  Until the lock is free
they keep what nobody sends again, which goes in with a later request, and give no answer to anything else.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import msgspec

from ...core.vocabulary.ids import AttemptId, TaskId
from ...core.vocabulary.transactions import (
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
    NoAnswer,
    Outcome,
    PreCommit,
    Publish,
    Standing,
    Upsert,
    Write,
    id_of,
    sealed_for,
)
from .sqlite_reader import SqliteReader, connect, create, file_of

__all__ = ["SqliteReader", "SqliteStore", "create"]

WAIT_S = 0.2
"""How long a request waits for the lock: less than what makes a process late (`loop.LATE_US`)."""
SHORT_WAIT_S = 0.002
"""The same after a request that has waited in vain."""
POLL_S = 0.0005
LONGEST_QUEUE = 100_000
"""Requests of a writer that may wait for the lock."""
REFUSED = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)
"""Errors that come again however often one asks."""
QUEUED = BeginTransaction | Write | Append | Upsert
"""Requests that nobody sends again."""


class Account(NamedTuple):
    """A transaction in the store.  One that was aborted is not there any more."""

    serial: int
    standing: Standing
    opener: str


class Shut(Exception):
    """The writer's attempt has been fenced."""


class WriterSession:
    """One attempt of one writer, in one process."""

    def __init__(self, writer: TaskId, attempt: AttemptId, passes_on: bool = False) -> None:
        """`passes_on`: what it commits is not part of the job's output."""
        self.writer, self.attempt = writer, attempt
        self.queue: deque[AnyRequest] = deque()
        """Requests that are not done yet."""
        self._passes_on = passes_on
        self._token = secrets.token_hex(8)
        """Marks the transactions that it opened: nobody else writes to them, or knows that their rows are all there."""

    def ask(self, store: sqlite3.Connection, request: AnyRequest) -> Outcome:
        """Do what waits, then this.  Raises `Shut`."""
        self._check(store)
        for waiting in self.queue:
            outcome = ACTIONS[type(waiting)](self, store, waiting)
            if isinstance(outcome, Denied):
                return outcome
        return ACTIONS[type(request)](self, store, request)

    def _check(self, store: sqlite3.Connection) -> None:
        (newer,) = store.execute(
            "SELECT EXISTS (SELECT 1 FROM fences WHERE writer = ? AND attempt > ?)", (self.writer, self.attempt)
        ).fetchone()
        if newer:
            raise Shut

    # -- transactions ----------------------------------------------------------------

    @staticmethod
    def _find(store: sqlite3.Connection, name: str) -> Account | None:
        found = store.execute("SELECT serial, status, opener FROM transactions WHERE name = ?", (name,)).fetchone()
        return Account(found[0], Standing(found[1]), found[2]) if found is not None else None

    def _find_usable(self, store: sqlite3.Connection, name: str) -> Account | None:
        """The same, but for an open transaction of another process, which nobody can seal any more."""
        account = self._find(store, name)
        is_lost = account is not None and account.standing is Standing.OPEN and account.opener != self._token
        return None if is_lost else account

    def begin(self, store: sqlite3.Connection, request: BeginTransaction) -> Outcome:
        """A name that was used before starts again, unless it is committed: then it stays what it is."""
        self._drop_unfinished(store, request.name)
        store.execute(
            "INSERT INTO transactions (name, writer, opener, aside) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
            (request.name, self.writer, self._token, self._passes_on),
        )
        return Done()

    def write(self, store: sqlite3.Connection, request: Write) -> Outcome:
        account = self._find_usable(store, request.name)
        if account is None:
            return unknown(request.name)
        if account.standing is Standing.SEALED:
            return Denied(reason=f"transaction {request.name} is sealed", transaction=request.name)
        if account.standing is Standing.OPEN:
            store.executemany(
                "INSERT INTO output (txn, key, value, tag, tag2) VALUES (?, ?, ?, ?, ?)",
                [(account.serial, *row) for row in request.rows],
            )
        return Done()

    def pre_commit(self, store: sqlite3.Connection, request: PreCommit) -> Outcome:
        """Forgets a transaction without rows, as the simulator's store does."""
        account = self._find_usable(store, request.name)
        if account is None:
            return unknown(request.name)
        if account.standing is Standing.OPEN:
            serial = account.serial
            if store.execute("SELECT 1 FROM output WHERE txn = ? LIMIT 1", (serial,)).fetchone() is None:
                _drop(store, serial)
            store.execute(
                "UPDATE transactions SET status = 'sealed', checkpoint = ? WHERE serial = ?",
                (request.checkpoint, serial),
            )
        return Done()

    def commit(self, store: sqlite3.Connection, request: Commit) -> Outcome:
        name = self._newest_of_id(store, request.name) if request.by_id else request.name
        account = self._find(store, name) if request.by_id else self._find_usable(store, name)
        if account is None:
            return unknown(name)
        if account.standing in UNFINISHED:
            _show(store, (account.serial,))
        return Done()

    def _newest_of_id(self, store: sqlite3.Connection, name: str) -> str:
        """The transaction that was begun last of all unfinished ones under the same transactional id; the given one if
        there is none."""
        unfinished = store.execute(
            "SELECT name FROM transactions WHERE writer = ? AND status IN ('open', 'sealed') ORDER BY serial DESC",
            (self.writer,),
        )
        return next((one for (one,) in unfinished if id_of(one) == id_of(name)), name)

    def finalise(self, store: sqlite3.Connection, request: Finalise) -> Outcome:
        account = self._find(store, request.name)
        if account is None or account.standing is Standing.OPEN:
            return unknown(request.name)
        store.execute(
            "UPDATE transactions SET status = 'final' WHERE serial = ? AND status = 'sealed'", (account.serial,)
        )
        return Done()

    def publish(self, store: sqlite3.Connection, request: Publish) -> Outcome:
        final: list[int] = []
        for name in request.names:
            account = self._find(store, name)
            if account is None or account.standing in UNFINISHED:
                return Denied(reason=f"transaction {name} is not final", transaction=name)
            if account.standing is Standing.FINAL:
                final.append(account.serial)
        _show(store, final)
        return Done()

    def abort(self, store: sqlite3.Connection, request: AbortTransaction) -> Outcome:
        self._drop_unfinished(store, request.name)
        return Done()

    def _drop_unfinished(self, store: sqlite3.Connection, name: str) -> None:
        account = self._find(store, name)
        if account is not None and account.standing in UNFINISHED:
            _drop(store, account.serial)

    # -- rows that are visible at once -------------------------------------------------

    def append(self, store: sqlite3.Connection, request: Append) -> Outcome:
        store.execute("INSERT INTO output (key, value, tag, tag2) VALUES (?, ?, ?, ?)", request.row)
        return Done()

    def upsert(self, store: sqlite3.Connection, request: Upsert) -> Outcome:
        store.execute(
            "INSERT INTO upserted (identity, key, value, tag, tag2) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (identity) DO UPDATE SET key = excluded.key, value = excluded.value,"
            " tag = excluded.tag, tag2 = excluded.tag2",
            (msgspec.json.encode(request.identity).decode(), *request.row),
        )
        return Done()

    def flush(self, store: sqlite3.Connection, request: Flush) -> Outcome:
        return Done()

    # -- fences ------------------------------------------------------------------------

    def fence(self, store: sqlite3.Connection, request: Fence) -> Outcome:
        store.execute(
            "INSERT INTO fences (writer, attempt) VALUES (?, ?)"
            " ON CONFLICT (writer) DO UPDATE SET attempt = excluded.attempt",
            (self.writer, self.attempt),
        )
        found = store.execute(
            "SELECT name, status, checkpoint FROM transactions WHERE writer = ? AND status IN ('open', 'sealed')"
            " ORDER BY serial",
            (self.writer,),
        )
        unfinished = (
            (name, None if status == "open" else sealed_for(checkpoint)) for name, status, checkpoint in found
        )
        return Done(unfinished=tuple(unfinished))


def _drop(store: sqlite3.Connection, serial: int) -> None:
    store.execute("DELETE FROM transactions WHERE serial = ?", (serial,))
    store.execute("DELETE FROM output WHERE txn = ?", (serial,))


def _show(store: sqlite3.Connection, serials: Collection[int]) -> None:
    """Make transactions visible, behind all that are."""
    (last,) = store.execute("SELECT max(shown) FROM transactions").fetchone()
    store.executemany(
        "UPDATE transactions SET status = 'committed', shown = ? WHERE serial = ?",
        [((last or 0) + 1, serial) for serial in serials],
    )


def unknown(name: str) -> Denied:
    return Denied(reason=f"it knows no sealed transaction {name}", transaction=name)


ACTIONS: dict[type, Callable[[WriterSession, sqlite3.Connection, Any], Outcome]] = {
    Fence: WriterSession.fence,
    BeginTransaction: WriterSession.begin,
    Write: WriterSession.write,
    PreCommit: WriterSession.pre_commit,
    Commit: WriterSession.commit,
    Finalise: WriterSession.finalise,
    Publish: WriterSession.publish,
    AbortTransaction: WriterSession.abort,
    Append: WriterSession.append,
    Upsert: WriterSession.upsert,
    Flush: WriterSession.flush,
}


class SqliteStore:
    """The access of one process to the store in a folder; `create` makes the store.  Not for several threads at once.

    A row whose `Append` or `Upsert` gets `NoAnswer` is kept and goes in with a later request: it is not to be sent
    again, and `Flush` reports when it is in.
    """

    def __init__(self, folder: Path, passing: Collection[TaskId] = ()) -> None:
        """`passing` are the writers whose transactions are not part of the job's output."""
        self._folder = folder
        self._passing = passing
        self._store: sqlite3.Connection | None = None
        self._wait_s = WAIT_S
        self._sessions: dict[tuple[TaskId, AttemptId], WriterSession] = {}

    def handle(self, request: AnyRequest) -> Outcome:
        """Do what is requested, or deny it; `NoAnswer` after some WAIT_S, or when the disk reports an error."""
        key = (request.writer, request.attempt)
        if key not in self._sessions:
            self._sessions[key] = WriterSession(*key, passes_on=key[0] in self._passing)
        session = self._sessions[key]
        if not file_of(self._folder).exists():
            return Denied(reason=f"the store in {self._folder} has been removed")
        try:
            outcome = self._in_one(session, request)
        except Shut:
            del self._sessions[key]
            return Denied(reason=f"{request.writer} has been fenced by a newer attempt")
        except (OverflowError, *REFUSED) as error:
            return Denied(reason=str(error))
        except sqlite3.DatabaseError as error:  # locked, a full disk, or no database
            return self._later(session, request, str(error))
        session.queue.clear()
        if isinstance(request, Fence):
            self._forget_older(request)
        return outcome

    def _in_one(self, session: WriterSession, request: AnyRequest) -> Outcome:
        """One transaction of SQLite."""
        if self._store is None:
            self._store = connect(self._folder, wait_s=0)
        store = self._store
        self._lock(store)
        with store:
            return session.ask(store, request)

    def _lock(self, store: sqlite3.Connection) -> None:
        """SQLite's own waiting sleeps up to 100 ms between two tries, in which others take the lock again and again."""
        deadline = monotonic() + self._wait_s
        while True:
            try:
                store.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                if monotonic() >= deadline:
                    self._wait_s = SHORT_WAIT_S
                    raise
                sleep(POLL_S)
            else:
                self._wait_s = WAIT_S
                return

    def _later(self, session: WriterSession, request: AnyRequest, reason: str) -> Outcome:
        """Keep a request that nobody sends again.  The rows of a transaction need not be in before it is sealed."""
        if isinstance(request, QUEUED):
            if len(session.queue) >= LONGEST_QUEUE:
                return Denied(reason=f"{LONGEST_QUEUE} requests wait for a store that is locked")
            session.queue.append(request)
        return NoAnswer(reason=reason)

    def _forget_older(self, fence: Fence) -> None:
        for key in [key for key in self._sessions if key[0] == fence.writer and key[1] < fence.attempt]:
            del self._sessions[key]

    def close(self) -> None:
        """Close the file.  Open transactions stay until the writer's next attempt aborts them."""
        if self._store is not None:
            self._store.close()
            self._store = None
        self._sessions.clear()
