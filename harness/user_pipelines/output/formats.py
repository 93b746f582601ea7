"""The rows that a pipeline has committed, read as its users would read them.

Files that are being written may be read: a last line that is not whole yet is no row.  Without a
newline a line of JSON is whole if it is an object, and one of CSV in the end alone: 1,2 may become
1,23.  A folder of Spark that has a `_spark_metadata` log holds the files that the log names, and no others.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ....properties.model.workload import Row
from ...subject.port import SubjectFailed
from ..description import ROW, Read
from ..entries import EntryFailed, Problem
from ..needs.extras import module
from ..places import expanded, filled, filled_pattern
from .topic import TopicReader

if TYPE_CHECKING:
    from .postgres import Postgres

Found = list[dict[str, Any]]
"""the rows of a query"""
Part = TypeVar("Part")
READ, COMMITS = "read.query", "commits.query"
WRITER_WAS_KILLED = ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY", "SQLITE_READONLY_CANTINIT")
"""what SQLite says to a reader while a killed process's transaction has not been undone, which takes a writer"""
METADATA = "SELECT metadata_location FROM iceberg_tables"
"""asks the catalog that pyiceberg (`SqlCatalog`) and Iceberg's JDBC catalog keep for the tables' newest metadata"""
LINE = 200
"""how many characters of a row a message has"""


class NotThere(EntryFailed):
    """There is no such database or table, perhaps because the pipeline has not made it yet."""


class NotReadable(EntryFailed):
    """The output cannot be read just now: a file is being replaced, or a table is locked."""


class NoRow(EntryFailed):
    """A part of the output that has rows' place and is none: two lines that run into each other, half a file."""


