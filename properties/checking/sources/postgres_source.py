"""A table of PostgreSQL read over one connection, as it is at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from ..sizes import SMALL_ROWS
from ..types import plain
from .addresses import PostgresTable
from .postgres import described, opened, plan_of, rows_up_to, table_bytes
from .postgres_link import batches, full_conninfo


class PostgresSource:
    """A `Source`; each reading sees the table as it is when the reading begins."""

    def __init__(self, where: PostgresTable) -> None:
        self.where = where

    @cached_property
    def types(self) -> dict[str, Any]:
        return {column.name: plain(column.arrow) for column in described(self.where)}

    @property
    def texts(self) -> dict[str, str]:
        return dict.fromkeys(self.types, "declared")

    @cached_property
    def rows(self) -> int:
        return rows_up_to(self.where, SMALL_ROWS)

    @cached_property
    def bytes(self) -> int:
        return table_bytes(self.where)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        with opened(self.where) as link:
            plan = plan_of(link, self.where)
            for pages in plan.slices:
                for batch in batches(
                    full_conninfo(self.where.parameters), self.where.parameters.get("password", ""), plan, pages
                ):
                    yield pa.Table.from_batches([batch]).select(list(columns))
