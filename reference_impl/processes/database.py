"""The external transaction store as a real one: PostgreSQL, with PREPARE TRANSACTION and COMMIT PREPARED.

`Database.handle` means what `TransactionStore.handle` means in the simulator.
Where a database differs: an open transaction lives in a session and ends with
it, so that a fence hears of sealed ones only; rows are signed 64-bit integers.

Why no zombie escapes a fence.  A fence commits its row, then lists the sessions
of older attempts (they carry their writer and attempt in application_name from
the moment they connect), ends them and waits until the server has none left.
A session that is not in the list gets its name after the list was made, so
after the row was committed; it reads the fences before its first request, and
sees that row.  A session in the list is ended by the server, however its
process fares.  What it had under way is then done or undone, so that the list
of prepared transactions, taken last, changes no more by its hand.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import sleep
from typing import Any

import msgspec
import psycopg
from psycopg import errors, sql

from ..core.ids import AttemptId, CheckpointId, TaskId
from ..core.transactions import (
    AbortTransaction,
    AnyRequest,
    Append,
    Begin,
    Commit,
    Denied,
    Done,
    Fence,
    Flush,
    NoAnswer,
    Outcome,
    PreCommit,
    Upsert,
    Write,
)
from .database_reader import Reader, create
from .database_sessions import Gid, Session, Silent, connect, end_sessions, one_line, prepared, writers_label

__all__ = ["Database", "Reader", "create"]

TRIES = 6
"""How often one request is asked of a server that breaks off, within some 30 ms."""
LONGEST_BACKLOG = 100_000
"""Plain and idempotent rows that may wait for a server that does not answer."""

REFUSED = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, psycopg.NotSupportedError)
"""What asking again does not change: a value that does not fit, a run whose tables are gone."""


class Shut(Exception):
    """The writer's attempt has been fenced."""


class Held(msgspec.Struct, kw_only=True):
    """An open transaction: its session, how many rows are in it."""

    session: Session
    rows: int = 0


