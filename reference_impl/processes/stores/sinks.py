"""Where a run's sinks write, and the independent reader of it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

import msgspec

from ...core.vocabulary.errors import Refused
from ...core.vocabulary.ids import TaskId
from ...driver.ports import External
from .readers import Reader, Unreachable

DATABASE = "database"
SQLITE = "sqlite"


class Writer(External, Protocol):
    """A writer's access to the store."""

    def close(self) -> None:
        """End its sessions, and with them what ends with a session."""


class SinkPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sinks of one run write: a database (`dsn`, and `run`, its name there), or a folder."""

    store: str
    folder: Path
    dsn: str = ""
    run: str = ""

    def check(self) -> None:
        """Raise Refused for a kind of store that there is not."""
        if self.store not in (DATABASE, SQLITE):
            raise Refused(f"there is no sink store {self.store!r}; there are {SQLITE} and {DATABASE}")

    def create(self) -> None:
        """Make the place, empty."""
        if self.store == DATABASE:
            from . import database_reader

            database_reader.create(self.dsn, self.run)
        else:
            from . import sqlite_reader

            sqlite_reader.create(self.folder)

    def external(self, passing: Collection[TaskId] = ()) -> Writer:
        """A writer's access; it connects when it is first used.

        What the writers in `passing` commit is not part of the job's output.
        """
        if self.store == DATABASE:
            from .database import Database

            return Database(self.dsn, self.run, passing)
        from .sqlite_store import SqliteStore

        return SqliteStore(self.folder, passing)

    def reader(self) -> Reader:
        """A reader, independent of the writers."""
        if self.store == DATABASE:
            from .database_reader import Reader as DatabaseReader

            return DatabaseReader(self.dsn, self.run)
        from .sqlite_reader import SqliteReader

        return SqliteReader(self.folder)

    def expire(self, name: str) -> bool:
        """The store, or its administrator, aborts a sealed transaction; returns whether there was one."""
        try:
            if self.store == DATABASE:
                from . import database_reader

                return database_reader.expire(self.dsn, self.run, name)
            from . import sqlite_reader

            return sqlite_reader.expire(self.folder, name)
        except Unreachable:
            return False


def visible_transactions(reader: Reader) -> list[str] | None:
    """The names of the transactions that a reader sees now; None when it cannot read."""
    try:
        return reader.seen()
    except Unreachable:
        return None
