"""The current snapshot of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import CheckInputError
from .parquet_source import ParquetSource, plain_types
from .table_formats import iceberg_table, unreadable


class IcebergSource(ParquetSource):
    """A `Source`: the files of Parquet if the table's rows are simply theirs, else what pyiceberg reads.

    pyiceberg applies what merge-on-read has deleted, and reads files from before a change of the columns.
    """

    @property
    def _metadata(self) -> Path:
        if self.place.metadata is None:
            raise CheckInputError(f"{self.place.path} is no Iceberg table")
        return self.place.metadata

    @cached_property
    def _table(self) -> Any:
        return iceberg_table(self._metadata)

    @cached_property
    def _tasks(self) -> list[Any]:
        return list(self._table.scan().plan_files())

    @cached_property
    def as_stored(self) -> bool:
        """Whether no row of a file is deleted, and each file has the table's columns, by name, number and type."""
        from pyiceberg.io.pyarrow import pyarrow_to_schema

        if any(task.delete_files or task.file.file_format.value.upper() != "PARQUET" for task in self._tasks):
            return False
        columns = _columns(self._table.schema())
        try:
            return all(_columns(pyarrow_to_schema(schema)) == columns for schema in self.stored)
        except (ValueError, TypeError, NotImplementedError):  # a file without the numbers of its columns
            return False

    @cached_property
    def types(self) -> dict[str, Any]:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return plain_types(schema_to_pyarrow(self._table.schema()), self.place.path)

    @property
    def rows(self) -> int:
        return sum(task.file.record_count for task in self._tasks)

    @property
    def bytes(self) -> int:
        return super().bytes if self.as_stored else self.place.bytes

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        if self.as_stored:
            yield from super().batches(columns)
            return
        try:
            for batch in self._table.scan(selected_fields=tuple(columns)).to_arrow_batch_reader():
                yield pa.Table.from_batches([batch]).select(list(columns))
        except (ValueError, NotImplementedError, OSError, pa.ArrowException) as error:
            raise unreadable(self._metadata, error) from error


def _columns(schema: Any) -> dict[int, tuple[str, str]]:
    """By a column's number its full name and its type; nested columns have numbers of their own."""
    from pyiceberg.schema import index_name_by_id

    return {number: (name, _named(schema.find_type(number))) for number, name in index_name_by_id(schema).items()}


def _named(kind: Any) -> str:
    return str(kind) if kind.is_primitive else type(kind).__name__
