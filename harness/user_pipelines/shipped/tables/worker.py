"""A worker appends records from JSON files to a table, a file in a commit.  It works alone, or beside another one.

Arguments: the library (`deltalake`, `pyiceberg` or `pypaimon`), the way, the folder of the input, that of the output,
that of the workers' state, and a time in seconds.

A worker alone notes after each commit, so many seconds later, how many files are done.  If it is killed between a
commit and its note, the next one hands in the rows of this file once more.  No library promises that the table then
has them once: it does what it is asked to do.  So that is the worker's duty, and there are two ways:

- `appends`: the worker trusts its note.
- `transactions`: the worker hands in the number of the file with the commit, and asks the table for the last one
  before it goes on.

Workers beside each other take no notes: they ask the table.  They commit at each full multiple of the seconds, as a
micro-batch by a processing-time trigger does.  With `--lease` one of them works, and the other takes over once the
lease is too old.  With `--writer` each has its own part of the files.  Their ways differ by library: `handle` and
`path` (delta-rs), `no-retries` and `retries` (pyiceberg), `primary-key` and `append` (pypaimon).
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from pathlib import Path
from typing import Any, Protocol

import pyarrow
import pyarrow.json

SCHEMA = pyarrow.schema([(name, pyarrow.int64()) for name in ("key", "value", "tag")])
LEASE_S = 1.0
"""a lease that has not been renewed for so long is taken over"""
RENEWED_EVERY_S = 0.1
WRITERS = 2
POLL_S = 0.02


class Refused(Exception):
    """The table has refused a commit, since another one came first."""


class Table(Protocol):
    """A table, as it was when it was opened, and with what this worker has committed since."""

    def open(self) -> None:
        """Take the table as it is now; make it if there is none."""

    def append(self, rows: pyarrow.Table, number: int | None) -> None:
        """Commit rows, and a number with them; raises Refused."""

    def last(self) -> int | None:
        """The last number that was committed under the name of this worker."""


class Delta:
    """delta-rs.  A commit takes a version of an application.  The table tells the last one that it has
    (`transaction_version`).  A commit is refused if the same application has committed since the handle was read."""

    def __init__(self, output: Path, way: str, name: str) -> None:
        import deltalake

        self._library = deltalake
        self._path = str(output / "rows")
        self._name = name
        self._through_handle = way == "handle"
        """without it, the library reads the table anew for each commit"""

    def open(self) -> None:
        self._handle = self._library.DeltaTable.create(self._path, schema=SCHEMA, mode="ignore")

    def append(self, rows: pyarrow.Table, number: int | None) -> None:
        known = None
        if number is not None:
            transactions = [self._library.Transaction(self._name, number)]
            known = self._library.CommitProperties(app_transactions=transactions)
        before = self._handle.version()
        where = self._handle if self._through_handle else self._path
        try:
            self._library.write_deltalake(where, rows, mode="append", commit_properties=known)
        except self._library.exceptions.CommitFailedError as error:
            raise Refused(error) from error
        if self._through_handle and (others := self._handle.version() - before - 1):
            print(f"commits of others came first: {others}", flush=True)

    def last(self) -> int | None:
        version: int | None = self._handle.transaction_version(self._name)
        return version


class Iceberg:
    """pyiceberg, with a catalog in SQLite.  A snapshot takes properties into its summary, and the table lists its
    snapshots; that is how Iceberg's sink for Flink knows what it has committed.  If another commit came
    first, pyiceberg commits an append once more on top of it, unless the table's properties forbid that."""

    def __init__(self, output: Path, way: str, name: str) -> None:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import CommitFailedException

        self._catalog = SqlCatalog("local", uri=f"sqlite:///{output / 'catalog.db'}", warehouse=output.as_uri())
        self._refusal = CommitFailedException
        self._name = name
        self._properties = {"commit.retry.num-retries": "0"} if way == "no-retries" else {}

    def open(self) -> None:
        self._catalog.create_namespace_if_not_exists("db")
        self._handle = self._catalog.create_table_if_not_exists("db.rows", SCHEMA, properties=self._properties)

    def append(self, rows: pyarrow.Table, number: int | None) -> None:
        properties = {} if number is None else {self._name: str(number)}
        try:
            self._handle.append(rows, snapshot_properties=properties)
        except self._refusal as error:
            raise Refused(error) from error

    def last(self) -> int | None:
        summaries = [one.summary for one in self._handle.snapshots()]
        numbers = [summary[self._name] for summary in summaries if summary is not None]
        return max((int(one) for one in numbers if one is not None), default=None)


class Paimon:
    """pypaimon.  A snapshot takes properties, and the table lists its snapshots.  (What Java's `filterAndCommit` leaves
    out, a commit of the same user with the same identifier, pypaimon commits again.)  Appends never conflict, so that
    none is refused.  In a table with a primary key a row that is committed twice is there once."""

    def __init__(self, output: Path, way: str, name: str) -> None:
        import pypaimon

        self._library = pypaimon
        self._catalog = pypaimon.CatalogFactory.create({"warehouse": str(output)})
        self._name = name
        self._way = way

    def open(self) -> None:
        self._catalog.create_database("db", True)
        keyed: dict[str, Any] = {"primary_keys": ["tag"], "options": {"bucket": "1"}}
        schema = self._library.Schema.from_pyarrow_schema(SCHEMA, **(keyed if self._way == "primary-key" else {}))
        self._catalog.create_table("db.rows", schema, True)
        self._handle = self._catalog.get_table("db.rows")

    def append(self, rows: pyarrow.Table, number: int | None) -> None:
        builder = self._handle.new_stream_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(rows)
        identifier = 0 if number is None else number
        properties = None if number is None else {self._name: str(number)}
        commit.commit(write.prepare_commit(identifier), identifier, snapshot_properties=properties)
        write.close()
        commit.close()

    def last(self) -> int | None:
        snapshots = self._handle.snapshot_manager().list_snapshots()
        numbers = [(one.properties or {}).get(self._name) for one in snapshots]
        return max((int(one) for one in numbers if one is not None), default=None)