class Output:
    """Where a pipeline's output is, in one run."""

    def __init__(
        self, read: Read, places: Mapping[str, str], printed_by: Callable[[], str] = str, commits: str = ""
    ) -> None:
        """`printed_by` runs the command that prints the rows; `commits` is the query of the marker of commits."""
        self._read = read
        self._commits = commits
        self.marker = 0
        """the marker of commits in the snapshot of the last read: of how many records the rows may be"""
        self._places = places
        self._printed_by = printed_by
        self._topic: TopicReader | None = None
        self._at_rest = False
        self._broken: list[Problem] | None = None
        self.absent: Problem | None = Problem(None, "it was never read")
        """why the last read found nothing to read: no file, no table; None if it found something"""
        self._columns = [(name, read.columns.get(name, name)) for name in ROW]

    def rows(self, *, at_rest: bool = False, broken: list[Problem] | None = None) -> list[Row]:
        """The committed rows; `at_rest`: nobody writes any more.

        What is no row is added to `broken`; without that list it raises NoRow.
        Raises SubjectFailed, in one line, for a row that has other columns or other values, and NotReadable if the
        output cannot be read just now.
        """
        self._at_rest, self._broken = at_rest, broken
        found: dict[str, Callable[[], Iterable[dict[str, Any]]]]
        found = {"json-lines": self._json_lines, "csv": self._csv, "parquet": self._parquet}
        found |= {"sqlite": self._sqlite, "postgres": self._postgres, "delta": self._delta}
        found |= {"iceberg": self._iceberg, "kafka": self._kafka, "command": self._command}
        try:
            return [row for one in found[self._read.format]() for row in self._or_broken(partial(self._row, one))]
        except OSError as error:  # a file has gone since it was listed
            raise NotReadable("read.path", error.strerror or error) from error

    def close(self) -> None:
        """Close what a reader keeps open."""
        if self._topic is not None:
            self._topic.close()

    def _or_broken(self, read: Callable[[], Part]) -> list[Part]:
        """What is read; nothing if that is no row."""
        try:
            return [read()]
        except NoRow as error:
            if self._broken is None:
                raise
            self._broken.append(error.problem)
            return []

    def _row(self, found: Mapping[str, Any]) -> Row:
        values: list[int | None] = []
        for name, column in self._columns:
            if not column or (column not in found and name == "tag2"):
                values.append(0)
                continue
            if column not in found:
                names = f'if its rows have none, say read.columns.{name} = "", or else the name that it has there'
                row = str(dict(found))[:LINE]
                raise EntryFailed("read.columns", f"the output has no column {column!r} ({names}): {row}")
            values.append(_whole(found[column], column))
        key, value, tag, tag2 = values
        return (key, value, tag or 0, tag2 or 0)

    def _files(self) -> list[Path]:
        found = sorted(Path(one) for one in glob.glob(filled_pattern(self._read.path, self._places), recursive=True))
        self.absent = None if found else Problem("read.path", f"no file matches {self._read.path}")
        return found

    def _json_lines(self) -> Iterator[dict[str, Any]]:
        for path in self._committed(self._files()):
            yield from self._objects(
                path.read_text(encoding="utf-8", errors="replace"), None, f"{path.name} has a line"
            )

    def _csv(self) -> Iterator[dict[str, Any]]:
        for path in self._committed(self._files()):
            lines, last = _lines(path.read_text(encoding="utf-8", errors="replace"))
            yield from csv.DictReader(lines)
            if lines and last and self._at_rest:
                yield from (row for row in csv.DictReader([lines[0], last]) if None not in row.values())

    def _parquet(self) -> Iterator[dict[str, Any]]:
        for path in self._committed(self._files()):
            yield from (row for rows in self._or_broken(partial(self._rows_of_parquet, path)) for row in rows)

    def _rows_of_parquet(self, path: Path) -> list[dict[str, Any]]:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowInvalid

        try:
            rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        except ArrowInvalid as error:
            kind = NoRow if self._at_rest else NotReadable
            raise kind(None, f"{path.name} is no whole Parquet file: {' '.join(str(error).split())}") from error
        return rows

    def _iceberg(self) -> Iterable[dict[str, Any]]:
        """The rows of the newest snapshot of a table in a folder of its own."""
        table = module("pyiceberg.table")
        folder = Path(filled(self._read.path, self._places))
        metadata = self._in_catalog(folder) if self._read.catalog else _newest_metadata(folder)
        self.absent = None if metadata else Problem("read.path", f"there is no Iceberg table in {self._read.path}")
        if not metadata:
            return []
        try:
            rows: list[dict[str, Any]] = table.StaticTable.from_metadata(metadata).scan().to_arrow().to_pylist()
        except (ValueError, OSError) as error:  # of pyiceberg and pyarrow: a file is missing or not whole
            raise NotReadable(None, f"{folder.name} cannot be read: {' '.join(str(error).split())}") from error
        return rows

    def _in_catalog(self, folder: Path) -> str:
        """Where the metadata of the table is that a catalog in SQLite has in a folder; empty if it has none.

        Metadata that is newer, and that no catalog names, is not committed.
        """
        try:
            rows = query_sqlite(Path(filled(self._read.catalog, self._places)), METADATA)
        except NotThere:
            return ""
        except NotReadable as error:
            raise NotReadable("read.catalog", error) from None
        except SubjectFailed as error:
            raise EntryFailed("read.catalog", error) from None
        known = (str(row["metadata_location"] or "") for row in rows)
        return next((one for one in known if one.removeprefix("file://").startswith(f"{folder}/")), "")

    def _committed(self, files: Sequence[Path]) -> Iterable[Path]:
        """The files that a log of Spark names, in a folder that has one; a file without rows may be incomplete."""
        logs = {path.parent: _logged(path.parent) for path in files}
        for path in files:
            named = logs[path.parent]
            if path.stat().st_size and (named is None or path.name in named):
                yield path

    def _kafka(self) -> Iterator[dict[str, Any]]:
        topic = filled(self._read.topic, self._places)
        if self._topic is None:
            self._topic = TopicReader(filled(self._read.servers, self._places), topic)
        self.absent = None
        try:
            for value in self._topic.values():
                text = (value or b"").decode(errors="replace")
                yield from self._or_broken(partial(_json_object, text, None, f"the topic {topic} has a value"))
        except LookupError as error:
            self.absent = Problem("read.topic", str(error))
        except OSError as error:
            raise NotReadable("read.servers", error.strerror or error) from error

    def _objects(self, text: str, entry: str | None, what: str) -> Iterator[dict[str, Any]]:
        """The JSON objects of a text's lines; `what` says what a line that is none is part of."""
        lines, last = _lines(text)
        for line in lines:
            yield from self._or_broken(partial(_json_object, line, entry, what))
        with contextlib.suppress(NoRow):  # a part of a line is no object
            yield from [_json_object(last, entry, what)] if last else []

    def _command(self) -> Iterable[dict[str, Any]]:
        self.absent = None
        return self._objects(self._printed_by(), "read.command", "it has printed a line")

    def _delta(self) -> list[dict[str, Any]]:
        path = filled(self._read.path, self._places)
        deltalake = module("deltalake")
        self.absent = None
        try:
            rows: list[dict[str, Any]] = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
        except deltalake.exceptions.TableNotFoundError:
            self.absent = Problem("read.path", f"there is no Delta table {self._read.path}")
            return []
        except deltalake.exceptions.DeltaError as error:  # a file that the reader has listed was removed, say
            raise NotReadable("read.path", f"Delta says: {' '.join(str(error).split())}") from error
        return rows

    def _sqlite(self) -> list[dict[str, Any]]:
        path = Path(filled(self._read.path, self._places))
        return self._queried(lambda texts: snapshot_of_sqlite(path, texts))

    def _postgres(self) -> list[dict[str, Any]]:
        from .postgres import Postgres

        try:
            server = Postgres(filled(self._read.dsn, self._places))
        except SubjectFailed as error:
            raise EntryFailed("read.dsn", error) from None
        return self._queried(lambda texts: snapshot_of_postgres(server, texts))

    def _queried(self, ask: Callable[[Mapping[str | None, str]], list[Found]]) -> Found:
        """The rows; the marker of commits is of the same snapshot."""
        self.absent, self.marker = None, 0
        texts: dict[str | None, str] = {READ: self._read.query}
        if self._commits:
            texts[COMMITS] = self._commits
        try:
            rows, *markers = ask({where: filled(text, self._places) for where, text in texts.items()})
        except NotThere as error:
            self.absent = error.problem
            return []
        if markers:
            self.marker = _marker(markers[0])
        return rows


