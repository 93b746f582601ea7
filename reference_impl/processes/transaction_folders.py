"""The file store's folders and names, made and read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from ..core.vocabulary.ids import CheckpointId
from ..core.vocabulary.transactions import Row

LOGS = ("appended.log", "upserted.log")
LIMIT = ".length"
"""In the folder of a log: how much of the log counts, once its writer's attempt has been fenced."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An unfinished transaction; `checkpoint` is None while it is open."""

    path: Path
    name: str
    checkpoint: CheckpointId | None


def encoded(name: str) -> str:
    """A name as part of a path; without %, which Spark would decode once more."""
    return quote(name, safe="").replace("%", "+")


def decoded(text: str) -> str:
    return unquote(text.replace("+", "%"))


def committed_path(root: Path, name: str, passes_on: bool = False) -> Path:
    """Where a transaction is once it is committed; `passes_on`: it is not part of the job's output."""
    return root / ("aside" if passes_on else "committed") / f"txn-{encoded(name)}.jsonl"


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
    """Make a folder within an existing one: a store that was purged does not come back."""
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
    for name in ("aside", "committed", "fences", "final", "live", "retired", "versions"):
        make_folder(root / name)


def listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def folders_in(parent: Path) -> list[Path]:
    return [parent / name for name in listed(parent)]


def line(row: Row, **more: Any) -> bytes:
    key, value, tag, tag2 = row
    return msgspec.json.encode({"key": key, "value": value, "tag": tag, "tag2": tag2, **more}) + b"\n"


def write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
