"""The store in SQLite as somebody outside the engine sees it: made, read, removed."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from ...core.vocabulary.transactions import Row
from .readers import Unreachable

WAIT_S = 2.0
"""How long a reader or an administrator waits for a lock."""
TABLES = """
PRAGMA page_size = 1024;
PRAGMA journal_mode = WAL;
CREATE TABLE fences (writer TEXT PRIMARY KEY, attempt INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE transactions (
    serial INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, writer TEXT NOT NULL, opener TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open', checkpoint INTEGER, aside INTEGER NOT NULL, shown INTEGER
);
CREATE TABLE output (serial INTEGER PRIMARY KEY, txn INTEGER, key, value, tag, tag2);
CREATE INDEX output_by_transaction ON output (txn) WHERE txn IS NOT NULL;
CREATE TABLE upserted (serial INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, key, value, tag, tag2);
CREATE VIEW visible AS
    SELECT name, key, value, tag, tag2 FROM output LEFT JOIN transactions ON transactions.serial = txn
    WHERE txn IS NULL OR (status = 'committed' AND NOT aside) ORDER BY shown, txn, output.serial;
"""
"""A transaction is open, sealed, final (committed, and not visible before it is published) or committed.  `shown`
counts what became visible.  `aside` marks what is not part of the job's output.  A plain row has no transaction.
"""


def file_of(folder: Path) -> Path:
    return folder / "store.sqlite"


def create(folder: Path) -> None:
    """Make the store in a folder, which it makes too."""
    folder.mkdir(parents=True, exist_ok=True)
    store = sqlite3.connect(file_of(folder))
    store.executescript(TABLES)
    store.close()


def connect(folder: Path, wait_s: float) -> sqlite3.Connection:
    """Open a store that exists; for a lock it waits `wait_s`.

    Readers see what is committed, and wait for nobody (WAL).  As with cutproof's PostgreSQL no time is spent on waiting
    for a disk: what a killed process has written is with the kernel.  Nothing is moved out of the WAL while processes
    write, since a run is short, and since a race in that could corrupt the file (before SQLite 3.51.3).
    """
    store = sqlite3.connect(
        f"{file_of(folder).absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=wait_s,
        isolation_level=None,
        check_same_thread=False,
    )
    store.execute("PRAGMA synchronous = OFF")
    store.execute("PRAGMA wal_autocheckpoint = 0")
    return store


class SqliteReader:
    """An independent look at the store, over a connection of its own; a `readers.Reader`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store: sqlite3.Connection | None = None

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        try:
            if self._store is None:
                self._store = connect(self._folder, WAIT_S)
            return self._store.execute(query).fetchall()
        except sqlite3.DatabaseError as error:
            raise Unreachable(str(error)) from error

    def seen(self) -> list[str]:
        query = "SELECT name FROM transactions WHERE status = 'committed' AND NOT aside ORDER BY shown, serial"
        return [name for (name,) in self._ask(query)]

    def passing(self) -> list[str]:
        query = "SELECT name FROM transactions WHERE status = 'committed' AND aside ORDER BY shown, serial"
        return [name for (name,) in self._ask(query)]

    def committed(self) -> list[tuple[str | None, Row]]:
        """(transaction, or None for a plain row; row): plain rows as they were written, then transactions as they
        became visible."""
        return [(name, (key, value, tag, tag2)) for name, key, value, tag, tag2 in self._ask("SELECT * FROM visible")]

    def table(self) -> dict[tuple[int | None, ...], Row]:
        rows = self._ask("SELECT identity, key, value, tag, tag2 FROM upserted ORDER BY serial")
        return {
            tuple(msgspec.json.decode(identity)): (key, value, tag, tag2) for identity, key, value, tag, tag2 in rows
        }

    def unfinished(self) -> list[tuple[str, str, int | None]]:
        rows = self._ask(
            "SELECT name, status, checkpoint FROM transactions WHERE status <> 'committed' ORDER BY serial"
        )
        return [(name, "open" if status == "open" else "prepared", checkpoint) for name, status, checkpoint in rows]

    def purge(self) -> None:
        """Remove the whole store.  A process that still writes is told that it is gone."""
        self.close()
        shutil.rmtree(self._folder)

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


def expire(folder: Path, name: str) -> bool:
    """Abort a sealed transaction, as an administrator would; whether it was there.  Raises `Unreachable`."""
    try:
        store = connect(folder, WAIT_S)
        try:
            store.execute("BEGIN IMMEDIATE")
            with store:
                query = "SELECT serial FROM transactions WHERE name = ? AND status = 'sealed'"
                found = store.execute(query, (name,)).fetchall()
                for table, column in (("transactions", "serial"), ("output", "txn")):
                    store.executemany(f"DELETE FROM {table} WHERE {column} = ?", found)
        finally:
            store.close()
    except sqlite3.DatabaseError as error:
        raise Unreachable(str(error)) from error
    return bool(found)
