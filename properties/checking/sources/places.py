"""The table at a path: its files, their kind, and the columns in the names of their folders."""

from __future__ import annotations

import importlib
from pathlib import Path
from urllib.parse import unquote

import msgspec

from ..errors import CheckInputError, error_text

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
    """The files of a table, in the order of their names; `kind` is csv, json, parquet or delta."""

    path: Path
    kind: str
    files: tuple[DataFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.path.stat().st_size for file in self.files)


def place_of(path: Path) -> Place:
    """The table at a path; raises CheckInputError if there is none."""
    if not path.exists():
        raise CheckInputError(f"there is no {path}")
    if path.is_file():
        if path.suffix.lower() not in FORMATS:
            raise CheckInputError(f"{path} is of no known kind: it can be {', '.join(FORMATS)}, or a folder of them")
        return Place(path=path, kind=FORMATS[path.suffix.lower()], files=(DataFile(path=path),))
    if (path / "_delta_log").is_dir():
        return Place(path=path, kind="delta", files=_placed(path, _delta_files(path)))
    files = sorted(file for file in path.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(path)))
    kinds = sorted({FORMATS.get(file.suffix.lower(), "another kind") for file in files})
    if len(kinds) != 1 or kinds[0] not in FORMATS.values():
        raise CheckInputError(f"{path} holds {' and '.join(kinds) or 'no'} files; it has to hold those of one kind")
    return Place(path=path, kind=kinds[0], files=_placed(path, files))


def _is_hidden(path: Path) -> bool:
    """Whether Spark too would ignore a file: a committer's own files, and partial ones."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _delta_files(path: Path) -> list[Path]:
    try:
        deltalake = importlib.import_module("deltalake")
    except ImportError as error:
        raise CheckInputError(f"{path} is a Delta table: reading it needs `pip install deltalake`") from error
    try:
        uris = deltalake.DeltaTable(str(path)).file_uris()
    except Exception as error:  # deltalake's errors have no common class
        raise CheckInputError(f"{path} cannot be read as a Delta table: {error_text(error)}") from error
    return sorted(Path(unquote(uri.removeprefix("file://"))) if "://" in uri else Path(uri) for uri in uris)


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
