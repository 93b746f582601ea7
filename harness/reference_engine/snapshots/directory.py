"""A directory of snapshots, as a run leaves it: found, locked, and read without changing anything.

What lies there may come from anybody.  It is decoded as data, only below the directory, and never executed.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from ....reference_impl.core.backends.stored import Loaded, read_snapshot
from ....reference_impl.core.vocabulary.errors import CorruptSnapshot
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint, files_of
from ....reference_impl.core.vocabulary.formats import FORMATS, Manifest, StateFile, read, read_file
from ....reference_impl.core.vocabulary.ids import Handle, TaskId
from ....reference_impl.core.vocabulary.state import Ref, TaskState
from ....reference_impl.driver.durable.spills import all_elements
from ....reference_impl.processes.configuration import STORE
from ....reference_impl.processes.disk.durable import body_of, unsealed
from ....reference_impl.processes.disk.files import COPIES, below
from ....reference_impl.processes.disk.logs import DiskLogs
from ...runtime.exit_codes import UsageError, one_line, shortened
from ...scenario.reading import bytes_of, json_of

T = TypeVar("T")

SNAPSHOTS, RECORDS, LOGS = "snapshots", "records", "logs"
JOBS, POSITIONS = "jobs", "positions"
LIMIT_BYTES = 1 << 30
"""the largest size of one file"""
NEWEST = "newest"

_RECORD = re.compile(r"chk-(0|[1-9][0-9]{0,18})")
_NAMED = re.compile(r"(?:chk-)?([0-9]{1,19})")


class NotPermitted(CorruptSnapshot):
    """A file that this user may not read: whether it is whole is not known."""


class UnreadableRecord(msgspec.Struct, frozen=True):
    """The record of a snapshot that cannot be read, so nobody knows which files that snapshot needs."""

    id: int
    file: str
    problem: str


def root_of(folder: Path) -> Path:
    """The directory of snapshots that a user names: the folder itself, or the store of a saved run in it."""
    for one in (folder, folder / STORE):
        if _holds_snapshots(one):
            return one
    if not os.path.isdir(folder):
        raise UsageError(
            f"there is no directory {folder}; name the folder of a saved run, which `cutproof doctor` lists"
        )
    raise UsageError(
        f"{folder} holds no snapshots: neither it nor a folder {STORE} in it has the folders {RECORDS} and {SNAPSHOTS}"
    )


def _holds_snapshots(folder: Path) -> bool:
    return all(os.path.isdir(folder / name) for name in (SNAPSHOTS, RECORDS))


def owner_of(root: Path) -> Path:
    """Where the run, its jobs and their positions are: the directory itself, or that whose user's copies it holds."""
    real = Path(os.path.realpath(root))
    return real.parent if real.name == COPIES and _holds_snapshots(real.parent) else root


def demand_outside(target: Path) -> None:
    """Raise UsageError for a place in a directory of snapshots: all that lies there belongs to its own snapshots."""
    for above in Path(os.path.realpath(target)).parents:
        if _holds_snapshots(above):
            raise UsageError(f"{target} lies in {above}, a directory of snapshots; name a place outside of it")


def demand_nothing_within(root: Path) -> None:
    """Raise UsageError if another directory of snapshots lies in this one, other than the copies of its user."""
    for folder, folders, _ in os.walk(root):
        if Path(folder) not in (root, root / COPIES) and {SNAPSHOTS, RECORDS} <= {*folders}:
            raise UsageError(f"another directory of snapshots lies in {root}: {folder}; name another directory")


@contextmanager
def locked(root: Path, *, alone: bool, busy: str | None = None) -> Iterator[int]:
    """No job runs in the directory and no other `cutproof snapshots` changes it meanwhile; `alone`: none reads it
    either.  Nor does anybody change the directory to which copies belong.  The lock ends with its process.  Yields the
    open directory.  Raises UsageError, with the text `busy` if it is given, if somebody works there."""
    with ExitStack() as stack:
        if (owner := owner_of(root)) != root:
            stack.enter_context(locked(owner, alone=False, busy=busy))
        descriptor = os.open(root, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                busy
                or f"a job runs in {root}, or another `cutproof snapshots` works on it;"
                " repeat this command when that one has ended"
            ) from None
        yield descriptor