class Desk:
    """One attempt of one writer: a session for what is at once, one more for each open transaction."""

    def __init__(self, dsn: str, run: str, writer: TaskId, attempt: AttemptId) -> None:
        self.dsn, self.run, self.writer, self.attempt = dsn, run, writer, attempt
        self.open: dict[str, Held] = {}
        self.backlog: deque[tuple[Any, ...]] = deque()
        """Rows of plain and idempotent sinks that are not in yet: a name of its own each, what it replaces, the row."""
        self._names = (f"{token}|{number}" for token in (os.urandom(8).hex(),) for number in itertools.count())
        self._control: Session | None = None
        self._idle: list[Session] = []
        self._all: dict[int, Session] = {}
        """By the server's process."""
        self._lost: list[int] = []
        """Server processes of connections that broke: they may not know it yet."""

    # -- sessions --------------------------------------------------------------------

    def control(self) -> Session:
        """The session that holds no transaction; raises `Shut`, psycopg.Error."""
        if self._control is None or self._control.closed:
            self._control = self._connect()
        while self._lost:
            end_sessions(self._control, self._mine(self._lost[-1]))
            self._lost.pop()
        return self._control

    def _mine(self, process: int) -> sql.Composed:
        label = f"{writers_label(self.run, self.writer)}{self.attempt}"
        return sql.SQL("pid = {} AND application_name = {}").format(process, label)

    def _connect(self) -> Session:
        label = f"{writers_label(self.run, self.writer)}{self.attempt}"
        session = connect(self.dsn, self.run, label)
        try:
            row = session.execute("SELECT attempt FROM fences WHERE writer = %s", (self.writer,)).fetchone()
        except psycopg.Error:
            session.close()
            raise
        if row is not None and self.attempt < row[0]:
            session.close()
            raise Shut
        self._all[session.info.backend_pid] = session
        return session

    def drop_broken(self) -> None:
        """Forget what broke; the server's side of it is ended before the next request."""
        self._lost += [process for process, session in self._all.items() if session.closed]
        self._all = {process: session for process, session in self._all.items() if not session.closed}
        self._idle = [session for session in self._idle if not session.closed]
        self.open = {name: held for name, held in self.open.items() if not held.session.closed}

    def give_up_sessions(self) -> None:
        """Where one session broke the others may have, and not know it; those with a transaction stay."""
        for session in (self._control, *self._idle):
            if session is not None:
                session.close()
        self.drop_broken()

    def close(self) -> None:
        for session in self._all.values():
            session.close()
        self.open.clear()

    @contextmanager
    def in_transaction(self, name: str) -> Iterator[Session]:
        """Work in an open transaction: an error ends it, and its session."""
        held = self.open[name]
        try:
            yield held.session
        except (psycopg.Error, ValueError):
            held.session.close()
            self.open.pop(name, None)
            raise

    def release(self, name: str) -> None:
        self._idle.append(self.open.pop(name).session)

    # -- transactions ----------------------------------------------------------------

    def status(self, name: str) -> Gid | str:
        """The gid of a prepared transaction, or "committed" or "unknown"."""
        session = self.control()
        # In this order, and not in one statement: one that is committed in between is found by its row.
        found = [gid for gid in prepared(session, self.run) if gid.name == name]
        if found:
            return found[-1]
        row = session.execute("SELECT 1 FROM ledger WHERE name = %s LIMIT 1", (name,)).fetchone()
        return "committed" if row else "unknown"

    def begin(self, request: Begin) -> Outcome:
        """A name that was used before starts again, unless it is committed: then it stays what it is."""
        name = request.name
        self._roll_back(name)
        status = self.status(name)
        if status == "committed":
            return Done()
        if isinstance(status, Gid):
            self._roll_back_prepared(status)
        session = self._idle.pop() if self._idle else self._connect()
        self.open[name] = Held(session=session)
        with self.in_transaction(name):
            session.execute(
                "INSERT INTO begun (name, writer, attempt, process) VALUES (%s, %s, %s, pg_backend_pid())",
                (name, self.writer, self.attempt),
            )
            session.execute("BEGIN")
        return Done()

    def write(self, request: Write) -> Outcome:
        if request.name not in self.open:
            status = self.status(request.name)
            if isinstance(status, Gid):
                return Denied(reason=f"transaction {request.name} is sealed")
            return Done() if status == "committed" else unknown(request.name)
        columns = [list(column) for column in zip(*request.rows, strict=True)] or [[], [], [], []]
        with self.in_transaction(request.name) as session:
            session.execute(
                "INSERT INTO output (txn, key, value, tag, tag2) SELECT %s, key, value, tag, tag2"
                " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS new (key, value, tag, tag2)",
                (request.name, *columns),
            )
        self.open[request.name].rows += len(request.rows)
        return Done()

    def pre_commit(self, request: PreCommit) -> Outcome:
        """Like the simulator's store it forgets a transaction without rows."""
        name = request.name
        if name not in self.open:
            return unknown(name) if self.status(name) == "unknown" else Done()
        if not self.open[name].rows:
            self._roll_back(name)
            return Done()
        gid = Gid(run=self.run, writer=self.writer, checkpoint=request.checkpoint, name=name)
        try:
            with self.in_transaction(name) as session:
                self._enter(session, name, request.checkpoint)
                session.execute(sql.SQL("PREPARE TRANSACTION {}").format(gid.text()))
        except (errors.OutOfMemory, errors.ObjectNotInPrerequisiteState, errors.DuplicateObject) as error:
            return Denied(reason=f"PostgreSQL cannot prepare transaction {name}: {one_line(error)}")
        self.release(name)
        return Done()

    def _enter(self, session: Session, name: str, checkpoint: CheckpointId | None) -> None:
        session.execute(
            "INSERT INTO ledger (name, writer, checkpoint) VALUES (%s, %s, %s)", (name, self.writer, checkpoint)
        )

    def commit(self, request: Commit) -> Outcome:
        name = request.name
        if name in self.open:
            with self.in_transaction(name) as session:
                self._enter(session, name, None)
                session.execute("COMMIT")
            self.release(name)
            return Done()
        status = self.status(name)
        if isinstance(status, Gid):
            try:
                self.control().execute(sql.SQL("COMMIT PREPARED {}").format(status.text()))
            except errors.UndefinedObject:  # somebody else was first
                status = self.status(name)
            else:
                return Done()
        return Done() if status == "committed" else unknown(name)

    def abort(self, request: AbortTransaction) -> Outcome:
        self._roll_back(request.name)
        status = self.status(request.name)
        if isinstance(status, Gid):
            self._roll_back_prepared(status)
        return Done()

    def _roll_back(self, name: str) -> None:
        if name in self.open:
            with self.in_transaction(name) as session:
                session.execute("ROLLBACK")
            self.release(name)

    def _roll_back_prepared(self, gid: Gid) -> None:
        with suppress(errors.UndefinedObject):  # somebody else was first
            self.control().execute(sql.SQL("ROLLBACK PREPARED {}").format(gid.text()))

    # -- rows that are visible at once -------------------------------------------------

    def wait_for(self, request: Append | Upsert) -> None:
        """Have its row go in when what came before it has."""
        self.backlog.append((next(self._names), _identity(request), *request.row))

    def put_in(self, request: AnyRequest) -> Outcome:
        """Bring in what waits, oldest first.  A row whose answer is lost goes in again, and shows once: a
        plain one by its name, and one that replaces another by what it replaces."""
        while self.backlog:
            name, identity, *row = self.backlog[0]
            if identity is None:
                self.control().execute(
                    "INSERT INTO output (txn, name, key, value, tag, tag2) VALUES ('', %s, %s, %s, %s, %s)"
                    " ON CONFLICT (name) WHERE name IS NOT NULL DO NOTHING",
                    (name, *row),
                )
            else:
                self.control().execute(
                    "INSERT INTO upserted (identity, key, value, tag, tag2) VALUES (%s, %s, %s, %s, %s)"
                    " ON CONFLICT (identity) DO UPDATE SET key = excluded.key, value = excluded.value,"
                    " tag = excluded.tag, tag2 = excluded.tag2",
                    (identity, *row),
                )
            self.backlog.popleft()
        return Done()

    # -- fences ------------------------------------------------------------------------

    def fence(self, request: Fence) -> Outcome:
        session = self.control()
        moved = session.execute(
            "INSERT INTO fences (writer, attempt) VALUES (%s, %s) ON CONFLICT (writer) DO UPDATE"
            " SET attempt = excluded.attempt WHERE fences.attempt <= excluded.attempt RETURNING attempt",
            (self.writer, self.attempt),
        ).fetchone()
        if moved is None:
            raise Shut
        label = writers_label(self.run, self.writer)
        end_sessions(
            session,
            sql.SQL(
                "CASE WHEN starts_with(application_name, {label})"
                " THEN substr(application_name, {after})::bigint < {attempt} ELSE false END"
            ).format(label=label, after=len(label) + 1, attempt=self.attempt),
        )
        sealed = [gid for gid in prepared(session, self.run) if gid.writer == self.writer]
        query = "SELECT name, max(serial) FROM begun WHERE writer = %s GROUP BY name"
        begun = dict(session.execute(query, (self.writer,)).fetchall())
        unfinished = [
            *((gid.name, CheckpointId(gid.checkpoint)) for gid in sealed),
            *((name, None) for name in self.open),
        ]
        return Done(unfinished=tuple(sorted(unfinished, key=lambda one: begun.get(one[0], 0))))


