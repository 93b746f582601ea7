"""What all sources of files have in common: the columns in the names of their folders, and one type for each column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..arrays import TEXT, null, text
from ..errors import CheckInputError
from ..types import common
from .places import DataFile, Place


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


def _folder(value: str | None) -> Any:
    return null(TEXT) if value is None else text(value)
