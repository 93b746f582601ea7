"""The file store as somebody outside the engine sees it: read, and removed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec

from ..core.vocabulary.transactions import Row
from .transaction_folders import LIMIT, decoded, transactions
from .transaction_versions import finals, published, unpublished

PURGE_TRIES = 20


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


class FileReader:
    """An independent look at the store."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _committed_files(self) -> list[tuple[int, str, Path]]:
        """(when the file or its version was renamed, in ns since the epoch; transaction; file)."""
        versions = published(self._root)
        files = finals(self._root) if versions else {}
        shown = [(at, name, files[name]) for name, at in versions.items() if name in files]
        return sorted([*shown, *_in_folder(self._root / "committed")])

    def seen(self) -> list[str]:
        """The names of transactions that are visible now, in the order they became so."""
        return [name for _, name, _ in self._committed_files()]

    def passing(self) -> list[str]:
        """The names of committed transactions that are not part of the job's output: those of two-phase operators."""
        return [name for _, name, _ in sorted(_in_folder(self._root / "aside"))]

    def committed(self) -> list[tuple[str, Row]]:
        """(transaction, or "" for a plain row; row), in the order in which they became visible by the clocks of disk
        and writers."""
        timed = [
            (at, name, line.row) for at, name, path in self._committed_files() for line in lines(path.read_bytes())
        ]
        timed += [(line.at, "", line.row) for line in self._logged("appended.log")]
        return [(name, row) for _, name, row in sorted(timed, key=lambda one: one[:2])]

    def table(self) -> dict[tuple[int | None, ...], Row]:
        """The rows of idempotent sinks by identity, in the order these first came."""
        return {line.identity: line.row for line in self._logged("upserted.log")}

    def unfinished(self) -> list[tuple[str, str, int | None]]:
        """(transaction, "open" or "prepared", the checkpoint that it was prepared for); what is final and not
        visible counts as prepared."""
        folders = [*self._root.glob("live/*/*"), *self._root.glob("retired/*/*")]
        found = [
            (one.name, "open" if one.checkpoint is None else "prepared", one.checkpoint)
            for one in transactions(*folders)
        ]
        return [*found, *((name, "prepared", checkpoint) for name, checkpoint in unpublished(self._root))]

    def _logged(self, name: str) -> list[Line]:
        """A log's lines of all writers, as they were written."""
        found: dict[str, list[Line]] = {}
        # A folder may be retired between the two listings; its own name shows that it is the same one.
        for path in [*self._root.glob(f"live/*/*/{name}"), *self._root.glob(f"retired/*/*/{name}")]:
            data = _read_up_to_limit(path)
            if data is not None:
                found[path.parent.name] = lines(data)
        return sorted((line for one in found.values() for line in one), key=lambda line: line.at)

    def purge(self) -> None:
        """Remove the whole store.

        A process that still writes finds no folder to write to; what it made meanwhile is removed too.
        """
        for _ in range(PURGE_TRIES):
            shutil.rmtree(self._root, ignore_errors=True)
            if not self._root.exists():
                return
        shutil.rmtree(self._root)

    def close(self) -> None:
        """Nothing to close."""


def _in_folder(folder: Path) -> list[tuple[int, str, Path]]:
    with os.scandir(folder) as entries:
        return [
            (entry.stat().st_ctime_ns, decoded(Path(entry.path).stem.removeprefix("txn-")), Path(entry.path))
            for entry in entries
        ]


def _read_up_to_limit(path: Path) -> bytes | None:
    """The part of a log that counts; None when the log has just been moved."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return data[: int(path.with_name(path.name + LIMIT).read_text())]
    except FileNotFoundError:
        return data if path.exists() else None


def lines(data: bytes) -> list[Line]:
    """The whole lines; a line that is torn off is left out."""
    whole: Any = data[: data.rfind(b"\n") + 1]
    return msgspec.json.Decoder(Line).decode_lines(whole)
