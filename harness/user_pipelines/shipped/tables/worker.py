"""A worker appends records from JSON files to a table, a file in a commit, and notes how many files it has done.

Arguments: the library (`deltalake`, `pyiceberg` or `pypaimon`), the way, the folder of the input, that of
the output, that of the worker's state, and how many seconds after a commit the worker notes it.  If the
worker is killed between a commit and its note, the next one hands in the rows of this file once more.
No library promises that the table then has them once: it does what it is asked to do.  So that is the
worker's duty, and there are two ways:

- `appends`: the worker trusts its note.
- `transactions`: the worker hands in the number of the file with the commit, and asks the table for the
  last one before it goes on.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import pyarrow.json

WORKER = "worker"
"""who has handed in a number"""


class Table(Protocol):
    """A table that is there, perhaps without any rows."""

    def append(self, rows: Any, number: int | None) -> None:
        """Commit rows, and a number with them."""

    def last(self) -> int | None:
        """The last number that was committed."""


class Delta:
    """delta-rs.  A commit takes a version of an application, and the table tells the last one that it has
    (`transaction_version`); what follows from it is up to the application."""

    def __init__(self, output: Path) -> None:
        import deltalake

        self._library = deltalake
        self._path = str(output / "rows")

    def append(self, rows: Any, number: int | None) -> None:
        known = None
        if number is not None:
            transactions = [self._library.Transaction(WORKER, number)]
            known = self._library.CommitProperties(app_transactions=transactions)
        self._library.write_deltalake(self._path, rows, mode="append", commit_properties=known)

    def last(self) -> int | None:
        if not self._library.DeltaTable.is_deltatable(self._path):
            return None
        version: int | None = self._library.DeltaTable(self._path).transaction_version(WORKER)
        return version


class Iceberg:
    """pyiceberg, with a catalog in SQLite.  A snapshot takes properties into its summary, and the table lists its
    snapshots; that is how Iceberg's sink for Flink knows what it has committed."""

    def __init__(self, output: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        self._catalog = SqlCatalog("local", uri=f"sqlite:///{output / 'catalog.db'}", warehouse=output.as_uri())
        self._catalog.create_namespace_if_not_exists("db")

    def append(self, rows: Any, number: int | None) -> None:
        table = self._catalog.create_table_if_not_exists("db.rows", schema=rows.schema)
        table.append(rows, snapshot_properties={} if number is None else {WORKER: str(number)})

    def last(self) -> int | None:
        if not self._catalog.table_exists("db.rows"):
            return None
        summaries = [one.summary for one in self._catalog.load_table("db.rows").snapshots()]
        numbers = [summary[WORKER] for summary in summaries if summary is not None]
        return max((int(one) for one in numbers if one is not None), default=None)


class Paimon:
    """pypaimon.  A snapshot takes properties, and the table lists its snapshots.  (What Java's `filterAndCommit` leaves
    out, a commit of the same user with the same identifier, pypaimon commits again.)"""

    def __init__(self, output: Path) -> None:
        import pypaimon

        self._library = pypaimon
        self._catalog = pypaimon.CatalogFactory.create({"warehouse": str(output)})
        self._catalog.create_database("db", True)

    def append(self, rows: Any, number: int | None) -> None:
        self._catalog.create_table("db.rows", self._library.Schema.from_pyarrow_schema(rows.schema), True)
        builder = self._catalog.get_table("db.rows").new_stream_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(rows)
        identifier = 0 if number is None else number
        properties = None if number is None else {WORKER: str(number)}
        commit.commit(write.prepare_commit(identifier), identifier, snapshot_properties=properties)
        write.close()
        commit.close()

    def last(self) -> int | None:
        if "rows" not in self._catalog.list_tables("db"):
            return None
        snapshots = self._catalog.get_table("db.rows").snapshot_manager().list_snapshots()
        numbers = [(one.properties or {}).get(WORKER) for one in snapshots]
        return max((int(one) for one in numbers if one is not None), default=None)


TABLES: dict[str, type[Delta] | type[Iceberg] | type[Paimon]]
TABLES = {"deltalake": Delta, "pyiceberg": Iceberg, "pypaimon": Paimon}


def noted(note: Path) -> int:
    """How many files are done, as far as the worker has noted it."""
    return int(note.read_text()) if note.exists() else 0


def take_note(note: Path, done: int) -> None:
    """Note how many files are done; a kill leaves the old note or the new one."""
    new = note.with_name("note.new")
    new.write_text(str(done))
    os.replace(new, note)


def main(library: str, way: str, records: str, output: str, state: str, notes_after_s: str) -> None:
    table: Table = TABLES[library](Path(output))
    note = Path(state) / "note"
    done = noted(note)
    if way == "transactions":
        last = table.last()
        done = max(done, 0 if last is None else last + 1)
    if done:
        print(f"continuing behind {done} files", flush=True)
    for number, path in enumerate(sorted(Path(records).glob("*.jsonl"))):
        if number < done:
            continue
        table.append(pyarrow.json.read_json(path), number if way == "transactions" else None)
        print(f"file {number} is committed", flush=True)
        time.sleep(float(notes_after_s))
        take_note(note, number + 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
