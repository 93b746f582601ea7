"""Stores on disk: what several processes of one job write, read and delete at once.

A reader sees all of a file or nothing (see `durable`).  Each file carries a CRC-32 in
front of its content; docs/format.md has the bytes.  Below the root:

    snapshots/HANDLE        the snapshot of one task, the handle's slashes are folders; one that is not canonical is
                            a manifest, and names other files of this folder
    records/chk-N           the record that makes checkpoint N complete
    jobs/job-N              the record of a job
    positions/split-N       what at-most-once sources saved
    positions/begins-N      where a split's log begins, once some of it was discarded
    copies/                 snapshots and records that users have had copied or moved
    unsynced/TASK@UNIQUE    bytes on their way to one of the first three

A snapshot costs 0.6 ms of syncing, a position 0.1 ms, on ext4 on a virtual disk;
a real disk may take some ms.  The caller waits for it, because its acknowledgement
must.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...core.backends.stored import Loaded, read_snapshot
from ...core.vocabulary.errors import CorruptSnapshot, expect
from ...core.vocabulary.events import CompletedCheckpoint, JobRecord
from ...core.vocabulary.formats import (
    Filed,
    NewFile,
    encode,
    encode_manifest,
    first_file,
    text,
    text_of,
)
from ...core.vocabulary.ids import CheckpointId, Handle
from ...core.vocabulary.state import TaskState
from ...driver import ports
from .durable import NOT_THERE, Temporaries, content, delete, make_folders, sealed, sync, sync_folders, unsealed

COPIES = "copies"
"""the folder of the snapshots that users have had copied or moved, with folders like those of the store"""
COORDINATOR = "coordinator"
"""Temporaries with this prefix are the records of checkpoints and jobs."""
_RECORD = re.compile(r"chk-(\d+)")
_POSITION = re.compile(rb"(\d{20}) (\d{20}) ([0-9a-f]{8})\n")


class BadHandle(CorruptSnapshot):
    """A handle that would name a file outside the store, or that no file can be called."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a snapshot as temporary files, which nobody has synced.

    `before` are those that it needs besides, each with its name; `temporary` is that under its handle, and `text` the
    state in it, None if that is in several files.
    """

    handle: Handle
    temporary: Path
    text: str | None
    before: tuple[tuple[Handle, Path], ...] = ()


def below(folder: Path, name: str) -> Path:
    """The file or folder of a name with slashes; raises BadHandle: names come from files and from peers."""
    parts = name.split("/")
    if not all(part.isprintable() and 0 < len(part.encode()) < 256 and part not in (".", "..") for part in parts):
        raise BadHandle(f"{name!r} is not a name within the store")
    return folder.joinpath(*parts)


def _writer(handle: Handle) -> str:
    """The task that a handle names; its last part holds the task and the attempt."""
    name = handle.rpartition("/")[2]
    return name.rpartition("-")[0] or name


class DiskFiles:
    """Snapshots of tasks and the records of complete checkpoints."""

    def __init__(self, root: Path) -> None:
        self.temporaries = Temporaries(root)
        self.snapshots = root / "snapshots"
        self.records = root / "records"
        self._copied_to = root / COPIES
        self._is_synced = False
        """every record that is deleted stays deleted; unknown of those that an earlier process deleted"""
        make_folders(self.snapshots, self.records)

    def path(self, handle: Handle) -> Path:
        """Where a handle's bytes are; raises BadHandle."""
        return below(self.snapshots, handle)

    def begin(self, handle: Handle, state: TaskState, filed: Filed | None = None) -> Draft:
        self.path(handle)
        if filed is None:
            data = encode(state)
            return Draft(handle=handle, temporary=self._temporary(handle, data), text=text_of(data))
        before: list[tuple[Handle, Path]] = []
        try:
            for new in filed.new:
                self.path(new.file.name)
                before.append((new.file.name, self._linked(handle, new)))
            temporary = self._temporary(handle, encode_manifest(state, filed))
        except (OSError, BadHandle):
            for _, written in before:
                written.unlink(missing_ok=True)
            raise
        return Draft(handle=handle, temporary=temporary, text=None, before=tuple(before))

    def _temporary(self, handle: Handle, data: bytes) -> Path:
        return self.temporaries.write(_writer(handle), data)

    def _linked(self, handle: Handle, new: NewFile) -> Path:
        """A hard link if this disk has the bytes, as RocksDB's files; they may have been deleted by now."""
        linked = self.temporaries.link_to(_writer(handle), Path(new.path)) if new.path is not None else None
        return linked if linked is not None else self._temporary(handle, new.data)

    def names(self, draft: ports.Draft) -> tuple[Handle, ...]:
        draft = expect(draft, Draft)
        return (*(name for name, _ in draft.before), draft.handle)

    def link(self, draft: ports.Draft, name: Handle | None = None) -> None:
        """Give each file of a draft its name, that under its handle last; or only that one.  Raises DraftLost when a
        temporary file was deleted."""
        draft = expect(draft, Draft)
        for one, temporary in (*draft.before, (draft.handle, draft.temporary)):
            if name in (None, one):
                self.temporaries.link(temporary, self.path(one))

    def unlink(self, draft: ports.Draft) -> None:
        for name in self.names(draft):
            delete(self.path(name))

    def finish(self, draft: ports.Draft) -> str:
        """Sync the folders of a linked draft; until then nobody acknowledges it, and it does not matter which of its
        names are lost.  Returns the text of what can be read under the handle."""
        draft = expect(draft, Draft)
        for folder in dict.fromkeys(self.path(name).parent for name in self.names(draft)):
            sync_folders(folder, self.snapshots)
        return draft.text if draft.text is not None else text(self.read(draft.handle).state)

    def drop(self, draft: ports.Draft) -> None:
        draft = expect(draft, Draft)
        for temporary in (*(temporary for _, temporary in draft.before), draft.temporary):
            temporary.unlink(missing_ok=True)

    def tear(self, handle: Handle, state: TaskState, filed: Filed | None = None) -> Handle:
        """Write half of the first file under its final name; not synced, since the writer is about to die."""
        data = encode(state) if filed is None else encode_manifest(state, filed)
        name, data = first_file(handle, data, filed.new if filed is not None else ())
        target = self.path(name)
        self.temporaries.place(self._temporary(handle, data[: len(data) // 2]), target)
        return name

    def read(self, handle: Handle) -> Loaded:
        """The snapshot under a handle; raises CorruptSnapshot, also when there is none."""
        return read_snapshot(handle, lambda name: content(self.path(name), name))

    def store(self, snapshot: CompletedCheckpoint) -> None:
        temporary = self.temporaries.write(COORDINATOR, sealed(snapshot.stored()))
        self.temporaries.settle(temporary, self._record(snapshot.checkpoint), self.records)

    def listed(self) -> tuple[CompletedCheckpoint, ...]:
        """Every complete checkpoint, oldest first; raises CorruptSnapshot for a record that cannot be read."""
        return tuple(record for checkpoint in self._recorded() if (record := self._read_record(checkpoint)))

    def survey(self) -> tuple[tuple[CompletedCheckpoint, ...], tuple[CheckpointId, ...]]:
        """As `listed`, and the checkpoints whose record cannot be read: the content of `SnapshotsListed`."""
        readable, unreadable = [], []
        for checkpoint in self._recorded():
            try:
                record = self._read_record(checkpoint)
            except CorruptSnapshot:
                unreadable.append(checkpoint)
                continue
            if record is not None:
                readable.append(record)
        return tuple(readable), tuple(unreadable)

    def _record(self, checkpoint: CheckpointId) -> Path:
        return self.records / f"chk-{checkpoint}"

    def _recorded(self) -> list[CheckpointId]:
        names = (_RECORD.fullmatch(path.name) for path in self.records.iterdir())
        return sorted(CheckpointId(int(name[1])) for name in names if name)

    def _read_record(self, checkpoint: CheckpointId) -> CompletedCheckpoint | None:
        """None when it has been deleted since it was listed."""
        what = f"the record of checkpoint {checkpoint}"
        data = content(self._record(checkpoint), what)
        if data is None:
            return None
        record = unsealed(data, CompletedCheckpoint, what)
        if record.checkpoint != checkpoint:
            raise CorruptSnapshot(f"{what}: it is that of checkpoint {record.checkpoint}")
        return record

    def discard(self, handles: tuple[Handle, ...], checkpoint: CheckpointId | None) -> list[Handle]:
        """Delete files and a checkpoint's record; returns the handles that were there.

        The record is deleted first, and durably: if it came back after a loss of power, it would refer to files that
        are deleted.  A coordinator may have died, or the disk may have failed, before an earlier deletion was durable.
        """
        paths = {handle: self.path(handle) for handle in handles}
        try:
            if checkpoint is not None and delete(self._record(checkpoint)):
                self._is_synced = False
            if not self._is_synced:
                sync(self.records)
                self._is_synced = True
        except OSError as error:
            raise ports.NotDeleted(str(error), handles, checkpoint, []) from None
        deleted: list[Handle] = []
        left: dict[Handle, OSError] = {}
        for handle, path in paths.items():
            try:
                if delete(path):
                    deleted.append(handle)
            except OSError as error:
                left[handle] = error
        for folder in dict.fromkeys(paths[handle].parent for handle in deleted):
            self._remove_if_empty(folder)
        if left:
            raise ports.NotDeleted(str(next(iter(left.values()))), tuple(left), None, deleted)
        return deleted

    def has(self, handle: Handle) -> bool:
        return self.path(handle).is_file()

    def _remove_if_empty(self, folder: Path) -> None:
        """And the folders above it.  A folder that another process fills, or has removed, is left as it is."""
        while folder != self.snapshots:
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return
            folder = folder.parent

    def written_for(self, handle: Handle) -> list[Handle]:
        """In the order of their names."""
        folder, name = self.path(handle).parent, self.path(handle).name
        return [file for file in self._below(folder) if file.rpartition("/")[2].startswith(f"{name}.")]

    def handles(self) -> list[Handle]:
        """In the order of their names."""
        return list(self._below(self.snapshots))

    def _below(self, folder: Path) -> Iterator[Handle]:
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except NOT_THERE:
            return
        for entry in entries:
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(path)
            else:
                yield Handle(path.relative_to(self.snapshots).as_posix())

    # -- copies in a directory of the user --

    @property
    def _copies(self) -> DiskFiles | None:
        """The store of the copies, once there is one."""
        return DiskFiles(self._copied_to) if self._copied_to.is_dir() else None

    def copy(self, handle: Handle, change: Callable[[bytes], bytes] | None = None) -> None:
        data = content(self.path(handle), handle)
        if data is None:
            raise CorruptSnapshot(f"{handle} is not in the store")
        data = data if change is None else change(data)
        copies = DiskFiles(self._copied_to)
        copies.temporaries.settle(copies._temporary(handle, data), copies.path(handle), copies.snapshots)

    def tear_copy(self, handle: Handle) -> None:
        data = content(self.path(handle), handle) or b""
        copies = DiskFiles(self._copied_to)
        copies.temporaries.place(copies._temporary(handle, data[: len(data) // 2]), copies.path(handle))

    def has_copy(self, handle: Handle) -> bool:
        copies = self._copies
        if copies is None or not copies.has(handle):
            return False
        original = content(self.path(handle), handle)
        return original is None or copies.path(handle).read_bytes() == original

    def store_copy(self, snapshot: CompletedCheckpoint) -> None:
        DiskFiles(self._copied_to).store(snapshot)

    def copied(self) -> tuple[CompletedCheckpoint, ...]:
        copies = self._copies
        return copies.survey()[0] if copies is not None else ()

    def keep_copies(self, handles: Sequence[Handle]) -> None:
        """If the record of a copy cannot be read, nobody knows which files it needs, and all of them stay."""
        copies, kept = self._copies, frozenset(handles)
        if copies is not None and not copies.survey()[1]:
            copies.discard(tuple(name for name in copies.handles() if name not in kept), None)

    def unsynced(self, prefix: str = "") -> list[Path]:
        """Temporary files of the tasks whose names begin so, also of those whose writer is dead."""
        return self.temporaries.listed(prefix)

    def lose_unsynced(self, tasks: Sequence[str]) -> int:
        """Delete what a loss of power takes: temporary files of these tasks, whoever wrote them; returns how many there
        were."""
        lost = [path for path in self.unsynced() if self.temporaries.task(path) in tasks]
        return sum(delete(path) for path in lost)


class DiskJobs:
    """The durable record of each job, and positions that at-most-once sources saved.

    A position's file is one line of fixed length, "attempt position crc": a change is
    one small write in place, under a lock that the kernel releases when its owner dies.
    The file is synced after the lock is released, so that a process that is stopped while
    it syncs blocks no other; a caller returns when its own change is synced.
    """

    def __init__(self, root: Path) -> None:
        self.temporaries = Temporaries(root)
        self.jobs = root / "jobs"
        self.positions = root / "positions"
        make_folders(self.jobs, self.positions)
        self._entered: set[str] = set()

    def save(self, record: JobRecord) -> None:
        temporary = self.temporaries.write(COORDINATOR, sealed(record))
        self.temporaries.settle(temporary, self.jobs / f"job-{record.job}", self.jobs)

    def load(self, job: int) -> JobRecord | None:
        """None for a job that nobody saved; raises CorruptSnapshot when the record is torn or altered."""
        what = f"the record of job {job}"
        data = content(self.jobs / f"job-{job}", what)
        return None if data is None else unsealed(data, JobRecord, what)

    def save_position(self, split: int, position: int, attempt: int) -> bool:
        """Save a split's next position, unless a newer attempt has read it: then refuse.

        Raises CorruptSnapshot when what is there is torn or altered.
        """
        with self._opened(f"split-{split}") as descriptor:
            with _locked(descriptor):
                if self._line(descriptor, split)[0] > attempt:
                    return False
                _write_line(descriptor, attempt, position)
            os.fdatasync(descriptor)
        return True

    def trim(self, split: int, offset: int) -> None:
        """Raises CorruptSnapshot as above."""
        with self._opened(f"begins-{split}") as descriptor, _locked(descriptor):
            if self._line(descriptor, split)[1] < offset:
                _write_line(descriptor, 0, offset)

    def begins(self, split: int) -> int:
        """The first offset that a split's log still holds.  Raises CorruptSnapshot as above."""
        with self._opened(f"begins-{split}") as descriptor, _locked(descriptor):
            return self._line(descriptor, split)[1]

    def load_positions(self, splits: tuple[int, ...], attempt: int) -> dict[int, int]:
        """The saved positions; from now on older attempts are refused.  Raises CorruptSnapshot as above."""
        return {split: self._fence(split, attempt) for split in splits}

    def _fence(self, split: int, attempt: int) -> int:
        with self._opened(f"split-{split}") as descriptor:
            with _locked(descriptor):
                fence, position = self._line(descriptor, split)
                if fence < attempt:
                    _write_line(descriptor, attempt, position)
            os.fdatasync(descriptor)
        return position

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        descriptor = os.open(self.positions / name, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if name not in self._entered:  # whoever made the file may have died before he synced its name
                sync(self.positions)
                self._entered.add(name)
            yield descriptor
        finally:
            os.close(descriptor)

    @staticmethod
    def _line(descriptor: int, split: int) -> tuple[int, int]:
        return position_in(os.pread(descriptor, 100, 0), split)


def position_in(data: bytes, split: int) -> tuple[int, int]:
    """(attempt, position) in the file of a split; zeros for an empty file, whose maker did not come to write.  Raises
    CorruptSnapshot."""
    if not data:
        return 0, 0
    line = _POSITION.fullmatch(data)
    if line is None or int(line[3], 16) != zlib.crc32(data[:41]):
        raise CorruptSnapshot(f"the position of split {split}: its checksum does not fit its content")
    return int(line[1]), int(line[2])


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _write_line(descriptor: int, attempt: int, position: int) -> None:
    line = b"%020d %020d" % (attempt, position)
    os.pwrite(descriptor, line + b" %08x\n" % zlib.crc32(line), 0)