def unknown(name: str) -> Denied:
    return Denied(reason=f"it knows no transaction {name}")


ACTIONS: dict[type, Callable[[Desk, Any], Outcome]] = {
    Fence: Desk.fence,
    Begin: Desk.begin,
    Write: Desk.write,
    PreCommit: Desk.pre_commit,
    Commit: Desk.commit,
    AbortTransaction: Desk.abort,
    Append: Desk.put_in,
    Upsert: Desk.put_in,
    Flush: Desk.put_in,
}


class Database:
    """One process's way into the store of a run; `create` makes the store.

    Not for several threads.  A row whose `Append` or `Upsert` gets `NoAnswer` is kept and
    goes in with a later request: it is not to be sent again, and `Flush` says when it is in.
    """

    def __init__(self, dsn: str, run: str) -> None:
        self._dsn, self._run = dsn, run
        self._desks: dict[tuple[TaskId, AttemptId], Desk] = {}

    def handle(self, request: AnyRequest) -> Outcome:
        """Do what is asked, or deny it; `NoAnswer` when the server is away, within some PATIENCE_S."""
        key = (request.writer, request.attempt)
        if key not in self._desks:
            self._desks[key] = Desk(self._dsn, self._run, *key)
        desk = self._desks[key]
        if isinstance(request, Append | Upsert):
            if len(desk.backlog) >= LONGEST_BACKLOG:
                return Denied(reason=f"{LONGEST_BACKLOG} rows wait for a database that does not answer")
            desk.wait_for(request)
        try:
            outcome = self._ask_again(desk, request)
        except Shut:
            self._desks.pop(key).close()
            return Denied(reason=f"{request.writer} has been fenced by a newer attempt")
        except (ValueError, *REFUSED) as error:
            if isinstance(request, Append | Upsert):
                desk.backlog.popleft()
            return Denied(reason=one_line(error))
        except psycopg.Error as error:
            desk.drop_broken()
            return NoAnswer(reason=one_line(error))
        if isinstance(request, Fence):
            self._forget_older(request)
        return outcome

    @staticmethod
    def _ask_again(desk: Desk, request: AnyRequest) -> Outcome:
        """A connection that broke may have done so long ago: a new one shows why, or is asked
        instead.  A fence that is under way may end that one too.  Each request may be asked again."""
        action = ACTIONS[type(request)]
        for tried in range(TRIES - 1):
            try:
                return action(desk, request)
            except (Silent, errors.QueryCanceled, errors.ConnectionTimeout, *REFUSED):
                raise
            except psycopg.Error:
                desk.give_up_sessions()
                sleep(0.001 * 2**tried)
        return action(desk, request)

    def _forget_older(self, fence: Fence) -> None:
        for key in [key for key in self._desks if key[0] == fence.writer and key[1] < fence.attempt]:
            self._desks.pop(key).close()

    def close(self) -> None:
        """End the sessions; open transactions end with them."""
        for desk in self._desks.values():
            desk.close()
        self._desks.clear()


def _identity(request: Append | Upsert) -> str | None:
    """By what a row replaces another; None where it does not."""
    return msgspec.json.encode(request.identity).decode() if isinstance(request, Upsert) else None
