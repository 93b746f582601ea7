"""The table at a path: its files, their kind, and the columns in the names of their folders."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import msgspec

from ..errors import CheckInputError, error_text
from .table_formats import METADATA, delta_files, iceberg_files, is_delta, is_iceberg, newest_metadata

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The text for NULL in a folder's name."""


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and the columns in the names of its folders (`day=2013-02-08`)."""

    path: Path
    folders: dict[str, str | None] = {}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a table, in the order of their names; `kind` is csv, json, parquet, delta or iceberg.

    `metadata` is the file that describes an Iceberg table.
    """

    path: Path
    kind: str
    files: tuple[DataFile, ...]
    metadata: Path | None = None

    @property
    def bytes(self) -> int:
        return sum(file.path.stat().st_size for file in self.files)

    @property
    def is_partitioned_as_spark_has_it(self) -> bool:
        """Whether Spark finds all files below `path`, and the same columns in the names of their folders."""
        if self.kind == "iceberg" or not self.path.is_dir():
            return not any(file.folders for file in self.files)
        parts = (file.path.relative_to(self.path).parts[:-1] for file in self.files)
        return all(len(file.folders) == len(names) for file, names in zip(self.files, parts, strict=True))


def place_of(path: Path) -> Place:
    """The table at a path; raises CheckInputError if there is none."""
    if not path.exists():
        raise CheckInputError(f"there is no {path}")
    if path.name.endswith(METADATA) and path.is_file():
        return _iceberg(path, path)
    if path.is_file():
        if path.suffix.lower() not in FORMATS:
            raise CheckInputError(f"{path} is of no known kind: it can be {', '.join(FORMATS)}, or a folder of them")
        return Place(path=path, kind=FORMATS[path.suffix.lower()], files=(DataFile(path=path),))
    if is_delta(path):
        return _delta(path)
    if is_iceberg(path):
        return _iceberg(path, newest_metadata(path))
    files = sorted(file for file in path.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(path)))
    kinds = sorted({FORMATS.get(file.suffix.lower(), "another kind") for file in files})
    if len(kinds) != 1 or kinds[0] not in FORMATS.values():
        raise CheckInputError(f"{path} holds {' and '.join(kinds) or 'no'} files; it has to hold those of one kind")
    return Place(path=path, kind=kinds[0], files=_placed(path, files))


def _is_hidden(path: Path) -> bool:
    """Whether Spark too would ignore a file: a committer's own files, and partial ones."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _delta(path: Path) -> Place:
    files, columns = delta_files(path)
    placed = _placed(path, files)
    if placed and set(placed[0].folders) != set(columns):
        raise CheckInputError(f"{path} is partitioned by {', '.join(columns)}, and its files are in other folders")
    return _whole(Place(path=path, kind="delta", files=placed))


def _iceberg(path: Path, metadata: Path) -> Place:
    """The files have all columns: the names of their folders are for people."""
    files = tuple(DataFile(path=file) for file in iceberg_files(metadata))
    return _whole(Place(path=path, kind="iceberg", files=files, metadata=metadata))


def _whole(place: Place) -> Place:
    """The place; raises CheckInputError if the table names a file that is not there."""
    if missing := [file.path for file in place.files if not file.path.exists()]:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise CheckInputError(f"{place.path} has lost the file {missing[0]}{more}, which its newest version has")
    return place


def _placed(root: Path, files: list[Path]) -> tuple[DataFile, ...]:
    placed = tuple(DataFile(path=file, folders=_folders(root, file)) for file in files)
    names = {tuple(file.folders) for file in placed}
    if len(names) > 1:
        raise CheckInputError(f"{root} has files below folders of different columns: {error_text(sorted(names))}")
    return placed


def _folders(root: Path, file: Path) -> dict[str, str | None]:
    try:
        parts = file.relative_to(root).parts[:-1]
    except ValueError:
        parts = ()
    pairs = (part.split("=", 1) for part in parts if "=" in part)
    return {unquote(name): None if value == NO_VALUE else unquote(value) for name, value in pairs}