TABLES: dict[str, type[Delta] | type[Iceberg] | type[Paimon]]
TABLES = {"deltalake": Delta, "pyiceberg": Iceberg, "pypaimon": Paimon}


def done_in(table: Table) -> int:
    """The number of the first file that the table does not know as done."""
    last = table.last()
    return 0 if last is None else last + 1


def rows_of(path: Path) -> pyarrow.Table:
    return pyarrow.json.read_json(path).select(SCHEMA.names).cast(SCHEMA)


# -- a worker alone --------------------------------------------------------------------


def noted(note: Path) -> int:
    """How many files are done, as far as the worker has noted it."""
    return int(note.read_text()) if note.exists() else 0


def replace(path: Path, text: str) -> None:
    """Write a file; a kill leaves the old text or the new one."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text)
    os.replace(new, path)


def alone(table: Table, records: Path, note: Path, *, asks: bool, notes_after_s: float) -> None:
    """Append all files; `asks` the table what is done."""
    table.open()
    done = max(noted(note), done_in(table)) if asks else noted(note)
    if done:
        print(f"continuing behind {done} files", flush=True)
    for number, path in enumerate(sorted(records.glob("*.jsonl"))):
        if number < done:
            continue
        table.append(rows_of(path), number if asks else None)
        print(f"file {number} is committed", flush=True)
        time.sleep(notes_after_s)
        replace(note, str(number + 1))


# -- workers beside each other ---------------------------------------------------------


class Lease:
    """A file with the name of the worker whose turn it is.  As long as this worker lives, it renews the lease."""

    def __init__(self, path: Path, holder: str) -> None:
        self._path = path
        self._holder = holder
        threading.Thread(target=self._renew, daemon=True).start()

    def is_mine(self) -> bool:
        return self._path.exists() and self._path.read_text() == self._holder

    def take(self) -> None:
        """Wait until nobody renews the lease, and take it.  The first worker takes the first lease."""
        if self._holder != "first" or self._path.exists():
            print("standing by", flush=True)
            while not self._path.exists() or time.time() - self._path.stat().st_mtime < LEASE_S:
                time.sleep(POLL_S)
        replace(self._path, self._holder)

    def _renew(self) -> None:
        while True:
            if self.is_mine():
                os.utime(self._path)
            time.sleep(RENEWED_EVERY_S)


def in_turns(table: Table, records: Path, lease: Lease, every_s: float) -> None:
    """Append the files while the lease is this worker's.

    A worker that is stopped for a while behind its look at the lease does not know that it has lost its turn.
    """
    table.open()  # a table that is not there is made before anybody needs it
    while True:
        lease.take()
        table.open()
        done = done_in(table)
        print(f"taking over behind {done} files", flush=True)
        while lease.is_mine():
            done = appended(table, records, done, done, every_s)
        print("another worker has taken over", flush=True)


def beside(table: Table, records: Path, state: Path, writer: int, every_s: float) -> None:
    """Append each file of a writer's own part.  The writers begin together."""
    table.open()
    done = done_in(table)
    print(f"continuing behind {done} files" if done else "beginning", flush=True)
    (state / f"writer-{writer}").touch()
    while not all((state / f"writer-{number}").exists() for number in range(WRITERS)):
        time.sleep(POLL_S)
    while True:
        number = done + (writer - done) % WRITERS
        done = appended(table, records, number, done, every_s)


def appended(table: Table, records: Path, number: int, done: int, every_s: float) -> int:
    """Append a file once it is there; how many files are done then, of those that are this worker's."""
    paths = sorted(records.glob("*.jsonl"))
    if number >= len(paths):
        time.sleep(POLL_S)
        return done
    print(f"working on file {number}", flush=True)
    rows = rows_of(paths[number])
    time.sleep(every_s - time.time() % every_s)
    try:
        table.append(rows, number)
    except Refused as error:
        print(f"file {number} is refused: {error}", flush=True)
        table.open()
        return done_in(table)
    print(f"file {number} is committed", flush=True)
    return number + 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=TABLES)
    parser.add_argument("way")
    for folder in ("records", "output", "state"):
        parser.add_argument(folder, type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--lease", metavar="HOLDER", help="works while it has the lease; the first worker takes it")
    parser.add_argument("--writer", type=int, help="0 or 1: appends the files with even, or with odd numbers")
    parser.add_argument("--name", default="worker", help="what the numbers of files are committed under")
    given = parser.parse_args()
    table: Table = TABLES[given.library](given.output, given.way, given.name)
    if given.lease:
        in_turns(table, given.records, Lease(given.state / "lease", given.lease), given.seconds)
    elif given.writer is not None:
        beside(table, given.records, given.state, given.writer, given.seconds)
    else:
        asks = given.way == "transactions"
        alone(table, given.records, given.state / "note", asks=asks, notes_after_s=given.seconds)


if __name__ == "__main__":
    main()