class Directory:
    """The snapshots of a directory, as its records list them now."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.owner = owner_of(root)
        """where the run, its jobs and their positions are"""
        _demand_plain(self.owner)
        self.records: dict[int, CompletedCheckpoint] = {}
        """by number of the checkpoint, in order"""
        self.unreadable: list[UnreadableRecord] = []
        found = [
            (int(match[1]), path) for path in (root / RECORDS).iterdir() if (match := _RECORD.fullmatch(path.name))
        ]
        for number, path in sorted(found):
            try:
                self.records[number] = _record(path, number)
            except Exception as error:  # a file that was altered with its checksum may hold anything
                self.unreadable.append(UnreadableRecord(number, str(path), said(error)))
        self._manifests: dict[Handle, TaskState | Manifest] = {}

    # -- which snapshots -----------------------------------------------------------------

    @property
    def has_copies(self) -> bool:
        """Whether these are copies that a user has had made: no job recovers from them."""
        return self.owner != self.root

    @property
    def newest(self) -> int | None:
        """The snapshot with which a new job begins, checkpoint or savepoint.  None if there is none, or if some record
        cannot be read: that may be the newest."""
        return max(self.records, default=None) if not self.unreadable else None

    def number(self, named: str) -> int:
        """The number of the snapshot that a user names: `3`, `chk-3` or `newest`; it may be of none."""
        if named == NEWEST:
            for one in self.unreadable:
                raise UsageError(f"{one.file} cannot be read ({one.problem}), and may be the newest; name a number")
            if self.newest is None:
                raise UsageError(f"{self.root} has no snapshot")
            return self.newest
        match = _NAMED.fullmatch(named)
        if match is None:
            raise UsageError(f"{named!r} names no snapshot; write its number, such as 3 or chk-3, or {NEWEST}")
        return int(match[1])

    def record(self, number: int) -> CompletedCheckpoint:
        """Raises UsageError if there is no such snapshot, or its record cannot be read."""
        if number in self.records:
            return self.records[number]
        for one in self.unreadable:
            if one.id == number:
                raise UsageError(f"{one.file} cannot be read ({one.problem}); restore this file from a copy")
        raise UsageError(f"{self.root} has no snapshot {number}; {self._has()}")

    def _has(self) -> str:
        numbers = list(self.records)
        shown = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
        return f"it has {shown}" if numbers else "it has none"

    def demand_readable(self) -> None:
        """Raise UsageError if some record cannot be read: its snapshot may need any file."""
        for one in self.unreadable:
            raise UsageError(
                f"{one.file} cannot be read ({one.problem}), and may need any file: nothing was changed; "
                "restore this file from a copy, or remove it to give its snapshot up"
            )

    # -- which files ---------------------------------------------------------------------

    def path(self, name: str) -> Path:
        """Raises CorruptSnapshot for a name that would lead out of the directory."""
        return below(self.root / SNAPSHOTS, name)

    def log(self, name: str) -> Path:
        """The folder of a log of a persistent channel; raises CorruptSnapshot as above."""
        return below(self.root / LOGS, name)

    def content(self, name: Handle) -> bytes | None:
        """The bytes of a file; None if there is none.  Raises NotPermitted."""
        return bytes_of(self.path(name), LIMIT_BYTES) if self.has(name) else None

    def has(self, name: Handle) -> bool:
        """Whether a file is there; raises NotPermitted if this user may not see or read it."""
        path = self.path(name)
        try:
            os.lstat(path)
            is_permitted = os.access(path, os.R_OK)
        except PermissionError:
            is_permitted = False
        except OSError:
            return False
        if not is_permitted:
            raise NotPermitted(f"{name}: no permission to read it")
        return True

    def size(self, name: Handle) -> int | None:
        """In bytes; None if the file is not there, or may not be seen."""
        try:
            return self.path(name).stat().st_size
        except (OSError, CorruptSnapshot):
            return None

    def needed(self, record: CompletedCheckpoint) -> tuple[Handle, ...]:
        """All files of a snapshot: those that its record names, and those that its manifests name."""
        named = files_of([record])
        manifested = [file.name for handle in record.handles.values() for file in self.files(handle)]
        return tuple(dict.fromkeys((*named, *manifested)))

    def files(self, handle: Handle) -> tuple[StateFile, ...]:
        """The files that the manifest under a handle names; none if it is canonical, or cannot be read."""
        try:
            found = self.first(handle)
        except CorruptSnapshot:
            return ()
        return found.files if isinstance(found, Manifest) else ()

    @cached_property
    def files_on_disk(self) -> tuple[Handle, ...]:
        """In the order of their names."""
        top = self.root / SNAPSHOTS
        return tuple(Handle(path.relative_to(top).as_posix()) for path in sorted(top.rglob("*")) if path.is_file())

    # -- what they hold ------------------------------------------------------------------

    def first(self, handle: Handle) -> TaskState | Manifest:
        """What the file under a handle holds: the whole state, or a manifest.  Raises CorruptSnapshot."""
        if handle not in self._manifests:
            found = self._tried(handle, lambda: read(self._demanded(handle)))
            if isinstance(found, TaskState):
                return found
            self._manifests[handle] = found
        return self._manifests[handle]

    def check(self, file: StateFile) -> None:
        """Raise CorruptSnapshot if a file is missing, or is not the one that was stored under its name."""
        self._tried(file.name, lambda: read_file(file, self._demanded(file.name)))

    def load(self, handle: Handle) -> Loaded:
        """The whole state under a handle, from all its files; raises CorruptSnapshot, which names the file."""
        try:
            return read_snapshot(handle, self.content)
        except CorruptSnapshot:
            raise
        except Exception as error:  # as above
            raise CorruptSnapshot(f"{handle}: {said(error)}") from None

    def misnamed(self, record: CompletedCheckpoint, task: TaskId) -> str:
        """What is wrong if a task's manifest names other files than the record does; "" if it names the same."""
        handle = record.handles[task]
        named = tuple(file.name for file in self.files(handle))
        same = named == record.files.get(task, ())
        return "" if same else f"{handle} names other files than the record chk-{record.checkpoint}"

    def restored(self, record: CompletedCheckpoint, task: TaskId) -> Loaded:
        """The state of a task; raises CorruptSnapshot if a file is not whole or not the one that its record means, or a
        log lacks what it refers to."""
        loaded = self.load(record.handles[task])
        for problem in (self.misnamed(record, task), *self.lacking(loaded.state)):
            if problem:
                raise CorruptSnapshot(problem)
        return loaded

    def problem(self, record: CompletedCheckpoint) -> str:
        """What keeps a snapshot from being restored; empty if nothing does."""
        try:
            for task in record.handles:
                self.restored(record, task)
        except CorruptSnapshot as error:
            return said(error)
        return ""

    def lacking(self, state: TaskState) -> list[str]:
        """What the logs lack to which a state refers: a restore reads all of it.  Raises NotPermitted."""
        refs = [ref for refs in state.spilled.values() for ref in refs if ref.end > ref.first]
        return [problem for ref in refs if (problem := self._lacks(ref))]

    def _lacks(self, ref: Ref) -> str:
        try:
            self.log(ref.log)
            all_elements(DiskLogs(self.root, whole_files=False), ref)
        except PermissionError:
            raise NotPermitted(f"the log {ref.log}: no permission to read it") from None
        except (CorruptSnapshot, OSError) as error:
            return f"the log {ref.log}: {said(error)}"
        return ""

    def _demanded(self, name: Handle) -> bytes:
        data = self.content(name)
        if data is None:
            raise CorruptSnapshot("it is missing")
        return data

    def _tried(self, name: Handle, action: Callable[[], T]) -> T:
        try:
            return action()
        except NotPermitted:
            raise
        except Exception as error:
            raise CorruptSnapshot(f"{name}: {said(error)}") from None


