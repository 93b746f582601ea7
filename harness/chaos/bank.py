"""The bank: a folder of plain files that outlives every night.

    bank.json                          its format
    failures/ID/failure.json           a counterexample, written once and never changed, with its scenario.json
    nights/ID/night.json               a night, rewritten whole as it goes on
    nights/ID/unshrunk/                failing scenarios of the night that are still to be shrunk
    aside/                             what could not be read
    index.json                         what follows from the nights (`index`): it can be deleted
    lock                               held by the job that has the bank open

A file appears whole or not at all, and a failure's folder too.  So a job that is killed at any moment loses no more
than what it was writing.  The lock ends with the process that holds it, however it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ...properties.model.history import History
from ...reports.nights.model import Failure, Night
from ..runtime.exit_codes import HarnessFailed, UsageError
from ..scenario import files
from ..scenario.files import encoded, sync_folder, write_whole
from ..scenario.model import Scenario
from ..scenario.reading import FileError
from . import records
from .contents import Broken, Contents, contents_of, demand_bank, digest_of
from .records import ASIDE, FAILURES, NIGHTS, NOT_RUN, UNSHRUNK, BankFile, NewerFormat, Unshrunk

OLD = ".old-"
"""prefix of a failure's folder that is being replaced (`replace_failure`)"""


class BankFailed(HarnessFailed):
    """The bank cannot be written; the text is one line."""


