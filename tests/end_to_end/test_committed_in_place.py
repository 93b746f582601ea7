"""What the engine's sinks committed, read where it lies by a program that knows no store: PySpark reads PostgreSQL,
Python's sqlite3 the view in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from cutproof.properties.checking.sources.addresses import PostgresTable
from cutproof.properties.spark.checking.sources import read_table
from cutproof.reference_impl.core.vocabulary.transactions import AbortTransaction, Commit, Row
from end_to_end.command_line import Command, only_line, result
from unit.processes.stores import Processes, RunningServer, done

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("key", "value", "tag", "tag2")
SECRET = "hush-hush"
COMMITTED: tuple[Row, ...] = ((1, 10, 100, 0), (None, 20, 200, 0), (1, 10, 100, 0), (2**63 - 1, -(2**63), 3, 4))
"""Of three transactions, some rows alike."""
WITHHELD: tuple[Row, ...] = ((7, 70, 700, 7),)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    running = RunningServer()
    yield running
    running.close()


@pytest.fixture(params=["database", "sqlite"])
def store(request: pytest.FixtureRequest, server: RunningServer, tmp_path: Path) -> Iterator[Processes]:
    yield from _store(request.param, server, tmp_path)


@pytest.fixture
def database(server: RunningServer, tmp_path: Path) -> Iterator[Processes]:
    yield from _store("database", server, tmp_path)


def _store(kind: str, server: RunningServer, folder: Path) -> Iterator[Processes]:
    processes = Processes(kind, folder / "store", server.dsn)
    yield processes
    processes.close()


def _rows(spark: SparkSession, store: Processes) -> Counter[tuple[int | None, ...]]:
    if store.kind == "database":
        table = PostgresTable.at(store.dsn, schema=store.run, table="output", columns=COLUMNS)
        return Counter(tuple(row) for row in read_table(spark, table).collect())
    with closing(sqlite3.connect(f"{(store.folder / 'store.sqlite').as_uri()}?mode=ro", uri=True)) as link:
        return Counter(link.execute(f"SELECT {', '.join(COLUMNS)} FROM visible").fetchall())


def _write(store: Processes) -> None:
    """Transactions of every fate: `COMMITTED` of those that were committed, `WITHHELD` of each other."""
    ask = store.process()
    ask.sealed("one/1", *COMMITTED[:2], checkpoint=1)
    done(ask(Commit, "one/1"))
    ask.sealed("one/2", *COMMITTED[2:3], checkpoint=2)
    done(ask(Commit, "one/2"))
    ask.written("at once", *COMMITTED[3:], writer="sink-1")
    done(ask(Commit, "at once", writer="sink-1"))
    ask.sealed("prepared only", *WITHHELD, checkpoint=3)
    ask.sealed("prepared, aborted", *WITHHELD, checkpoint=4)
    done(ask(AbortTransaction, "prepared, aborted"))
    ask.written("open, aborted", *WITHHELD)
    done(ask(AbortTransaction, "open, aborted"))
    ask.written("open", *WITHHELD)


def test_exactly_the_committed_rows_are_there(spark: SparkSession, store: Processes) -> None:
    assert _rows(spark, store) == Counter()
    _write(store)
    assert {(name, state) for name, state, _ in store.unfinished()} == {("prepared only", "prepared"), ("open", "open")}
    assert _rows(spark, store) == Counter(COMMITTED)


def test_a_prepared_transaction_comes_in_whole_with_its_commit_once(spark: SparkSession, store: Processes) -> None:
    _write(store)
    for _ in range(2):
        done(store.process()(Commit, "prepared only"))
        assert _rows(spark, store) == Counter(COMMITTED + WITHHELD)


def test_what_was_prepared_survives_a_killed_server_unseen(
    spark: SparkSession, database: Processes, server: RunningServer
) -> None:
    _write(database)
    server.stop()
    server.start()
    assert _rows(spark, database) == Counter(COMMITTED)


def test_check_judges_a_table_in_place(
    command_here: Command, database: Processes, server: RunningServer, tmp_path: Path
) -> None:
    _write(database)
    expected = [dict(zip(COLUMNS, row, strict=True)) for row in COMMITTED]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in expected))
    url = f"postgresql://cutproof:{SECRET}@127.0.0.1:{server.port}/postgres?table={database.run}.output"
    words = (
        "check",
        "--expected",
        tmp_path / "rows.jsonl",
        "--actual",
        url,
        "--ignore",
        "serial,txn,name",
        "--key",
        "tag",
    )
    held = command_here(*words, "--json")
    assert held.returncode == 0, held.stderr
    assert (result(held)["expected_rows"], result(held)["actual_rows"]) == (4, 4)
    with psycopg.connect(server.dsn, autocommit=True) as link:
        link.execute(f"UPDATE {database.run}.output SET value = 21 WHERE tag = 200".encode())
    altered = command_here(*words)
    assert altered.returncode == 1, altered.stderr
    assert "20 -> 21" in altered.stdout
    for done_with in (held, altered):
        assert SECRET not in done_with.stdout + done_with.stderr


def test_what_is_wrong_with_a_tables_url_is_one_line(
    command_here: Command, server: RunningServer, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "junk.parquet").write_bytes(b"junk" * 100)
    there = f"postgresql://cutproof:{SECRET}@127.0.0.1:{server.port}/postgres"
    for actual, code, reason in (
        (f"{there}?table=none.such", 2, "there is no table none.such"),
        (there, 2, "has one table behind the ?"),
        (f"mysql://me:{SECRET}@host/db?table=t", 2, "cannot be read from mysql://"),
        (f"postgresql://me:{SECRET}@127.0.0.1:1/db?table=t", 4, "PostgreSQL on 127.0.0.1:1 does not answer"),
        (tmp_path / "junk.parquet", 2, "junk.parquet cannot be read as Parquet"),
    ):
        done_with = command_here("check", "--expected", tmp_path / "rows.jsonl", "--actual", actual)
        assert done_with.returncode == code, done_with.stderr
        assert reason in only_line(done_with)
        assert SECRET not in done_with.stderr
