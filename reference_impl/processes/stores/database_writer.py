"""The access of one writer to the store in PostgreSQL: its sessions, its transactions, its fences (see `database`)."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import psycopg
from psycopg import errors, sql

from ...core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from ...core.vocabulary.transactions import (
    EPOCH,
    AbortTransaction,
    AnyRequest,
    Append,
    BeginTransaction,
    Commit,
    Denied,
    Done,
    Fence,
    Finalise,
    Outcome,
    PreCommit,
    Publish,
    Upsert,
    Write,
    id_of,
    sealed_for,
)
from .database_sessions import Gid, Session, connect, end_sessions, one_line, prepared, writers_label


class Shut(Exception):
    """The writer's attempt has been fenced."""


class Held(msgspec.Struct, kw_only=True):
    """An open transaction: its session, how many rows are in it."""

    session: Session
    rows: int = 0


class Committed(msgspec.Struct, frozen=True):
    """The transaction is committed; it may be final and not visible yet."""


class WriterSession:
    """One attempt of one writer: a session for requests that are done at once, and one for each open transaction."""

    def __init__(self, dsn: str, run: str, writer: TaskId, attempt: AttemptId, passes_on: bool = False) -> None:
        """`passes_on`: what it commits is not part of the job's output."""
        self.dsn, self.run, self.writer, self.attempt = dsn, run, writer, attempt
        self._passes_on = passes_on
        self.open: dict[str, Held] = {}
        self.backlog: deque[tuple[Any, ...]] = deque()
        """Rows of plain and idempotent sinks that are not in yet: for each a name of its own, the identity that it
        replaces, and the row."""
        self._names = (f"{token}|{number}" for token in (os.urandom(8).hex(),) for number in itertools.count())
        self._control: Session | None = None
        self._idle: list[Session] = []
        self._all: dict[int, Session] = {}
        """By the server's process."""
        self._lost: list[int] = []
        """Server processes of broken connections: they may still run."""

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
        """Forget broken sessions; their server processes are ended before the next request."""
        self._lost += [process for process, session in self._all.items() if session.closed]
        self._all = {process: session for process, session in self._all.items() if not session.closed}
        self._idle = [session for session in self._idle if not session.closed]
        self.open = {name: held for name, held in self.open.items() if not held.session.closed}

    def give_up_sessions(self) -> None:
        """Close the sessions without a transaction: where one broke, the others may have broken too, unnoticed."""
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

    def status(self, name: str) -> Gid | Committed | None:
        """The gid of a prepared transaction; None if there is none of this name that is prepared or committed."""
        session = self.control()
        # In this order, and not in one statement: if it is committed in between, its row in the ledger shows it.
        found = [gid for gid in prepared(session, self.run) if gid.name == name]
        if found:
            return found[-1]
        row = session.execute("SELECT 1 FROM ledger WHERE name = %s LIMIT 1", (name,)).fetchone()
        return Committed() if row else None

    def begin(self, request: BeginTransaction) -> Outcome:
        """A name that was used before starts again, unless it is committed: then it stays what it is."""
        name = request.name
        self._roll_back(name)
        status = self.status(name)
        if isinstance(status, Committed):
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
                return Denied(reason=f"transaction {request.name} is sealed", transaction=request.name)
            return Done() if isinstance(status, Committed) else unknown(request.name)
        columns = [list(column) for column in zip(*request.rows, strict=True)] or [[], [], [], []]
        with self.in_transaction(request.name) as session:
            session.execute(
                f"INSERT INTO {'passed' if self._passes_on else 'output'} (txn, key, value, tag, tag2)"
                " SELECT %s, key, value, tag, tag2"
                " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS new (key, value, tag, tag2)",
                (request.name, *columns),
            )
        self.open[request.name].rows += len(request.rows)
        return Done()

    def pre_commit(self, request: PreCommit) -> Outcome:
        """Forgets a transaction without rows, as the simulator's store does."""
        name = request.name
        if name not in self.open:
            return unknown(name) if self.status(name) is None else Done()
        if not self.open[name].rows:
            self._roll_back(name)
            return Done()
        gid = Gid(run=self.run, writer=self.writer, checkpoint=request.checkpoint, name=name)
        try:
            with self.in_transaction(name) as session:
                self._enter(session, name, request.checkpoint)
                session.execute(sql.SQL("PREPARE TRANSACTION {}").format(gid.text()))
        except (errors.OutOfMemory, errors.ObjectNotInPrerequisiteState, errors.DuplicateObject) as error:
            return Denied(reason=f"PostgreSQL cannot prepare transaction {name}: {one_line(error)}", transaction=name)
        self.release(name)
        return Done()

    def _enter(self, session: Session, name: str, checkpoint: CheckpointId | None) -> None:
        session.execute(
            "INSERT INTO ledger (name, writer, checkpoint, aside) VALUES (%s, %s, %s, %s)",
            (name, self.writer, checkpoint, self._passes_on),
        )

    def commit(self, request: Commit) -> Outcome:
        name = self._newest_of_id(request.name) if request.by_id else request.name
        if name in self.open:
            with self.in_transaction(name) as session:
                self._enter(session, name, None)
                session.execute("COMMIT")
            self.release(name)
            return Done()
        return self._commit_prepared(name, self.status(name))

    def _commit_prepared(self, name: str, status: Gid | Committed | None) -> Outcome:
        if isinstance(status, Gid):
            try:
                self.control().execute(sql.SQL("COMMIT PREPARED {}").format(status.text()))
            except errors.UndefinedObject:  # another session has done it in the meantime
                status = self.status(name)
            else:
                return Done()
        return Done() if isinstance(status, Committed) else unknown(name)

    def _newest_of_id(self, name: str) -> str:
        """The transaction that was begun last of all unfinished ones under the same transactional id; the given one if
        there is none."""
        query = "SELECT name FROM begun WHERE split_part(name, %s, 1) = %s GROUP BY name ORDER BY max(serial)"
        begun = [one for (one,) in self.control().execute(query, (EPOCH, id_of(name))).fetchall()]
        unfinished = {*self.open, *(gid.name for gid in prepared(self.control(), self.run))}
        return next((one for one in reversed(begun) if one in unfinished), name)

    def finalise(self, request: Finalise) -> Outcome:
        """Commit the transaction; before that, list it as not to be shown."""
        name = request.name
        status = self.status(name)
        if isinstance(status, Gid):
            self.control().execute("INSERT INTO final (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))
        return self._commit_prepared(name, status)

    def publish(self, request: Publish) -> Outcome:
        """One statement: a reader sees all of it or nothing."""
        names = list(request.names)
        known = self.control().execute("SELECT name FROM ledger WHERE name = ANY(%s)", (names,)).fetchall()
        for name in names:
            if (name,) not in known:
                return Denied(reason=f"transaction {name} is not final", transaction=name)
        self.control().execute("UPDATE final SET published = true WHERE name = ANY(%s) AND NOT published", (names,))
        return Done()

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
        with suppress(errors.UndefinedObject):  # another session has done it in the meantime
            self.control().execute(sql.SQL("ROLLBACK PREPARED {}").format(gid.text()))

    # -- rows that are visible at once -------------------------------------------------

    def wait_for(self, request: Append | Upsert) -> None:
        """Queue its row: it goes in when all earlier rows have."""
        self.backlog.append((next(self._names), _identity(request), *request.row))

    def put_in(self, request: AnyRequest) -> Outcome:
        """Insert the queued rows, oldest first.

        A row whose answer is lost is inserted again, and shows once: a plain row is recognised by its name, a row that
        replaces another by its identity.
        """
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
            *((gid.name, sealed_for(gid.checkpoint)) for gid in sealed),
            *((name, None) for name in self.open),
        ]
        return Done(unfinished=tuple(sorted(unfinished, key=lambda one: begun.get(one[0], 0))))


def unknown(name: str) -> Denied:
    return Denied(reason=f"it knows no transaction {name}", transaction=name)


def _identity(request: Append | Upsert) -> str | None:
    """The identity by which a row replaces another; None where it replaces none."""
    return msgspec.json.encode(request.identity).decode() if isinstance(request, Upsert) else None
