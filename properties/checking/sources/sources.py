"""Tables that can be read several times: CSV, JSON lines, Parquet, Delta, Iceberg, PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ..arrays import TEXT
from ..errors import CheckInputError
from ..types import holds, plain
from . import csv_files, json_lines
from .addresses import PostgresTable
from .files import Files
from .iceberg_source import IcebergSource
from .parquet_source import ParquetSource
from .places import DataFile, Place, place_of

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
        return IcebergSource(place)
    return JsonSource(place, wanted) if place.kind == "json" else ParquetSource(place)


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


def _newlines(place: Place) -> int:
    """The number of line ends: that of the records, if the last one ends with a line end and none contains one."""
    count = 0
    for file in place.files:
        with file.path.open("rb") as opened:
            while chunk := opened.read(NEWLINES):
                count += chunk.count(b"\n")
    return count
