"""A table of PostgreSQL in its server's catalogue: whether it exists, its size, and its columns to read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
from psycopg import sql

from ..errors import CheckInputError, TableUnreachable
from .addresses import PostgresTable
from .postgres_link import (
    KINDS,
    LARGEST_PRECISION,
    PLAIN_DIGITS,
    Link,
    Plan,
    TableColumn,
    as_check_error,
    connect,
    full_conninfo,
)

PAGES_A_SLICE = 4_096
"""32 MB of a table as PostgreSQL is usually built."""
MOST_SLICES = 64

READABLE = {"r": True, "m": True, "p": False}
"""By kind of relation that can be read, whether its pages can be counted.  Plain views are left
out: reading one would run its query."""

REFUSALS = ("does not exist", "password authentication failed", "no password supplied", "pg_hba.conf")
"""Texts with which a reachable server refuses a name or a password: libpq returns only the text."""


def table_bytes(where: PostgresTable) -> int:
    """The size of the table on the server's disk; raises CheckInputError, TableUnreachable."""
    with opened(where) as link:
        row = link.execute("SELECT pg_table_size(%s::oid)", (_found(link, where).oid,)).fetchone()
    return int(row[0]) if row and row[0] is not None else 0


def described(where: PostgresTable) -> tuple[TableColumn, ...]:
    """The columns that are read; raises CheckInputError, TableUnreachable."""
    with opened(where) as link:
        return _columns(link, where, _found(link, where).oid)


def rows_up_to(where: PostgresTable, most: int) -> int:
    """The number of rows, counted up to one more than `most`."""
    with opened(where) as link:
        found = _found(link, where)
        name = sql.Identifier(found.schema, found.table)
        row = link.execute(
            sql.SQL("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {}) AS counted").format(name, sql.Literal(most + 1))
        ).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def opened(where: PostgresTable) -> Iterator[Link]:
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
        raise as_check_error(error, where.name) from None
    finally:
        link.close()


class _Found(NamedTuple):
    oid: int
    schema: str
    table: str
    kind: str


def _found(link: Link, where: PostgresTable) -> _Found:
    """The table in the server's catalogue; raises CheckInputError if there is none."""
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


def plan_of(link: Link, where: PostgresTable) -> Plan:
    """The plan for one reading, on this connection's snapshot."""
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
    """Ranges that have each page once; the last range has no end, so that new pages are read."""
    many = max(1, min(MOST_SLICES, pages // PAGES_A_SLICE))
    edges = [pages * index // many for index in range(many)]
    return tuple(zip(edges, [*edges[1:], None], strict=True))


def _columns(link: Link, where: PostgresTable, oid: int) -> tuple[TableColumn, ...]:
    """The columns to read; raises CheckInputError for a column that is missing or has an unsupported type."""
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
        raise CheckInputError(f"{where.name} has columns whose names differ in case only, which are taken for one")
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
