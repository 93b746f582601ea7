"""Tables that can be read several times: CSV, JSON lines, Parquet, Delta, Iceberg, PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ..arrays import TEXT, null, text
from ..errors import CheckInputError
from ..types import common, holds, plain
from . import csv_files, json_lines, parquet_files
from .addresses import PostgresTable
from .places import DataFile, Place, place_of
from .table_formats import delta_schema

NEWLINES = 1 << 20


class Source(Protocol):
    """A table to read; `types` are plain types, `texts` has `types.Column.texts` of each text column."""

    @property
    def types(self) -> dict[str, Any]: ...
    @property
    def texts(self) -> dict[str, str]: ...
    @property
    def rows(self) -> int:
        """The number of rows, or an upper bound of it."""

    @property
    def bytes(self) -> int:
        """The approximate size, uncompressed."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The named columns, in this order; raises CheckInputError."""


def source_of(
    where: Path | PostgresTable, *, delimiter: str, nulls: Sequence[str], wanted: json_lines.Wanted
) -> Source:
    """The source of a table; `wanted` says how columns of JSON are read.  Raises CheckInputError, TableUnreachable."""
    if isinstance(where, PostgresTable):
        from .postgres_source import PostgresSource

        return PostgresSource(where)
    place = place_of(where)
    if place.kind == "csv":
        return CsvSource(place, delimiter, nulls)
    if place.kind == "iceberg":
        from .iceberg_source import IcebergSource

        return IcebergSource(place)
    return JsonSource(place, wanted) if place.kind == "json" else ParquetSource(place)


class Files:
    """A source of files, with the columns in the names of their folders."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(self.place.files[0].folders) if self.place.files else ()

    @property
    def bytes(self) -> int:
        return self.place.bytes

    def _merged(self, types: Iterator[tuple[DataFile, Mapping[str, Any]]]) -> dict[str, Any]:
        """The types of the columns of all files; a column that a file does not have is NULL there."""
        merged: dict[str, Any] = {}
        for file, found in types:
            for name, kind in found.items():
                wider = common(merged.get(name, pa.null()), kind, by_name=self.place.kind == "json")
                if wider is None:
                    raise CheckInputError(
                        f"{file.path}: the column {name} is of type {kind}, and {merged[name]} in other files of"
                        f" {self.place.path}"
                    )
                merged[name] = wider
        return {**merged, **dict.fromkeys(self.folders, TEXT)}

    def _with_folders(self, table: Any, file: DataFile, columns: Sequence[str]) -> Any:
        arrays = []
        for name in columns:
            if name in file.folders:
                arrays.append(pa.repeat(_folder(file.folders[name]), table.num_rows))
            elif name in table.column_names:
                arrays.append(table.column(name))
            else:
                arrays.append(pa.nulls(table.num_rows))
        return pa.table(arrays, names=list(columns))


class CsvSource(Files):
    """CSV files: every column is text."""

    def __init__(self, place: Place, delimiter: str, nulls: Sequence[str]) -> None:
        super().__init__(place)
        self._delimiter, self._nulls = delimiter, nulls

    def _of(self, file: DataFile) -> str:
        return self._delimiter or ("\t" if file.path.suffix.lower() == ".tsv" else ",")

    @cached_property
    def types(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        first: list[str] = []
        for file in self.place.files:
            names = csv_files.header(file.path, self._of(file))
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise CheckInputError(f"{file.path}: a table has two columns {twice[0]}")
            if first and sorted(first) != sorted(names):
                raise CheckInputError(f"{file.path} has other columns than {self.place.files[0].path}: its line 1"
                                      f" names {', '.join(names)}")  # fmt: skip
            first = first or names
            found |= dict.fromkeys(names, TEXT)
        return found | dict.fromkeys(self.folders, TEXT)

    @property
    def texts(self) -> dict[str, str]:
        return dict.fromkeys(self.types, "bare")

    @cached_property
    def rows(self) -> int:
        return _newlines(self.place)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for file in self.place.files:
            wanted = [name for name in columns if name not in file.folders]
            for table in csv_files.batches(file.path, wanted, self._of(file), self._nulls):
                yield self._with_folders(table, file, columns)


class JsonSource(Files):
    """Files of JSON lines; types are known once all lines have been read.  Numbers that are not whole are double."""

    def __init__(self, place: Place, wanted: json_lines.Wanted) -> None:
        super().__init__(place)
        self._wanted = wanted
        self._kept: list[tuple[DataFile, json_lines.Lines]] | None = None

    def read_exactly(self, names: Iterable[str]) -> None:
        """Read the numbers in lists and objects of these columns as decimals from now on."""
        self._wanted = self._wanted._replace(exactly=self._wanted.exactly | frozenset(names))
        self.__dict__.pop("types", None)

    @cached_property
    def types(self) -> dict[str, Any]:
        keep = self.bytes <= csv_files.WHOLE_BYTES
        kept: list[tuple[DataFile, json_lines.Lines]] = []
        decimals: set[str] = set()

        def read() -> Iterator[tuple[DataFile, dict[str, Any]]]:
            for file, lines in self._lines():
                if keep:
                    kept.append((file, lines))
                found = {field.name: plain(field.type) for field in lines.table.schema}
                decimals.update(name for name, kind in found.items() if holds(kind, pa.types.is_decimal))
                yield file, found | dict.fromkeys(lines.digits, pa.float64())

        self._kept = None
        found = self._merged(read())
        if not found:
            raise CheckInputError(f"{self.place.path} is empty; without a row it names no columns")
        rounded = {name for name in decimals if holds(found[name], pa.types.is_floating)}
        if twice := rounded & self._wanted.exactly:
            name = min(twice)
            raise CheckInputError(
                f"{self.place.path}: the column {name} holds numbers that no one type holds; --cast {name}=string"
                " compares texts"
            )
        if rounded:
            self.read_exactly(rounded)
            return self.types
        self._kept = kept if keep else None
        return found

    @property
    def texts(self) -> dict[str, str]:
        numbers = {name: "number" for name, kind in self.types.items() if pa.types.is_floating(kind)}
        return {name: "bare" if name in self.folders else numbers.get(name, "json") for name in self.types}

    @cached_property
    def rows(self) -> int:
        return _newlines(self.place)

    def _lines(self) -> Iterator[tuple[DataFile, json_lines.Lines]]:
        if self._kept is not None:
            yield from self._kept
            return
        for file in self.place.files:
            for lines in json_lines.batches(file.path, self._wanted):
                yield file, lines

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for file, lines in self._lines():
            yield self._with_folders(lines.table, file, columns)


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


def _folder(value: str | None) -> Any:
    return null(TEXT) if value is None else text(value)


def _newlines(place: Place) -> int:
    """The number of line ends: that of the records, if the last one ends with a line end and none contains one."""
    count = 0
    for file in place.files:
        with file.path.open("rb") as opened:
            while chunk := opened.read(NEWLINES):
                count += chunk.count(b"\n")
    return count
