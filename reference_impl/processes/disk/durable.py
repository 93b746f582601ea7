"""Files that are there as a whole or not at all, whoever is killed and whenever the power fails.

A file is written under a temporary name in a folder of its own, synced, and renamed to its place; then the folders
above it are synced (Pillai et al., All File Systems Are Not Created Equal, OSDI 2014).  A CRC-32 in front of the file's
JSON shows a file that is torn or altered nevertheless.
"""

from __future__ import annotations

import os
import re
import secrets
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

import msgspec

from ...core.vocabulary.errors import CorruptSnapshot, EngineError

Kind = TypeVar("Kind")

TRIES = 100
"""How often a file is renamed into a folder that other processes keep removing; each failure needs another removal in
between."""
NOT_THERE = (FileNotFoundError, NotADirectoryError)
_LATER = re.compile(rb"cutproof-record/([0-9]{1,9})[ \n]")
"""how the record of a later version begins; version 1 has no such line"""


class DraftLost(EngineError):
    """A draft's temporary file was deleted: a loss of power took it."""


class Temporaries:
    """Files that are on their way to their place: unsynced, a loss of power takes them."""

    FOLDER = "unsynced"

    def __init__(self, root: Path) -> None:
        self.folder = root / self.FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, task: str, data: bytes) -> Path:
        """A new file, whose name carries the task; written and closed."""
        path = self._new(task)
        try:
            with path.open("xb") as file:
                file.write(data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path

    def link_to(self, task: str, path: Path) -> Path | None:
        """A hard link of a file, in place of a new one; None if there is no such file, or it is on another disk."""
        linked = self._new(task)
        try:
            os.link(path, linked)
        except OSError:
            return None
        return linked

    def _new(self, task: str) -> Path:
        return self.folder / f"{quote(task, safe='')}@{secrets.token_hex(8)}"

    def listed(self, prefix: str = "") -> list[Path]:
        """In the order of their names; `prefix` is the beginning of the task's name."""
        return sorted(path for path in self.folder.iterdir() if self.task(path).startswith(prefix))

    @staticmethod
    def task(path: Path) -> str:
        return unquote(path.name.rpartition("@")[0])

    @classmethod
    def settle(cls, temporary: Path, target: Path, top: Path) -> None:
        """Make a temporary durable as `target`, with the folders up to `top`."""
        cls.link(temporary, target)
        sync_folders(target.parent, top)

    @classmethod
    def link(cls, temporary: Path, target: Path) -> None:
        """Sync a temporary, and give it its name, which is lost with the power until the folders are synced."""
        try:
            sync(temporary)
        except FileNotFoundError:
            raise DraftLost(f"{target.name}: its temporary file is gone") from None
        cls.place(temporary, target)

    @staticmethod
    def place(temporary: Path, target: Path) -> None:
        """Rename a temporary file to its place.  The folder is made, and made again if another process removes it while
        it is empty."""
        for _ in range(TRIES):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(temporary, target)
                return
            except (FileNotFoundError, FileExistsError):
                if not temporary.exists():
                    raise DraftLost(f"{target.name}: its temporary file is gone") from None
        raise EngineError(f"{target.name}: its folder {target.parent} cannot be made, or does not stay")


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync_folders(folder: Path, top: Path) -> None:
    """From `folder` up to `top`: another process may have made them and not synced them yet."""
    while folder != top:
        with suppress(FileNotFoundError):  # the file that was placed in it has been deleted already, and the folder too
            sync(folder)
        folder = folder.parent
    sync(top)


def content(path: Path, what: str) -> bytes | None:
    """The bytes of a file, None when there is none; raises CorruptSnapshot when it cannot be read."""
    try:
        return path.read_bytes()
    except NOT_THERE:
        return None
    except OSError as error:
        raise CorruptSnapshot(f"{what} cannot be read: {error.strerror}") from None


def delete(path: Path) -> bool:
    """Delete a file; whether there was one.  Another process may be deleting it too."""
    try:
        path.unlink()
    except (*NOT_THERE, IsADirectoryError):
        return False
    return True


def sealed(value: object) -> bytes:
    """The bytes of a record, of version 1: eight hexadecimal digits of CRC-32, a space, JSON."""
    body = msgspec.json.encode(value)
    return b"%08x " % zlib.crc32(body) + body


def body_of(data: bytes, what: str) -> bytes:
    """The JSON in a sealed file; raises CorruptSnapshot if it is torn, altered, or of a later version."""
    if later := _LATER.match(data):
        version = int(later[1])
        raise CorruptSnapshot(f"{what}: it has version {version} of the format of records, which is not known here")
    body = data[9:]
    if data[:9] != b"%08x " % zlib.crc32(body):
        raise CorruptSnapshot(f"{what}: its checksum does not fit its content")
    return body


def unsealed(data: bytes, kind: type[Kind], what: str) -> Kind:
    """Raises CorruptSnapshot as above, and for what is not the JSON of its kind."""
    try:
        return msgspec.json.decode(body_of(data, what), type=kind)
    except msgspec.DecodeError as error:
        raise CorruptSnapshot(f"{what}: {error}") from None
