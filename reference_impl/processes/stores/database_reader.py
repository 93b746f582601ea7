"""The store of a run as somebody outside the engine sees it: made, read, cleared away."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
import psycopg
from psycopg import errors, sql

from ...core.vocabulary.transactions import Row
from .database_sessions import Gid, Session, connect, end_sessions, one_line, prepared
from .readers import Unreachable

PURGE_TRIES = 20
TABLES = (
    "CREATE TABLE fences (writer text PRIMARY KEY, attempt bigint NOT NULL)",
    (
        "CREATE TABLE begun (serial bigint GENERATED ALWAYS AS IDENTITY, name text NOT NULL, writer text NOT NULL,"
        " attempt bigint NOT NULL, process int NOT NULL)"
    ),
    "CREATE TABLE ledger (name text NOT NULL, writer text NOT NULL, checkpoint bigint, aside boolean NOT NULL)",
    "CREATE INDEX ledger_by_name ON ledger (name)",
    "CREATE TABLE final (name text PRIMARY KEY, published boolean NOT NULL DEFAULT false)",
    (
        "CREATE TABLE output (serial bigint GENERATED ALWAYS AS IDENTITY, txn text NOT NULL, name text,"
        " key bigint, value bigint, tag bigint, tag2 bigint)"
    ),
    "CREATE TABLE passed (txn text NOT NULL, key bigint, value bigint, tag bigint, tag2 bigint)",
    "CREATE UNIQUE INDEX output_by_name ON output (name) WHERE name IS NOT NULL",
    (
        "CREATE TABLE upserted (serial bigint GENERATED ALWAYS AS IDENTITY, identity text PRIMARY KEY,"
        " key bigint, value bigint, tag bigint, tag2 bigint)"
    ),
)
"""`begun` is written before a transaction opens, `ledger` inside it: a name is visible in `ledger` exactly when the
rows of its transaction are.

The names in `ledger` are not unique: a second transaction of the same name would have to wait for the first, which may
be prepared and stay so.  Only plain rows have a name in `output`.  A plain row is put in again if nobody learned that
it was in, and its name shows that it was.  `final` names the transactions that are committed and not shown before they
are published.  `passed` has the rows that two-phase operators commit; they are not part of the job's output (`aside` in
`ledger`).
"""


def create(dsn: str, run: str) -> None:
    """Make a run's schema and tables, all or nothing; raises `Unreachable`, psycopg.Error when they are there."""
    try:
        session = connect(dsn, run, f"{run}-creator")
    except psycopg.OperationalError as error:
        raise Unreachable(one_line(error)) from error
    with session, session.transaction():
        session.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(run)))
        for table in TABLES:
            session.execute(table.encode())


