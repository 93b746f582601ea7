"""The address of a table of PostgreSQL: a URL, or a DSN."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from ..errors import CheckInputError

SCHEMES = ("postgresql", "postgres")
FORM = "postgresql://user@host:port/database?table=schema.table"
PARAMETERS = ("table", "sslmode", "sslrootcert")
"""The parameters that a URL may have."""


class PostgresTable(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A table on a server.  Its text form does not show the password.

    `parameters` are libpq's.  `columns` are the columns to read, in this order (empty: all).
    Without a `schema` the server's search path decides.
    """

    parameters: dict[str, str]
    table: str
    schema: str = ""
    columns: tuple[str, ...] = ()

    @staticmethod
    def of(url: str) -> PostgresTable:
        """The table of a URL like `FORM`, which may have a password; raises CheckInputError without the password."""
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
        """The table at a libpq DSN; raises CheckInputError, which never shows the DSN."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

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


def is_url(text: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) is not None


def table_of(url: str) -> PostgresTable:
    """The table that a URL names; raises CheckInputError for other kinds of URLs."""
    scheme = url.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise CheckInputError(f"a table cannot be read from {scheme}://; it can be a file, a folder or {FORM}")
    return PostgresTable.of(url)


def _parameters(parts: SplitResult) -> dict[str, str]:
    try:
        found = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else []
    except ValueError:
        raise CheckInputError(_MALFORMED) from None
    names = [name for name, _ in found]
    if names.count("table") != 1 or len({*names}) < len(names) or any(name not in PARAMETERS for name in names):
        raise CheckInputError(f"a table's URL has one table behind the ?, and may have sslmode and sslrootcert: {FORM}")
    return dict(found)
