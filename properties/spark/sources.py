"""Where committed rows lie, and PySpark reading them there by itself: tables of PostgreSQL, folders of JSON lines.

The engine under test has no part in it: no client, no file handle, no cache of
it is asked.  A table is read once, at one moment (a snapshot that the server
keeps while the slices are read), and is kept by Spark from then on, so that a
pipeline that goes on writing does not move the rows under a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from .errors import CheckInputError, TableUnreachable
from .postgres import (
    FORMAT,
    KINDS,
    LARGEST_PRECISION,
    PLAIN_DIGITS,
    Link,
    Plan,
    Source,
    TableColumn,
    connect,
    full_conninfo,
    told,
)

SCHEMES = ("postgresql", "postgres")
FORM = "postgresql://user@host:port/database?table=schema.table"
PARAMETERS = ("table", "sslmode", "sslrootcert")
"""What may stand behind the question mark."""
PAGES_A_SLICE = 4_096
"""32 MB of a table as PostgreSQL is usually built."""
MOST_SLICES = 64

READABLE = {"r": True, "m": True, "p": False}
"""Kinds of relations that can be read: whether their pages can be counted.  A view is none of
them: reading one would run what it is made of."""

REFUSALS = ("does not exist", "password authentication failed", "no password supplied", "pg_hba.conf")
"""How a server that is there says that a name or a password is wrong: libpq hands out the text only."""


class PostgresTable(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A table on a server.  It shows itself without the password.

    `parameters` are libpq's; `columns` are those to be read, in this order (none: all there are);
    without a `schema` the server's search path decides.
    """

    parameters: dict[str, str]
    table: str
    schema: str = ""
    columns: tuple[str, ...] = ()

    @staticmethod
    def of(url: str) -> PostgresTable:
        """From `FORM`, with a password too; raises CheckInputError, which never shows it."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise CheckInputError(_MALFORMED) from None
        database = parts.path.removeprefix("/")
        if parts.fragment or "/" in database or "@" in database or "?" in parts.query:
            raise CheckInputError(_MALFORMED)
        if not (parts.hostname and database):
            raise CheckInputError(f"a table's URL names its server and its database: {FORM}")
        more = _parameters(parts)
        schema, dot, table = more.pop("table").rpartition(".")
        if not table or (dot and not schema):
            raise CheckInputError(f"a table's URL ends with the table's name: {FORM}")
        named = {"host": parts.hostname, "port": str(port or ""), "dbname": unquote(database)}
        named |= {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
        parameters = {name: value for name, value in named.items() if value} | more
        return PostgresTable(parameters=parameters, schema=schema, table=table)

    @staticmethod
    def at(dsn: str, *, schema: str, table: str, columns: tuple[str, ...] = ()) -> PostgresTable:
        """From a DSN of libpq's; raises CheckInputError, which never shows it."""
        try:
            found = conninfo_to_dict(dsn)
        except psycopg.Error:
            raise CheckInputError("that is no DSN of PostgreSQL") from None
        parameters = {name: str(value) for name, value in found.items() if value is not None}
        return PostgresTable(parameters=parameters, schema=schema, table=table, columns=columns)

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}" if self.schema else self.table

    @property
    def server(self) -> str:
        return ":".join(filter(None, (self.parameters.get("host", "this machine"), self.parameters.get("port"))))

    def __str__(self) -> str:
        return f"{self.name} on {self.server}"

    __repr__ = __str__


_MALFORMED = f"that is no URL of a table (in a password, / ? # and @ are written %2F %3F %23 %40): {FORM}"


class CommittedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """A folder into which finished files of JSON lines are moved; `columns` are names with Spark's
    types (`bigint`), in order."""

    folder: Path
    columns: dict[str, str]
    names: str = "*.jsonl"


def is_url(text: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) is not None


def table_of(url: str) -> PostgresTable:
    """The table that a URL names; raises CheckInputError on other kinds of URLs."""
    scheme = url.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise CheckInputError(f"a table cannot be read from {scheme}://; it can be a file, a folder or {FORM}")
    return PostgresTable.of(url)


def committed_rows(session: SparkSession, where: PostgresTable | CommittedFiles) -> DataFrame:
    """The rows that are committed there now; raises CheckInputError, TableUnreachable.

    A SELECT sees nothing of transactions that are open, prepared or rolled back, and a folder
    for committed files holds no others.
    """
    if isinstance(where, PostgresTable):
        return read_table(session, where)
    if not where.folder.is_dir():
        raise CheckInputError(f"there is no folder {where.folder}")
    schema = T.StructType([T.StructField(name, T.DataType.fromDDL(kind)) for name, kind in where.columns.items()])
    return session.read.json(str(where.folder), schema=schema, mode="FAILFAST", pathGlobFilter=where.names)


def read_table(session: SparkSession, where: PostgresTable) -> DataFrame:
    """The table as it is now, read in slices; raises CheckInputError, TableUnreachable."""
    session.dataSource.register(Source)
    with _opened(where) as link:
        plan = _plan(link, where)
        schema = T.StructType([T.StructField(column.name, column.spark) for column in plan.columns])
        frame = session.read.format(FORMAT).schema(schema).options(
            conninfo=full_conninfo(where.parameters),
            password=where.parameters.get("password", ""),
            plan=msgspec.json.encode(plan).decode(),
        )  # fmt: skip
        try:
            return frame.load().localCheckpoint(eager=True)
        except (PySparkException, Py4JJavaError) as error:
            raise _from_worker(error) or error from None


