"""A read-only connection to PostgreSQL, and the rows that it reads, as Arrow batches.

A `Plan` fixes in advance what is read: the columns, the slices, and the snapshot
that all slices share.  So a table is read as it was at one moment, however long
the reading takes.  Values have one of the listed types; nothing of a table is
evaluated.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from decimal import Decimal
from time import monotonic
from typing import Any, TypeVar

import msgspec
import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ..errors import CheckInputError, TableUnreachable

CONNECT_TIMEOUT_S = 5
SILENCE_S = 60.0
"""How long a server may take to answer one request."""
ROWS_AT_ONCE = 20_000
PLAIN_DIGITS = (38, 18)
"""Precision and scale of a numeric column that declares none."""
LARGEST_PRECISION = 38

Answer = TypeVar("Answer")

KINDS: dict[str, Any] = {
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
"""By PostgreSQL's type, as its catalogue names it, Arrow's type.  `numeric` is a decimal with the column's digits."""


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column; `kind` is one of `KINDS`, or numeric with precision and scale."""

    name: str
    kind: str
    precision: int = 0
    scale: int = 0

    @property
    def arrow(self) -> Any:
        return pa.decimal128(self.precision, self.scale) if self.kind == "numeric" else KINDS[self.kind]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a table; `slices` are (first page, page after the last one; None for the end)."""

    schema: str
    table: str
    columns: tuple[TableColumn, ...]
    snapshot: str
    slices: tuple[tuple[int, int | None], ...]


class Link(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for no answer longer than `silence_s`."""

    silence_s = SILENCE_S

    def wait(self, gen: Generator[Any, Any, Answer], *arguments: Any, **options: Any) -> Answer:
        return super().wait(self._bounded(gen), *arguments, **options)

    def _bounded(self, gen: Generator[Any, Any, Answer]) -> Generator[Any, Any, Answer]:
        deadline = monotonic() + self.silence_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and monotonic() > deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"it has said nothing for {self.silence_s:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            answer: Answer = end.value
            return answer


def connect(conninfo: str, password: str = "") -> Link:
    """A session that can only read, in one snapshot; raises psycopg.Error."""
    link = Link.connect(
        conninfo,
        password=password or None,
        autocommit=True,
        connect_timeout=CONNECT_TIMEOUT_S,
        application_name="cutproof-check",
        client_encoding="utf8",
    )
    link.execute("SET TIME ZONE 'UTC'")
    link.execute("SET idle_in_transaction_session_timeout = 0")
    link.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    return link


def batches(conninfo: str, password: str, plan: Plan, pages: tuple[int, int | None]) -> Iterator[Any]:
    """The rows of a slice as Arrow batches; raises the errors of `as_check_error`."""
    try:
        with connect(conninfo, password) as link:
            link.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(plan.snapshot))
            with link.cursor(name="cutproof") as cursor:
                cursor.execute(query(plan, pages), binary=True)
                while rows := cursor.fetchmany(ROWS_AT_ONCE):
                    yield batch(plan.columns, rows)
    except psycopg.Error as error:
        raise as_check_error(error, f"{plan.schema}.{plan.table}") from None
    except UnicodeDecodeError:
        raise CheckInputError(f"{plan.schema}.{plan.table} holds text that is no UTF-8") from None


def query(plan: Plan, pages: tuple[int, int | None]) -> sql.Composed:
    """The query for the rows of a slice.  Slices have no gap between them, and the last one has no end."""
    first, behind = pages
    select = sql.SQL("SELECT {} FROM {}").format(
        sql.SQL(", ").join(sql.Identifier(column.name) for column in plan.columns),
        sql.Identifier(plan.schema, plan.table),
    )
    if first:
        select += sql.SQL(" WHERE ctid >= {}::tid").format(f"({first},0)")
    if behind is not None:
        select += sql.SQL(" AND " if first else " WHERE ") + sql.SQL("ctid < {}::tid").format(f"({behind},0)")
    return select


def batch(columns: tuple[TableColumn, ...], rows: list[tuple[Any, ...]]) -> Any:
    """Rows as an Arrow batch; raises CheckInputError for a value that Spark's type cannot hold."""
    arrays = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        try:
            arrays.append(pa.array(values, column.arrow))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
            raise CheckInputError(_mismatch(column, values)) from None
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _mismatch(column: TableColumn, values: tuple[Any, ...]) -> str:
    if column.kind != "numeric":
        return f"the column {column.name} holds a value that is no {column.arrow} here"
    odd = next((value for value in values if value is not None and not _fits(value, column)), "?")
    return f"the column {column.name} holds {odd}, which is no {column.arrow} here"


def _fits(value: Decimal, column: TableColumn) -> bool:
    try:
        pa.array([value], column.arrow)
    except pa.ArrowInvalid:
        return False
    return True


def as_check_error(error: psycopg.Error, what: str) -> CheckInputError | TableUnreachable:
    """A server's error in one line: the user's error (a missing or unreadable object), or the environment's."""
    text = " ".join(str(error).split())
    if isinstance(error, psycopg.DataError):
        return CheckInputError(f"{what} holds a value that cannot be read: {text}")
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return CheckInputError(f"{what} may not be read by this user: {text}")
    if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
        return CheckInputError(f"{what} was dropped or altered while it was read: {text}")
    return TableUnreachable(f"PostgreSQL does not answer while {what} is read: {text}")


def full_conninfo(parameters: dict[str, Any]) -> str:
    """Connection parameters without a password, as libpq takes them."""
    return make_conninfo(**{name: value for name, value in parameters.items() if name != "password"})