def is_postgres(known: str) -> bool:
    """Whether this is the URL of a PostgreSQL, and not a file of SQLite."""
    return known.startswith(("postgresql://", "postgres://"))


def query(database: str, text: str) -> Found:
    """The rows of a query to a PostgreSQL by its URL, or to a file of SQLite; either may have variables."""
    known = expanded(database)
    if not is_postgres(known):
        return query_sqlite(Path(known), text)
    from .postgres import Postgres

    return query_postgres(Postgres(database), text)


def query_postgres(server: Postgres, text: str) -> Found:
    """The rows of a query.  Raises NotThere if its table does not exist, NotReadable if the server cannot be reached or
    does not answer in time, SubjectFailed for any other error."""
    return snapshot_of_postgres(server, {None: text})[0]


def query_sqlite(path: Path, text: str) -> Found:
    """The rows of a query.  Raises NotThere if its database or table does not exist, NotReadable if another process
    keeps the database locked, SubjectFailed for any other error."""
    return snapshot_of_sqlite(path, {None: text})[0]


def snapshot_of_postgres(server: Postgres, texts: Mapping[str | None, str]) -> list[Found]:
    """The rows of queries to one snapshot, by the entry that an error is about.

    Raises as `query_postgres` does; a query behind the first whose table does not exist has no rows.
    """
    import psycopg
    from psycopg.rows import dict_row

    found: list[Found] = []
    try:
        with server.connect() as session:
            if len(texts) == 1:
                session.autocommit = True
            else:
                session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            for text in texts.values():
                found.append(list(session.cursor(row_factory=dict_row).execute(text.encode())))
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        if not found:
            raise NotThere(_asked(texts, found), server.said(error).partition(" LINE ")[0]) from None
        found.append([])
    except psycopg.OperationalError as error:
        raise NotReadable(_asked(texts, found), server.said(error)) from None
    except psycopg.Error as error:
        raise EntryFailed(_asked(texts, found), server.said(error)) from None
    return found


