"""The file store as somebody outside the engine sees it: its names, made, read, cleared away."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from ..core.ids import CheckpointId
from ..core.transactions import Row

LOGS = ("appended.log", "upserted.log")
LIMIT = ".length"
"""Beside a log: how much of it counts, once its writer's attempt has been shut out."""
PURGE_TRIES = 20


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An unfinished transaction; `checkpoint` is None while it is open."""

    path: Path
    name: str
    checkpoint: CheckpointId | None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A row in a file; `at` is when a log's line was written, in ns since the epoch."""

    key: int | None
    value: int | None
    tag: int
    tag2: int
    at: int = 0
    identity: tuple[int | None, ...] = ()

    @property
    def row(self) -> Row:
        return (self.key, self.value, self.tag, self.tag2)


def encoded(name: str) -> str:
    """A name as part of a path; without %, which Spark would decode once more."""
    return quote(name, safe="").replace("%", "+")


def decoded(text: str) -> str:
    return unquote(text.replace("+", "%"))


def committed_path(root: Path, name: str) -> Path:
    return root / "committed" / f"txn-{encoded(name)}.jsonl"


def attempt_of(folder: Path) -> int:
    return int(folder.name.split(".")[0])


def sync(folder: Path) -> None:
    """Make renames in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder in one that is there: what has been purged does not come back."""
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def transactions(*folders: Path) -> list[Account]:
    """The unfinished transactions in these folders, in the order begun."""
    names: list[tuple[str, Path]] = []
    for folder in folders:
        try:
            names += [(name, folder / name) for name in os.listdir(folder)]
        except FileNotFoundError:
            continue  # it has just been retired
    found = []
    for name, path in sorted(names):
        begun_name, _, checkpoint = path.stem.partition("-")[2].partition("@")
        if name.endswith(".open"):
            found.append(Account(path=path, name=decoded(begun_name), checkpoint=None))
        elif name.endswith(".sealed"):
            found.append(Account(path=path, name=decoded(begun_name), checkpoint=CheckpointId(int(checkpoint))))
    return found


def create(root: Path) -> None:
    """Make the folders of a store."""
    root.mkdir(parents=True, exist_ok=True)
    for name in ("committed", "fences", "live", "retired"):
        make_folder(root / name)


class FileReader:
    """An independent look at the store."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _committed_files(self) -> list[tuple[int, str, Path]]:
        """(when it was renamed, in ns since the epoch; transaction; file)."""
        with os.scandir(self._root / "committed") as entries:
            return sorted(
                (entry.stat().st_ctime_ns, decoded(Path(entry.path).stem.removeprefix("txn-")), Path(entry.path))
                for entry in entries
            )

    def seen(self) -> list[str]:
        """The names of transactions that are visible now, in the order they became so."""
        return [name for _, name, _ in self._committed_files()]

    def committed(self) -> list[tuple[str, Row]]:
        """(transaction, or "" for a plain row; row), in the order they became visible as the
        clocks of the disk and of the writers tell it."""
        timed = [
            (at, name, line.row) for at, name, path in self._committed_files() for line in lines(path.read_bytes())
        ]
        timed += [(line.at, "", line.row) for line in self._logged("appended.log")]
        return [(name, row) for _, name, row in sorted(timed, key=lambda one: one[:2])]

    def table(self) -> dict[tuple[int | None, ...], Row]:
        """The rows of idempotent sinks by identity, in the order these first came."""
        return {line.identity: line.row for line in self._logged("upserted.log")}

    def unfinished(self) -> list[tuple[str, str, int | None]]:
        """(transaction, "open" or "prepared", the checkpoint that it was prepared for)."""
        folders = [*self._root.glob("live/*/*"), *self._root.glob("retired/*/*")]
        return [
            (one.name, "open" if one.checkpoint is None else "prepared", one.checkpoint)
            for one in transactions(*folders)
        ]

    def _logged(self, name: str) -> list[Line]:
        """A log's lines of all writers, as they were written."""
        found: dict[str, list[Line]] = {}
        # A folder may be retired between the two looks; its own name tells that it is the same.
        for path in [*self._root.glob(f"live/*/*/{name}"), *self._root.glob(f"retired/*/*/{name}")]:
            data = _read_up_to_limit(path)
            if data is not None:
                found[path.parent.name] = lines(data)
        return sorted((line for one in found.values() for line in one), key=lambda line: line.at)

    def purge(self) -> None:
        """Remove the store, all of it.  A process that still writes finds no folder to write to;
        what it made meanwhile is removed too."""
        for _ in range(PURGE_TRIES):
            shutil.rmtree(self._root, ignore_errors=True)
            if not self._root.exists():
                return
        shutil.rmtree(self._root)

    def close(self) -> None:
        """Nothing is held."""


def _read_up_to_limit(path: Path) -> bytes | None:
    """What of a log counts; None when it has just been moved."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return data[: int(path.with_name(path.name + LIMIT).read_text())]
    except FileNotFoundError:
        return data if path.exists() else None


def lines(data: bytes) -> list[Line]:
    """Whole lines; one that was torn off is not there yet."""
    whole: Any = data[: data.rfind(b"\n") + 1]
    return msgspec.json.Decoder(Line).decode_lines(whole)
