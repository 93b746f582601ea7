"""Records as rows of a table, in SQLite or PostgreSQL: the rows of a part are stored in one transaction."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....properties.model.workload import InputRecord
from ...subject.port import SubjectFailed
from ..description import RECORD, Feed
from ..entries import EntryFailed, Problem
from ..output.formats import is_postgres
from ..places import expanded
from .feeder import Feeder

INSERT = "feed.insert"
_NAMED = re.compile(rf"(?<![:\w]):({'|'.join(RECORD)})\b")


class ToTable(Feeder):
    """The records of one run, each by one INSERT.  A table that is not there yet, or is locked, is tried again."""

    def __init__(self, feed: Feed, records: Sequence[InputRecord], database: str, insert: str) -> None:
        super().__init__(feed, records)
        self._database = database
        self._insert = insert

    def open(self) -> None:
        self._known()

    def _put(self, rows: Sequence[dict[str, Any]]) -> bool:
        self.problem = None
        known = self._known()
        if is_postgres(known):
            self._into_postgres(rows)
        else:
            self._into_sqlite(Path(known), rows)
        return self.problem is None

    def _known(self) -> str:
        """The database with its variables filled in."""
        try:
            return expanded(self._database)
        except SubjectFailed as error:
            raise EntryFailed("feed.database", error) from None

    def _row(self, record: InputRecord) -> dict[str, Any]:
        """The statement has names of its own for the columns, so all three values are there."""
        return dict(zip(RECORD, record, strict=True))

    def _into_sqlite(self, path: Path, rows: Sequence[dict[str, Any]]) -> None:
        """The database is the pipeline's to make: one that is not there yet is not made here."""
        name = f"{path.absolute().as_uri()}?mode=rw"
        try:
            with contextlib.closing(sqlite3.connect(name, uri=True, timeout=0.2)) as connection, connection:
                connection.executemany(self._insert, rows)
        except sqlite3.OperationalError as error:
            # A missing table, which may come, and a text that is no SQL have one code, SQLITE_ERROR: only words
            # tell them apart.  If these change, the error is told at the end of the run instead of at once.
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR and "syntax error" in str(error):
                raise EntryFailed(INSERT, f"SQLite says: {error}") from error
            self.problem = Problem(INSERT, f"SQLite says: {error}")
        except sqlite3.Error as error:
            raise EntryFailed(INSERT, f"SQLite says: {error}") from error

    def _into_postgres(self, rows: Sequence[dict[str, Any]]) -> None:
        import psycopg

        from ..output.postgres import Postgres

        try:
            server = Postgres(self._database)
        except SubjectFailed as error:
            raise EntryFailed("feed.database", error) from None
        statement = _NAMED.sub(r"%(\1)s", self._insert.replace("%", "%%"))
        commits = False
        try:
            with server.connect() as session:
                session.cursor().executemany(statement.encode(), rows)
                commits = True
        except (psycopg.OperationalError, psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            said = server.said(error)
            if commits:
                raise EntryFailed(INSERT, f"{said}: whether it has stored the records cannot be known") from None
            self.problem = Problem(INSERT, said)
        except psycopg.Error as error:
            raise EntryFailed(INSERT, server.said(error)) from None
