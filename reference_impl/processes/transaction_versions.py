"""Transactions that another task than their writer commits, in the file store; and versions of the table.

    final/WRITER/BEGUN-NAME@CHECKPOINT.final   a final transaction, not visible by itself
    versions/MADE.TOKEN.json                   a version of the table: one rename makes visible what it names

A committer finds a transaction by its name, in whichever attempt's folder it is.  A fence
may move it at that moment, from a folder that the committer has not read yet to one that it
has read.  So one search that finds nothing proves nothing, but a second one does.  A final
transaction is not its writer's any more: no fence lists it and no abort reaches it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ..core.vocabulary.ids import CheckpointId, TaskId
from ..core.vocabulary.transactions import id_of, writer_in
from .transaction_folders import Account, decoded, encoded, make_folder, sync, transactions

FINAL = ".final"
LOOKS = 2
"""how often in a row nothing has to be found to prove that nothing is there"""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    checkpoint: CheckpointId
    names: tuple[str, ...]


# -- sealed transactions, in whichever folder ----------------------------------------------------


def sealed(root: Path, name: str, writer: TaskId) -> Account | None:
    """A sealed transaction; `writer` is its writer if its name has none."""
    for _ in range(LOOKS):
        found = [one for one in _unfinished(root, writer_in(name) or writer) if one.name == name]
        if found and found[-1].checkpoint is not None:
            return found[-1]
    return None


def newest_of_id(root: Path, name: str, writer: TaskId) -> Account | None:
    """The unfinished transaction of the same transactional id that was begun last, sealed or not."""
    return max(
        (one for one in _unfinished(root, writer) if id_of(one.name) == id_of(name)),
        key=lambda one: one.path.name,
        default=None,
    )


def _unfinished(root: Path, writer: TaskId) -> list[Account]:
    kinds = (root / kind / encoded(writer) for kind in ("live", "retired"))
    return transactions(*(folder for kind in kinds if kind.is_dir() for folder in sorted(kind.iterdir())))


def move_sealed(root: Path, name: str, writer: TaskId, to: Path) -> bool:
    """Rename a sealed transaction; whether it was there.  If a fence moves it just then, it is looked for again."""
    while (account := sealed(root, name, writer)) is not None:
        try:
            account.path.rename(to)
        except FileNotFoundError:
            if not to.parent.exists():
                raise
            continue
        sync(to.parent)
        return True
    return False


def expire(root: Path, name: str) -> bool:
    """Abort a sealed transaction, as an administrator who deletes its file; whether it was there."""
    while (account := sealed(root, name, TaskId(""))) is not None:
        try:
            account.path.unlink()
        except FileNotFoundError:
            continue
        sync(account.path.parent)
        return True
    return False


# -- versions of the table -----------------------------------------------------------------------------


def finalise(root: Path, name: str, writer: TaskId) -> bool:
    """Make a sealed transaction final; whether it is final now."""
    account = sealed(root, name, writer)
    if account is not None:
        folder = root / "final" / encoded(writer_in(name) or writer)
        make_folder(folder)
        move_sealed(root, name, writer, folder / (account.path.stem + FINAL))
    return name in finals(root)


def finals(root: Path) -> dict[str, Path]:
    """The final transactions, by name: visible or not yet."""
    return {decoded(path.stem.partition("-")[2].partition("@")[0]): path for path in _final_files(root)}


def _final_files(root: Path) -> Iterator[Path]:
    yield from sorted((root / "final").glob(f"*/*{FINAL}"), key=lambda path: path.name)


def publish(root: Path, version: Version) -> None:
    """Show everything that a version names, in one step."""
    folder = root / "versions"
    draft = folder / f"{secrets.token_hex(8)}.draft"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(version))
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / f"{time.time_ns():020d}.{draft.stem}.json")
    sync(folder)


def published(root: Path) -> dict[str, int]:
    """The transactions that some version shows: when the first version that names each was made, in ns since the
    epoch."""
    found: dict[str, int] = {}
    for path in sorted((root / "versions").glob("*.json")):
        version = msgspec.json.decode(path.read_bytes(), type=Version)
        made = path.stat().st_ctime_ns
        for name in version.names:
            found.setdefault(name, made)
    return found


def unpublished(root: Path) -> list[tuple[str, CheckpointId]]:
    """The transactions that are final and in no version: (name, the checkpoint it was sealed for)."""
    visible = published(root)
    return [(name, _checkpoint(path)) for name, path in finals(root).items() if name not in visible]


def _checkpoint(path: Path) -> CheckpointId:
    return CheckpointId(int(path.stem.partition("@")[2]))


def not_final(root: Path, names: Sequence[str]) -> list[str]:
    """Those of the names that cannot be published."""
    there = finals(root)
    return [name for name in names if name not in there]
