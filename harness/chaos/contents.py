"""What the folder of a bank holds: read without changing anything, also where something is broken."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ...reports.nights.model import Failure, Night
from ..runtime.exit_codes import UsageError
from ..scenario.files import read_scenario
from ..scenario.model import Scenario
from ..scenario.reading import FileError
from . import records
from .records import FAILURES, NIGHTS, UNSHRUNK, NewerFormat, Unshrunk


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A file or a folder that is no sound part of a bank."""

    path: Path
    words: str
    """what is wrong, in one line"""


class Contents(msgspec.Struct, kw_only=True):
    """Everything in a bank, in any order."""

    failures: dict[str, Failure] = {}
    """by id"""
    scenarios: dict[str, Scenario] = {}
    """by the failure's id"""
    nights: dict[str, Night] = {}
    unshrunk: dict[Path, Unshrunk] = {}
    broken: list[Broken] = []

    @property
    def in_order(self) -> list[Night]:
        """The nights in the order of the bank (`Night.order`)."""
        return sorted(self.nights.values(), key=lambda night: (night.order, night.began, night.id))


def demand_bank(folder: Path) -> None:
    """Raise UsageError, in one line, if this is no bank."""
    if not folder.is_dir():
        raise UsageError(f"there is no bank {folder}")
    if not any((folder / name).exists() for name in (records.BANK, FAILURES, NIGHTS)):
        raise UsageError(f"{folder} is no bank of counterexamples: it has no {records.BANK}")


def contents_of(folder: Path) -> Contents:
    """Everything in the bank; raises NewerFormat if some of it is of a later version."""
    found = Contents(failures={}, scenarios={}, nights={}, unshrunk={}, broken=[])
    try:
        if (folder / records.BANK).exists():
            records.read_bank_file(folder / records.BANK)
    except NewerFormat:
        raise
    except FileError as error:
        found.broken.append(Broken(path=folder / records.BANK, words=str(error)))
    for path in _entries(folder / FAILURES):
        _take(found, path, _take_failure)
    for path in _entries(folder / NIGHTS):
        _take(found, path, _take_night)
    return found


def _entries(folder: Path) -> Iterator[Path]:
    """What lies in a folder, without what a write that was cut off has left."""
    if folder.is_dir():
        yield from (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))


def _take(found: Contents, path: Path, take: Callable[[Contents, Path], None]) -> None:
    try:
        take(found, path)
    except NewerFormat:
        raise
    except FileError as error:
        found.broken.append(Broken(path=path, words=str(error)))


def _take_failure(found: Contents, path: Path) -> None:
    _demand_folder(path)
    failure = records.read_failure(path / records.FAILURE)
    if failure.id != path.name:
        raise FileError(f"{path}: its failure has the id {failure.id[:64]!r}")
    if not _is_replay(failure):
        raise FileError(f"{path}: its command does something else than to replay it: {failure.replay[:80]!r}")
    found.scenarios[failure.id] = read_scenario(path / records.SCENARIO)
    found.failures[failure.id] = failure


def _is_replay(failure: Failure) -> bool:
    """Whether the command of a failure is one `cutproof replay` of it: people copy it, and a bank may be another's."""
    try:
        words = shlex.split(failure.replay)
    except ValueError:
        return False
    expected = ["cutproof", "replay", f"{FAILURES}/{failure.id}/{records.SCENARIO}"]
    return not words or (words[:3] == expected and shlex.join(words) == failure.replay)


def _take_night(found: Contents, path: Path) -> None:
    _demand_folder(path)
    night = records.read_night(path / records.NIGHT)
    if night.id != path.name:
        raise FileError(f"{path}: its night has the id {night.id[:64]!r}")
    found.nights[night.id] = night
    for one in _entries(path / UNSHRUNK):
        _take(found, one, _take_unshrunk)


def _take_unshrunk(found: Contents, path: Path) -> None:
    one = records.read_unshrunk(path)
    if (one.night, one.name) != (path.parents[1].name, path.name):
        raise FileError(f"{path}: it is of another night, or of another scenario")
    found.unshrunk[path] = one


def _demand_folder(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        raise FileError(f"{path} is no folder of a bank")
    if not records.ID.fullmatch(path.name):
        raise FileError(f"{path}: its name is no id")


def files_of(path: Path) -> Iterator[Path]:
    """A file, or all files of a folder, in the order of their names; links are not followed."""
    if path.is_symlink() or path.is_file():
        yield path
    elif path.is_dir():
        for inner in sorted(path.iterdir()):
            yield from files_of(inner)


def digest_of(path: Path) -> str:
    """A digest of a file, or of a folder with all its files, and their names."""
    found = hashlib.sha256()
    for one in files_of(path):
        found.update(f"{one.relative_to(path)}\0".encode("utf-8", "surrogateescape"))
        found.update(bytes(one.readlink()) if one.is_symlink() else one.read_bytes())
    return found.hexdigest()
