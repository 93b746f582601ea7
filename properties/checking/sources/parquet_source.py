"""Parquet files, also those of a Delta table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..arrays import TEXT
from ..errors import CheckInputError
from ..types import plain
from . import parquet_files
from .files import Files
from .places import DataFile
from .table_formats import delta_schema


class ParquetSource(Files):
    """Parquet files, also those of a Delta table."""

    @property
    def as_stored(self) -> bool:
        """Whether the rows of the table are those of its files."""
        return True

    @cached_property
    def _footers(self) -> list[tuple[DataFile, Any, int, int]]:
        found = []
        for file in self.place.files:
            with parquet_files.opened(file.path) as opened:
                groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
                size = sum(group.total_byte_size for group in groups)
                found.append((file, opened.schema_arrow, opened.metadata.num_rows, size))
        return found

    @cached_property
    def types(self) -> dict[str, Any]:
        for file, schema, _, _ in self._footers:
            if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
                raise CheckInputError(f"{file.path}: a table has two columns {twice[0]}")
        if not self.place.files and self.place.kind == "delta":
            return plain_types(delta_schema(self.place.path), self.place.path)
        return self._merged((file, plain_types(schema, file.path)) for file, schema, _, _ in self._footers)

    @property
    def stored(self) -> list[Any]:
        """The schema of each file, as it is stored."""
        return [schema for _, schema, _, _ in self._footers]

    @property
    def texts(self) -> dict[str, str]:
        return {name: "bare" if name in self.folders else "declared" for name in self.types}

    def in_folders(self, columns: Sequence[str]) -> Any:
        """Columns of `folders`, a row for each file that has rows: every text of these columns is in it."""
        full = [file.folders for file, _, rows, _ in self._footers if rows]
        return pa.table([pa.array([one[name] for one in full], TEXT) for name in columns], names=list(columns))

    @property
    def rows(self) -> int:
        return sum(rows for _, _, rows, _ in self._footers)

    @property
    def bytes(self) -> int:
        return sum(size for _, _, _, size in self._footers)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for file in self.place.files:
            for table in parquet_files.batches(file.path, [name for name in columns if name not in file.folders]):
                yield self._with_folders(table, file, columns)


def plain_types(schema: Any, path: Path) -> dict[str, Any]:
    """The plain type of each column; raises CheckInputError, with the path, for a type that no column can have."""
    found = {}
    for field in schema:
        try:
            found[field.name] = plain(field.type)
        except CheckInputError as error:
            raise CheckInputError(f"{path}: the column {field.name}: {error}") from None
    return found