def table_bytes(where: PostgresTable) -> int:
    """How large the table is on the server's disk; raises CheckInputError, TableUnreachable."""
    with _opened(where) as link:
        row = link.execute("SELECT pg_table_size(%s::oid)", (_found(link, where).oid,)).fetchone()
    return int(row[0]) if row and row[0] is not None else 0


def _parameters(parts: SplitResult) -> dict[str, str]:
    try:
        found = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else []
    except ValueError:
        raise CheckInputError(_MALFORMED) from None
    names = [name for name, _ in found]
    if names.count("table") != 1 or len({*names}) < len(names) or any(name not in PARAMETERS for name in names):
        raise CheckInputError(f"a table's URL has one table behind the ?, and may have sslmode and sslrootcert: {FORM}")
    return dict(found)


@contextmanager
def _opened(where: PostgresTable) -> Iterator[Link]:
    try:
        link = connect(full_conninfo(where.parameters), where.parameters.get("password", ""))
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        if isinstance(error, psycopg.ProgrammingError) or any(words in text for words in REFUSALS):
            raise CheckInputError(f"{where.server} refuses: {text}") from None
        raise TableUnreachable(f"PostgreSQL on {where.server} does not answer: {text}") from None
    try:
        yield link
    except psycopg.Error as error:
        raise told(error, where.name) from None
    finally:
        link.close()


class _Found(NamedTuple):
    oid: int
    schema: str
    table: str
    kind: str


def _found(link: Link, where: PostgresTable) -> _Found:
    """The table in the server's catalogue; raises CheckInputError when there is none."""
    row = link.execute(
        "SELECT c.oid, n.nspname, c.relname, c.relkind::text"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relname = %s AND CASE WHEN %s = '' THEN pg_table_is_visible(c.oid) ELSE n.nspname = %s END",
        (where.table, where.schema, where.schema),
    ).fetchone()
    if row is None:
        raise CheckInputError(f"there is no table {where.name} in the database on {where.server}")
    found = _Found(*row)
    if found.kind not in READABLE:
        raise CheckInputError(f"{where.name} on {where.server} is no table; a view's rows have to be put in one first")
    return found


def _plan(link: Link, where: PostgresTable) -> Plan:
    """What is to be read, on this connection's snapshot."""
    found = _found(link, where)
    columns = _columns(link, where, found.oid)
    row = link.execute(
        "SELECT pg_export_snapshot(), pg_relation_size(%s::oid) / current_setting('block_size')::bigint",
        (found.oid,),
    ).fetchone()
    snapshot, pages = row or ("", 0)
    slices = _slices(int(pages or 0)) if READABLE[found.kind] else ((0, None),)
    return Plan(schema=found.schema, table=found.table, columns=columns, snapshot=snapshot, slices=slices)


def _slices(pages: int) -> tuple[tuple[int, int | None], ...]:
    """Ranges of pages, all of them once; the last has no end, for pages that are new."""
    many = max(1, min(MOST_SLICES, pages // PAGES_A_SLICE))
    edges = [pages * index // many for index in range(many)]
    return tuple(zip(edges, [*edges[1:], None], strict=True))


def _columns(link: Link, where: PostgresTable, oid: int) -> tuple[TableColumn, ...]:
    """The columns to be read; raises CheckInputError on one that is not there or of another type."""
    rows = link.execute(
        "SELECT a.attname, t.typname, n.nspname = 'pg_catalog', a.atttypmod, format_type(a.atttypid, a.atttypmod)"
        " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace"
        " WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        (oid,),
    ).fetchall()
    there = {row[0]: row for row in rows}
    if missing := [name for name in where.columns if name not in there]:
        raise CheckInputError(f"{where.name} has no column {', '.join(missing)}; it has {', '.join(there)}")
    wanted = where.columns or tuple(there)
    if not wanted:
        raise CheckInputError(f"{where.name} has no columns")
    if len({name.lower() for name in wanted}) < len(wanted):
        raise CheckInputError(f"{where.name} has columns whose names differ in case only, which Spark takes for one")
    return tuple(_column(where, *there[name]) for name in wanted)


def _column(where: PostgresTable, name: str, kind: str, is_plain: bool, modifier: int, shown: str) -> TableColumn:
    if is_plain and kind in KINDS:
        return TableColumn(name=name, kind=kind)
    if is_plain and kind == "numeric":
        precision, scale = PLAIN_DIGITS if modifier < 4 else _digits(modifier)
        if precision <= LARGEST_PRECISION and 0 <= scale <= precision:
            return TableColumn(name=name, kind=kind, precision=precision, scale=scale)
    raise CheckInputError(
        f"the column {name} of {where.name} is of type {shown}, which cannot be compared here; it can be bigint,"
        f" integer, double precision, text, boolean, timestamp, date or numeric (to {LARGEST_PRECISION} digits)"
    )


def _digits(modifier: int) -> tuple[int, int]:
    """Precision and scale as PostgreSQL packs them: 16 bits, and 11 with a sign, above an offset of 4."""
    packed = modifier - 4
    return packed >> 16, ((packed & 0x7FF) ^ 1024) - 1024


def _from_worker(error: Exception) -> Exception | None:
    """The error that a worker raised, out of the text that Spark makes of it."""
    kinds: dict[str, Any] = {kind.__name__: kind for kind in (CheckInputError, TableUnreachable)}
    found = re.search(rf"\b({'|'.join(kinds)}): ([^\n]*)", str(error))
    return kinds[found[1]](found[2]) if found else None