def snapshot_of_sqlite(path: Path, texts: Mapping[str | None, str]) -> list[Found]:
    """The rows of queries to one snapshot, by the entry that an error is about.

    Raises as `query_sqlite` does; a query behind the first whose table does not exist has no rows.
    """
    found: list[Found] = []
    if not path.exists():
        raise NotThere(_asked(texts, found), f"there is no file {path.name}")
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.2, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        if len(texts) > 1:
            connection.execute("BEGIN")
        for text in texts.values():
            found.append([dict(row) for row in connection.execute(text)])
    except sqlite3.OperationalError as error:
        kind = error.sqlite_errorname
        # A missing table has no code of its own, it is a SQLITE_ERROR as a text that is no SQL is: only words tell.
        if kind.startswith("SQLITE_CANTOPEN") or (kind == "SQLITE_ERROR" and "no such table" in str(error)):
            if not found:
                raise NotThere(_asked(texts, found), f"SQLite says: {error}") from error
            return [*found, []]
        if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise NotReadable(_asked(texts, found), f"the database {path.name} is locked") from error
        if kind in WRITER_WAS_KILLED:
            undone = f"whoever opens {path.name} next undoes an unfinished transaction in it"
            raise NotReadable(_asked(texts, found), undone) from error
        failing = [*texts.values()][len(found)]
        raise EntryFailed(_asked(texts, found), f"the query {failing!r} fails: {error}") from error
    except sqlite3.Error as error:
        raise EntryFailed(_asked(texts, found), f"{path.name} cannot be read: {error}") from error
    finally:
        connection.close()
    return found


def _asked(texts: Mapping[str | None, str], found: Sequence[Found]) -> str | None:
    """The entry with the query that was asked last; `found` are the answers to those before it.  None: all were
    answered."""
    return [*texts, None][len(found)]


def _marker(rows: Found) -> int:
    """How many records a marker of commits says; 0 if there is none yet."""
    value = next(iter(rows[0].values()), None) if rows else None
    with contextlib.suppress(SubjectFailed):
        number = _whole(value, COMMITS) or 0
        if number >= 0:
            return number
    raise EntryFailed(COMMITS, f"{str(value)[:LINE]!r} is no number of records")


def _newest_metadata(folder: Path) -> str:
    """The newest metadata of a table in a folder, as a Hadoop catalog numbers it; empty if there is none."""
    versions = sorted((folder / "metadata").glob("v*.metadata.json"), key=_version)
    return str(versions[-1]) if versions else ""


def _version(metadata: Path) -> int:
    """The number in the name of a table's metadata, such as v12.metadata.json."""
    number = metadata.name[1:].partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _json_object(text: str, entry: str | None, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise NoRow(entry, f"{what} that is not JSON: {text[:LINE]}") from None
    if not isinstance(found, dict):
        raise NoRow(entry, f"{what} that is no JSON object: {text[:LINE]}")
    return found


def _lines(text: str) -> tuple[list[str], str]:
    """The lines of a text that end with a newline, and what is behind the last one."""
    *lines, last = text.split("\n")
    return [line for line in lines if line.strip()], last.strip()


def _logged(folder: Path) -> frozenset[str] | None:
    """The names of the files that Spark's log of a folder has committed; None if the folder has no such log."""
    log = folder / "_spark_metadata"
    if not log.is_dir():
        return None
    names: set[str] = set()
    for batch in sorted(log.iterdir()):
        if batch.name.startswith("."):
            continue
        for line in batch.read_text(encoding="utf-8").splitlines()[1:]:
            entry = json.loads(line)
            if entry.get("action") == "add":
                names.add(str(entry["path"]).rpartition("/")[2])
            else:
                names.discard(str(entry["path"]).rpartition("/")[2])
    return frozenset(names)


def _whole(value: Any, column: str) -> int | None:
    """A value as a whole number."""
    if value is None or value == "":
        return None
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        kind = EntryFailed if _is_number(value) else NoRow  # 2.5 is a query's fault, 2{"key" that of a torn line
        raise kind(None, f"the column {column!r} of the output is no whole number: {str(value)[:LINE]!r}") from None
    if not isinstance(value, str) and whole != value:
        raise SubjectFailed(f"the column {column!r} of the output is no whole number: {value!r}")
    return whole


def _is_number(value: Any) -> bool:
    """Whether a value is a number of any kind, or the text of one."""
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