class Bank:
    """A bank that is open for one job; a context manager."""

    def __init__(self, path: Path) -> None:
        """Open the bank, or begin one; put aside what is broken in it, and say so in `remarks`.

        Raises UsageError if it is in use, of a later version, or no bank.
        """
        self.path = path
        self.remarks: list[str] = []
        """what was put aside or mended, each in one line"""
        self._begin()
        self._lock = locked(path)
        try:
            self._check_format()
            with _reported(path):
                self._clean()
                self.contents: Contents = contents_of(path)
                for broken in self.contents.broken:
                    self.put_aside(broken)
                if not (path / records.BANK).exists():
                    write_whole(path / records.BANK, records.text_of(BankFile()), durable=True)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._lock.close()

    @property
    def failures(self) -> dict[str, Failure]:
        """By id."""
        return self.contents.failures

    @property
    def nights(self) -> list[Night]:
        """In the order of the bank (`Night.order`)."""
        return self.contents.in_order

    @property
    def unshrunk(self) -> dict[Path, Unshrunk]:
        """Failing scenarios that are still to be shrunk, by their files."""
        return self.contents.unshrunk

    def scenario(self, failure: str) -> Scenario:
        """The scenario of a failure of the bank."""
        return self.contents.scenarios[failure]

    def history(self, failure: str) -> History | None:
        """The recorded run of a failure in real time; None if there is none, or it cannot be read."""
        path = self.path / FAILURES / failure / records.HISTORY
        try:
            return files.read_history(path) if path.is_file() else None
        except FileError:
            return None

    def add_failure(self, failure: Failure, scenario: Scenario, history: History | None = None) -> None:
        """Write a failure that the bank does not have, all its files in one step."""
        if failure.id in self.failures:
            return
        parts = {
            records.FAILURE: records.text_of(failure),
            records.SCENARIO: files.text_of(scenario).encode(),
            **({records.HISTORY: encoded(history)} if history is not None else {}),
        }
        with _reported(self.path), self._new_folder(failure.id) as made:
            for name, data in parts.items():
                write_whole(made / name, data, durable=True)
        self.failures[failure.id] = failure
        self.contents.scenarios[failure.id] = scenario

    def replace_failure(self, failure: str, source: Path) -> None:
        """Let a folder of another bank be that of a failure, which this bank may have or not."""
        with _reported(self.path), self._new_folder(failure) as made:
            for one in sorted(source.iterdir()):
                if one.is_file() and not one.is_symlink():
                    write_whole(made / one.name, one.read_bytes(), durable=True)

    @contextlib.contextmanager
    def _new_folder(self, failure: str) -> Iterator[Path]:
        """A folder to be filled; at the end it takes its place among the failures.  An older one makes room first, and
        is put back if the machine ends in between (`_clean`)."""
        folder = self.path / FAILURES
        made, place, old = folder / f".{failure}-{secrets.token_hex(4)}", folder / failure, folder / f"{OLD}{failure}"
        made.mkdir()
        try:
            yield made
            if place.exists():
                place.rename(old)
            made.rename(place)
            sync_folder(folder)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def write_night(self, night: Night, *, durable: bool = False) -> None:
        """Write a night's record in place of the one before.  The folder of a night appears with its first record, and
        is on the disk before anything else is written into it."""
        folder = self.path / NIGHTS / night.id
        made = folder if folder.exists() else folder.with_name(f".{night.id}")
        with _reported(self.path):
            made.mkdir(exist_ok=True)
            write_whole(made / records.NIGHT, records.text_of(night), durable=durable or made != folder)
            if made != folder:
                made.rename(folder)
                sync_folder(folder.parent)
        self.contents.nights[night.id] = night

    def add_unshrunk(self, one: Unshrunk) -> Path:
        """Write a failing scenario; the night's record has been written before.  Returns its file."""
        path = self.path / NIGHTS / one.night / UNSHRUNK / one.name
        with _reported(self.path):
            if not path.parent.exists():
                path.parent.mkdir()
                sync_folder(path.parents[1])
            write_whole(path, records.text_of(one), durable=True)
        self.unshrunk[path] = one
        return path

    def drop_unshrunk(self, path: Path) -> None:
        """Forget a failing scenario that has become a failure, or turned out to be none."""
        self.unshrunk.pop(path, None)
        with _reported(self.path):
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others are left in it
                path.parent.rmdir()

    def add_not_run(self, night: str, name: str, text: str) -> str:
        """Keep a scenario that the subject could not run; returns its file, relative to the bank."""
        path = self.path / NIGHTS / night / NOT_RUN / f"{name}.json"
        with _reported(self.path):
            path.parent.mkdir(exist_ok=True)
            write_whole(path, text.encode())
        return str(path.relative_to(self.path))

    def put_aside(self, broken: Broken, *, from_elsewhere: bool = False) -> None:
        """Move what is broken (of another bank: a copy of it) out of the way, under a name that its bytes give."""
        path = broken.path
        with _reported(self.path):
            place = self.path / ASIDE / f"{path.parent.name}-{path.name}-{digest_of(path)[:8]}"
            place.parent.mkdir(exist_ok=True)
            if from_elsewhere:
                _copy(path, place)
            elif place.exists():  # the same bytes
                _remove(path)
            else:
                path.rename(place)
        if not from_elsewhere:
            self.remarks.append(f"{broken.words}; it was moved to {place}")

    def _begin(self) -> None:
        """Make the folders of a new bank; raises UsageError for a folder with anything else."""
        try:
            if self.path.exists() and any(self.path.iterdir()):
                demand_bank(self.path)
            for name in (FAILURES, NIGHTS):
                (self.path / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot open the bank {self.path}: {error.strerror or error}") from None

    def _check_format(self) -> None:
        """Raise NewerFormat for a bank of a later version, before anything of it is touched."""
        with contextlib.suppress(FileError):
            if (self.path / records.BANK).exists():
                try:
                    records.read_bank_file(self.path / records.BANK)
                except NewerFormat as error:
                    raise UsageError(str(error)) from None

    def _clean(self) -> None:
        """Remove what a write that was cut off has left: none of it was ever part of the bank."""
        for old in (self.path / FAILURES).glob(f"{OLD}*"):
            place = old.with_name(old.name.removeprefix(OLD))
            if not place.exists():
                old.rename(place)
        begun = [*(self.path / FAILURES).glob(".*"), *(self.path / NIGHTS).glob(".*")]
        for left in [*self.path.glob(".*.json.*"), *begun]:
            _remove(left)
        for left in (self.path / NIGHTS).glob("**/.*.json.*"):
            _remove(left)


def locked(folder: Path, *, shared: bool = False) -> IO[bytes]:
    """The lock of a bank: closing the file frees it.  Raises UsageError if a job has the bank open."""
    path = folder / records.LOCK
    try:
        file = path.open("rb" if shared and path.exists() else "ab")
    except OSError as error:
        raise UsageError(f"cannot open the bank {folder}: {error.strerror or error}") from None
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(f"another job has the bank {folder} open; wait for its end, or name another bank") from None
    except OSError as error:
        file.close()
        raise HarnessFailed(f"the bank {folder} cannot be locked: {error.strerror or error}") from None
    return file


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _copy(path: Path, place: Path) -> None:
    if place.exists():
        return
    half = place.with_name(f".{place.name}")
    _remove(half)
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, half, symlinks=True)
    else:
        shutil.copy2(path, half, follow_symlinks=False)
    half.rename(place)


@contextlib.contextmanager
def _reported(folder: Path) -> Iterator[None]:
    """Raises BankFailed if the bank cannot be written."""
    try:
        yield
    except OSError as error:
        raise BankFailed(
            f"cannot write into the bank {folder}: {error.strerror or os.strerror(error.errno or 0)}; "
            "what was written before is whole"
        ) from None