def said(error: Exception) -> str:
    """What is wrong with a file, in one line."""
    return shortened(str(error)) if isinstance(error, CorruptSnapshot) else one_line(error)


def _record(path: Path, number: int) -> CompletedCheckpoint:
    data = bytes_of(path, LIMIT_BYTES)
    json_of(body_of(data, path.name), str(path))
    record = unsealed(data, CompletedCheckpoint, path.name)
    if record.checkpoint != number:
        raise CorruptSnapshot(f"{path.name}: it is the record of checkpoint {record.checkpoint}")
    if record.format not in FORMATS:
        raise CorruptSnapshot(f"{path.name}: it has the unknown format {record.format!r}")
    for field in ("job", "attempt", "increments", "key_groups"):
        if (value := getattr(record, field)) is not None and value < 0:
            raise CorruptSnapshot(f"{path.name}: {field} is {value}, and cannot be less than 0")
    if not record.handles and not record.finished:  # of tasks that have all finished, there may be no state
        raise CorruptSnapshot(f"{path.name}: it names no state of any task")
    return record


def _demand_plain(root: Path) -> None:
    """Raise UsageError for a link, a pipe or a device in the directory: they would lead out of it, or never end."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                what = "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
                raise UsageError(f"{path} is {what}, which no run leaves in its store; remove it")