class Reader:
    """An independent look at a run, over a connection of its own; its methods raise `Unreachable`."""

    def __init__(self, dsn: str, run: str) -> None:
        self._dsn, self._run = dsn, run
        self._session: Session | None = None
        self._becoming_visible = ""

    def _open(self) -> Session:
        if self._session is None or self._session.closed:
            self._session = connect(self._dsn, self._run, f"{self._run}-reader")
            tracked = self._session.execute("SHOW track_commit_timestamp").fetchone() == ("on",)
            shown = "pg_xact_commit_timestamp(COALESCE(final.xmin, own.xmin)),"
            self._becoming_visible = shown if tracked else ""
        return self._session

    def _ask(self, query: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Ask; once more over a new connection if the old one has ended."""
        for is_last in (False, True):
            try:
                session = self._open()
                text = query.replace("BECOMING_VISIBLE", self._becoming_visible)
                return session.execute(text.encode(), arguments).fetchall()
            except psycopg.OperationalError as error:
                if self._session is not None:
                    self._session.close()
                if is_last:
                    raise Unreachable(one_line(error)) from error
        raise Unreachable("PostgreSQL was not asked")

    def seen(self) -> list[str]:
        """The names of transactions that are visible now, in the order they became so."""
        query = (
            "SELECT own.name FROM ledger AS own LEFT JOIN final ON final.name = own.name"
            " WHERE NOT own.aside AND (final.name IS NULL OR final.published) ORDER BY BECOMING_VISIBLE own.name"
        )
        return [name for (name,) in self._ask(query)]

    def passing(self) -> list[str]:
        """The names of committed transactions that are not part of the job's output: those of two-phase operators."""
        return [name for (name,) in self._ask("SELECT name FROM ledger WHERE aside ORDER BY name")]

    def committed(self) -> list[tuple[str | None, Row]]:
        """(transaction, or None for a plain row, which has "" there; row), in the order they became visible where the
        server tracks when transactions commit, else in the order of names."""
        query = (
            "SELECT txn, key, value, tag, tag2 FROM output AS own LEFT JOIN final ON final.name = own.txn"
            " WHERE final.name IS NULL OR final.published ORDER BY BECOMING_VISIBLE txn, serial"
        )
        return [(txn or None, (key, value, tag, tag2)) for txn, key, value, tag, tag2 in self._ask(query)]

    def table(self) -> dict[tuple[int | None, ...], Row]:
        """The rows of idempotent sinks by identity, in the order these first came."""
        query = "SELECT identity, key, value, tag, tag2 FROM upserted ORDER BY serial"
        return {_identity(identity): (key, value, tag, tag2) for identity, key, value, tag, tag2 in self._ask(query)}

    def unfinished(self) -> list[tuple[str, str, int | None]]:
        """(transaction, "open" or "prepared", the checkpoint that it was prepared for); what is final and not
        visible counts as prepared."""
        open_now = self._ask(
            "SELECT last.name FROM (SELECT DISTINCT ON (process) process, name, serial FROM begun"
            " ORDER BY process, serial DESC) AS last JOIN pg_stat_activity AS activity ON activity.pid = last.process"
            " WHERE activity.datname = current_database() AND starts_with(activity.application_name, %s)"
            " AND activity.xact_start IS NOT NULL AND last.name NOT IN (SELECT name FROM ledger) ORDER BY last.serial",
            (f"{self._run}|",),
        )
        sealed = [
            Gid.of(gid)
            for (gid,) in self._ask(
                "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, %s)"
                " ORDER BY prepared, gid",
                (f"{self._run}|",),
            )
        ]
        names = [gid.name for gid in sealed]
        final = self._ask(
            "SELECT final.name, ledger.checkpoint FROM final JOIN ledger ON ledger.name = final.name"
            " WHERE NOT published"
        )
        return [
            *((gid.name, "prepared", gid.checkpoint) for gid in sealed),
            *((name, "prepared", checkpoint) for name, checkpoint in final),
            *((name, "open", None) for (name,) in open_now if name not in names),
        ]

    def purge(self) -> None:
        """End the run's sessions, roll back the transactions that they prepared, and drop the run's schema.

        The tables are dropped while nobody holds them, so no prepared transaction can remain.  A session that connects
        in between makes this function begin again; one that connects later finds no tables.
        """
        for _ in range(PURGE_TRIES):
            try:
                session = self._open()
                self._clear(session)
            except (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected):
                continue
            except psycopg.OperationalError as error:
                raise Unreachable(one_line(error)) from error
            return
        raise Unreachable(f"the tables of run {self._run} stay in use")

    def _clear(self, session: Session) -> None:
        end_sessions(session, sql.SQL("starts_with(application_name, {})").format(f"{self._run}|"))
        for gid in prepared(session, self._run):
            with suppress(errors.UndefinedObject):  # it was committed in the meantime
                session.execute(sql.SQL("ROLLBACK PREPARED {}").format(gid.text()))
        session.execute("SET lock_timeout = 200")
        session.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(self._run)))
        end_sessions(session, sql.SQL("starts_with(application_name, {})").format(f"{self._run}|"))

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


def expire(dsn: str, run: str, name: str) -> bool:
    """Give a prepared transaction up, as an administrator rolls it back; whether it was there.

    Raises `Unreachable`.
    """
    try:
        with connect(dsn, run, f"{run}-administrator") as session:
            for gid in prepared(session, run):
                if gid.name == name:
                    session.execute(sql.SQL("ROLLBACK PREPARED {}").format(gid.text()))
                    return True
    except errors.UndefinedObject:
        return False
    except psycopg.OperationalError as error:
        raise Unreachable(one_line(error)) from error
    return False


def _identity(text: str) -> tuple[int | None, ...]:
    return tuple(msgspec.json.decode(text, type=list[int | None]))
