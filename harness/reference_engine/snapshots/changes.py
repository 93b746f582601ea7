"""Commands that change a directory of snapshots, each in steps after any of which its process may die (SNAP-3, SNAP-4).

A file is written aside, synced, renamed; files come before the record that names them.  So a record never names a file
that is not there, and replacing or deleting a record is the one moment at which a snapshot changes.  Before a command
changes a directory, it notes there which files it is about to write or delete.  The next command ends an interrupted
one: of the noted files it deletes those that no record needs.  That is right on either side of that moment, once the
records are synced: a former one must not come back with the power when its files are deleted.
A new directory has no note: it is made aside, and renamed when all of it is durable.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from ....reference_impl.core.vocabulary.errors import CorruptSnapshot
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint, JobRecord
from ....reference_impl.core.vocabulary.ids import Handle, TaskId
from ....reference_impl.core.vocabulary.ordering import ordered
from ....reference_impl.driver.ports import NotDeleted
from ....reference_impl.processes.disk.durable import Temporaries, delete, sealed, sync, sync_folders, unsealed
from ....reference_impl.processes.disk.files import DiskFiles, position_in
from ...runtime.exit_codes import HarnessFailed, UsageError
from ...runtime.progress import Progress
from ...scenario.files import text_of_history
from ...scenario.reading import bytes_of
from .beginning import RUN, demand_as_reported, demand_of_ancestor, demand_of_run, run_before, write_run
from .beside import checked, demand_whole_beside
from .directory import (
    JOBS,
    LIMIT_BYTES,
    LOGS,
    POSITIONS,
    RECORDS,
    SNAPSHOTS,
    Directory,
    demand_nothing_within,
    demand_outside,
    locked,
    root_of,
    said,
)
from .inventory import Change
from .recovery import demand_unneeded
from .refiling import entries_file, handles_for, refiled

TOOL = "snapshots-tool"
"""whose temporary files these are"""
NOTE = "unfinished"
LOG_BEGINNINGS = "begins-*"


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A command under way: what it is about to write or delete."""

    command: str
    snapshot: int
    names: tuple[Handle, ...] = ()
    logs: tuple[str, ...] = ()


def unfinished(root: Path) -> Unfinished | None:
    """The command that was interrupted in a directory, if any."""
    path = root / NOTE
    if not os.path.lexists(path):
        return None
    try:
        return unsealed(bytes_of(path, LIMIT_BYTES), Unfinished, str(path))
    except (CorruptSnapshot, RecursionError) as error:
        raise UsageError(
            f"{said(error)}; remove this file: it only lists files that an interrupted command may have left"
        ) from None


@contextmanager
def changing(root: Path) -> Iterator[Changing]:
    """The directory, to be changed by this process alone; what an interrupted command has left is deleted first."""
    with locked(root, alone=True):
        before = unfinished(root)
        made = Changing(root)
        made.directory.demand_readable()
        if before is not None:
            made.end(before)
        try:
            yield made
        except BaseException:
            under_way = unfinished(root)
            if under_way is not None:
                Changing(root).end(under_way)
            raise


class Changing:
    """A directory that is locked, and what is done to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = Directory(root)
        self._files = DiskFiles(root)
        self._temporaries = Temporaries(root)

    # -- steps ---------------------------------------------------------------------------

    def note(self, command: Unfinished) -> None:
        """Make durable what is about to be written or deleted."""
        self.put(self.root / NOTE, sealed(command))

    def put(self, path: Path, data: bytes) -> None:
        """Make a file durable, with all folders above it: some may be new."""
        self._temporaries.settle(self._temporaries.write(TOOL, data), path, self.root)

    def store(self, record: CompletedCheckpoint) -> None:
        self.put(_record_of(self.root, record.checkpoint), sealed(record.stored()))
        self.directory = Directory(self.root)

    def forget(self, number: int) -> None:
        """Delete a record: from here on its snapshot is not there."""
        if delete(_record_of(self.root, number)):
            sync(self.root / RECORDS)
        self.directory = Directory(self.root)

    def end(self, command: Unfinished) -> tuple[list[str], list[str]]:
        """Delete those of the noted files that no snapshot needs, then the note; returns the deleted and the kept.
        Raises HarnessFailed if the disk does not delete one: the note stays, and the next command tries again.

        The records are synced first: a command may have been interrupted after it replaced or deleted one, and before
        that was durable."""
        self.directory.demand_readable()
        records = self.directory.records.values()
        needed = frozenset(name for record in records for name in self.directory.needed(record))
        logs = tuple(dict.fromkeys(log for record in records for log in record.logs))
        unneeded = [name for name in command.names if name not in needed and _is_name(self.directory.path, name)]
        try:
            sync(self.root / RECORDS)
            deleted = self._files.discard(tuple(unneeded), None)
            for log in command.logs:
                if _has_log(self.directory, log) and not any(_overlap(log, other) for other in logs):
                    shutil.rmtree(self.directory.log(log))
            self._files.lose_unsynced([TOOL])
        except (NotDeleted, OSError) as error:
            raise HarnessFailed(
                f"{self.root}: a file that no snapshot needs cannot be deleted ({error}); repeat the command"
            ) from error
        delete(self.root / NOTE)
        sync(self.root)
        return [str(name) for name in deleted], [str(name) for name in command.names if name in needed]

    # -- a snapshot is written ---------------------------------------------------------------

    def write(self, source: Directory, record: CompletedCheckpoint, to: str | None, progress: Progress) -> list[str]:
        """Write a snapshot of `source` into this directory: its files, then its record; returns the names.  `to`: the
        format; None: as it is.  Raises UsageError, which names the file, if some file is missing or altered."""
        progress.step(f"writing {self.root.name}", len(record.handles))
        handles = record.handles if to is None else handles_for(record, to)
        files: dict[TaskId, tuple[Handle, ...]] = {}
        written: list[str] = []
        try:
            for done, (task, handle) in enumerate(record.handles.items()):
                progress.advance(done)
                loaded = source.restored(record, task)
                if to is None:
                    parts = [(name, source.content(name) or b"") for name in (*(f.name for f in loaded.files), handle)]
                else:
                    parts = list(refiled(loaded.state, handles[task], to))
                for name, data in parts:
                    self._refuse_to_replace(name, data)
                    self.put(self.directory.path(name), data)
                    written.append(str(name))
                if len(parts) > 1:
                    files[task] = tuple(name for name, _ in parts[:-1])
                if ordered(self.directory.load(handles[task]).state) != ordered(loaded.state):
                    raise CorruptSnapshot(f"{handles[task]}: it was not written as it is")
            if source.root != self.root:
                written += self._copy_logs(source, record)
        except CorruptSnapshot as error:
            raise UsageError(f"{source.root / SNAPSHOTS}: {said(error)}; nothing was changed") from None
        self.store(
            msgspec.structs.replace(
                record,
                handles=handles,
                files=files,
                format=to if to is not None else record.format,
                increments=0 if to is not None else record.increments,
            )
        )
        return list(dict.fromkeys(written))

    def refuse_to_replace(self, source: Directory, record: CompletedCheckpoint) -> None:
        """Raise UsageError if a file or a log of a snapshot is here with other content, and is needed."""
        for name in source.needed(record):
            if _has_file(self.directory, name):
                self._refuse_to_replace(name, source.content(name) or b"")
        for log in dict.fromkeys(record.logs):
            self._refuse_other_log(source, log)

    def _refuse_to_replace(self, name: Handle, data: bytes) -> None:
        """Raise UsageError if another snapshot needs a file of this name with other content."""
        there = self.directory.content(name)
        if there is None or there == data:
            return
        for number, other in self.directory.records.items():
            if name in self.directory.needed(other):
                raise UsageError(
                    f"{self.directory.path(name)} is there already, and its snapshot {number} needs it as it is; "
                    "name another directory, or convert the snapshot first, which gives its files other names"
                )

    def _refuse_other_log(self, source: Directory, log: str) -> None:
        """Raise UsageError if another log of this name is here, whether any snapshot needs it or not."""
        files = _content(source.log(log))
        for name, data in _content(self.directory.log(log)).items():
            if files.get(name) != data:
                raise UsageError(f"{self.directory.log(log) / name} is there already; name another directory")

    def _copy_logs(self, source: Directory, record: CompletedCheckpoint) -> list[str]:
        """The logs to which a snapshot refers."""
        names: list[str] = []
        for log in dict.fromkeys(record.logs):
            self._refuse_other_log(source, log)
            for name, data in _content(source.log(log)).items():
                self.put(self.directory.log(log) / name, data)
                names.append(f"{LOGS}/{log}/{name}")
        return names

    def copy_beside(self, source: Directory) -> None:
        """What a job that begins here has to know: which numbers former jobs have used, where the logs of the sources
        begin, and what the run that took the snapshot has committed.  The greater numbers count if some are here.
        Raises UsageError if a file cannot be read; then nothing is written."""
        beside: tuple[tuple[str, str, Callable[[bytes, bytes], bytes]], ...]
        beside = ((JOBS, "*", _greater_numbers), (POSITIONS, LOG_BEGINNINGS, _later_beginning))
        files: list[tuple[Path, bytes]] = []
        for top, pattern, greater in beside:
            folder = source.owner / top
            for path in sorted(folder.glob(pattern)) if folder.is_dir() else ():
                data, here = checked(path), self.root / top / path.name
                if os.path.lexists(here):
                    try:
                        data = greater(checked(here), data)
                    except CorruptSnapshot as error:
                        raise UsageError(f"{path} or {here}: {said(error)}; restore this file from a copy") from None
                files.append((here, data))
        before = run_before(source.root)
        is_told = run_before(self.root) is not None
        for path, data in files:
            self.put(path, data)
        if before is not None and not is_told:
            (self.root / RUN).mkdir(exist_ok=True)
            write_run(self.root / RUN, *before)


def _greater_numbers(here: bytes, there: bytes) -> bytes:
    """The record of a job, with the greater of each number that two directories know as used."""
    mine, other = (unsealed(one, JobRecord, "the record of a job") for one in (here, there))
    names = ("attempt", "next_checkpoint", "version", "had_snapshot", "has_begun")
    return sealed(msgspec.structs.replace(mine, **{one: max(getattr(mine, one), getattr(other, one)) for one in names}))


def _later_beginning(here: bytes, there: bytes) -> bytes:
    """The later of two beginnings of a source's log: what lies before it is discarded."""
    return max(here, there, key=lambda one: position_in(one, 0)[1])


def _content(folder: Path) -> dict[str, bytes]:
    """The files of a log, by name; none if there is no such log."""
    return {path.name: bytes_of(path, LIMIT_BYTES) for path in sorted(folder.iterdir())} if folder.is_dir() else {}


def _has_file(directory: Directory, name: Handle) -> bool:
    return _is_name(directory.path, name) and os.path.lexists(directory.path(name))


def _has_log(directory: Directory, log: str) -> bool:
    return _is_name(directory.log, log) and os.path.lexists(directory.log(log))


def _overlap(one: str, other: str) -> bool:
    """Whether two logs are one, or one of them lies in the folder of the other."""
    return all(a == b for a, b in zip(one.split("/"), other.split("/"), strict=False))


def _record_of(root: Path, number: int) -> Path:
    return root / RECORDS / f"chk-{number}"


def _is_name(place: Callable[[str], Path], name: str) -> bool:
    """Whether a record's name can be one within the directory."""
    try:
        place(name)
    except CorruptSnapshot:
        return False
    return True


# -- the commands --------------------------------------------------------------------------


def convert(here: Changing, named: str, to: str, progress: Progress) -> Change:
    """Write a snapshot in another format, all files anew, and replace its record; then delete its former files that no
    other snapshot needs."""
    number = here.directory.number(named)
    record = here.directory.record(number)
    _demand_whole(here.directory, record)
    if record.format == to and not record.increments:
        return _change(number, was_done=True)
    handles = handles_for(record, to).values()
    before = here.directory.needed(record)
    names = (*before, *handles, *(entries_file(handle) for handle in handles))
    command = Unfinished(command="convert", snapshot=number, names=tuple(dict.fromkeys(names)))
    here.note(command)
    written = here.write(here.directory, record, to, progress)
    deleted, kept = here.end(command)
    return _change(number, written=written, deleted=deleted, kept=[name for name in kept if name in before])


def delete_snapshot(here: Changing, named: str) -> Change:
    """Delete a snapshot, and its files that no other snapshot needs."""
    number = here.directory.number(named)
    if _may_have_been(here.directory, number):
        return _change(number, was_done=True)
    record = here.directory.record(number)
    demand_unneeded(here.directory, number)
    command = _deletion("delete", here.directory, record)
    here.note(command)
    here.forget(number)
    deleted, kept = here.end(command)
    return _change(number, deleted=deleted, kept=kept)


def move(here: Changing, named: str, target: Path, progress: Progress) -> Change:
    """Write a snapshot into another directory, new or not, then delete it here."""
    demand_outside(target)
    number = here.directory.number(named)
    if _may_have_been(here.directory, number) and _is_in(target, here.directory, number):
        return _change(number, target=str(target), was_done=True)
    record = here.directory.record(number)
    demand_unneeded(here.directory, number, "; fork copies it")
    _demand_whole(here.directory, record)
    demand_whole_beside(here.directory.owner)
    command = _deletion("move", here.directory, record)
    here.note(command)
    if os.path.lexists(target):
        written = _into_other(here.directory, record, target, progress)
    else:
        written = _into_new(here.directory, record, target, None, progress)
    here.forget(number)
    deleted, kept = here.end(command)
    return _change(number, target=str(target), written=written, deleted=deleted, kept=kept)


def fork(directory: Directory, named: str, target: Path, to: str | None, progress: Progress) -> Change:
    """Copy a snapshot with all that it needs into a new directory, from which a job can begin.  The caller has locked
    the directory."""
    demand_outside(target)
    number = directory.number(named)
    record = directory.record(number)
    _demand_whole(directory, record)
    demand_whole_beside(directory.owner)
    if not os.path.lexists(target):
        return _change(number, target=str(target), written=_into_new(directory, record, target, to, progress))
    other = _other_directory(directory, target)
    with locked(other, alone=False):
        there = Directory(other)
        if not _has_copy(there, directory, record, to):
            raise UsageError(f"{target} is there already, and a fork makes a new directory; name another one")
        demand_whole_beside(other)
        _make_durable(there, there.record(number))
    return _change(number, target=str(target), was_done=True)


def _deletion(command: str, directory: Directory, record: CompletedCheckpoint) -> Unfinished:
    return Unfinished(
        command=command, snapshot=int(record.checkpoint), names=directory.needed(record), logs=record.logs
    )


def _may_have_been(directory: Directory, number: int) -> bool:
    """Whether a snapshot that is not here may have been here.  Neither command takes the newest one away, so each that
    they have taken is older.  Of copies they take any, but the job has no older one as its newest."""
    last = (directory.newest or 0) - 1
    if directory.has_copies:
        last = max(last, Directory(directory.owner).newest or 0)
    return number not in directory.records and 0 < number <= last


def _is_in(target: Path, source: Directory, number: int) -> bool:
    """Whether a snapshot that is not in its directory any more is in another one.  Raises UsageError if it is damaged
    there, or if one is there that another run took."""
    if not os.path.lexists(target):
        return False
    root = _other_directory(source, target)
    with locked(root, alone=False):
        there = Directory(root)
        record = there.records.get(number)
        if record is None:
            return False
        if not _of_one_run(source.root, root):
            demand_of_run(there, record, source.root)
        _demand_whole(there, record)
    return True


def _other_directory(source: Directory, target: Path) -> Path:
    """The directory of snapshots that is there already as a target."""
    try:
        root = root_of(target)
    except UsageError:
        raise UsageError(f"{target} is there already, and is no directory of snapshots; name another one") from None
    if os.path.realpath(root) == os.path.realpath(source.root):
        raise UsageError(f"{target} is the directory itself; name another one")
    if source.has_copies and os.path.samefile(root, source.owner):
        raise UsageError(f"{target} is the directory to which these copies belong; name another one")
    demand_nothing_within(root)
    return root


def _into_other(source: Directory, record: CompletedCheckpoint, target: Path, progress: Progress) -> list[str]:
    """Write a snapshot into a directory that has others; returns the names of what was written."""
    with changing(_other_directory(source, target)) as into:
        demand_whole_beside(into.directory.owner)
        if _has_copy(into.directory, source, record, None):
            _make_durable(into.directory, into.directory.record(int(record.checkpoint)))
            return []
        if record.checkpoint in into.directory.records:
            raise UsageError(f"{target} has another snapshot {record.checkpoint} already; name another directory")
        command = Unfinished(
            command="write",
            snapshot=int(record.checkpoint),
            names=tuple(name for name in source.needed(record) if not _has_file(into.directory, name)),
            logs=tuple(log for log in record.logs if not _has_log(into.directory, log)),
        )
        if not _of_one_run(source.root, into.root):
            demand_of_ancestor(source, record, into.root)
        try:
            into.refuse_to_replace(source, record)
        except CorruptSnapshot as error:
            raise UsageError(f"{source.root / SNAPSHOTS}: {said(error)}; nothing was changed") from None
        into.note(command)
        into.copy_beside(source)
        written = into.write(source, record, None, progress)
        into.end(command)
        return written


def _of_one_run(source: Path, target: Path) -> bool:
    """Whether the snapshots of two directories are of one run, or no run is known of either."""
    one, other = run_before(source), run_before(target)
    if one is None or other is None:
        return one is other
    return one[0] == other[0] and text_of_history(one[1]) == text_of_history(other[1])


def _into_new(
    source: Directory, record: CompletedCheckpoint, target: Path, to: str | None, progress: Progress
) -> list[str]:
    """Make a directory aside, and rename it when it is whole."""
    target = Path(os.path.abspath(target))
    if not target.parent.is_dir():
        raise UsageError(f"there is no directory {target.parent}; make it first")
    with _new_aside(target) as aside:
        for name in (SNAPSHOTS, RECORDS, JOBS, POSITIONS):
            (aside / name).mkdir()
        made = Changing(aside)
        written = made.write(source, record, to, progress)
        made.copy_beside(source)
        sync(aside)
        try:
            os.rename(aside, target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise UsageError(f"{target} was made meanwhile by somebody else; name another directory") from None
            raise
    sync(target.parent)
    return written


@contextmanager
def _new_aside(target: Path) -> Iterator[Path]:
    """An empty folder beside a target, for this process alone; it is removed if what is to be made in it fails.  Raises
    UsageError if another command makes the target."""
    aside = target.parent / f".{target.name}.unfinished"
    in_the_way = UsageError(f"{aside} is in the way: it was not made by this command; remove it")
    busy = f"another command makes {target}, or has just made it; repeat this command when that one has ended"
    try:
        aside.mkdir()
    except FileExistsError:
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.lstat(aside).st_mode):
                raise in_the_way from None
    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(locked(aside, alone=True, busy=busy))
            is_there = os.path.samestat(os.fstat(descriptor), os.stat(aside))
        except FileNotFoundError:
            is_there = False
        if not is_there:  # it is the target by now
            raise UsageError(busy)
        if not _is_ours(aside):
            raise in_the_way
        try:
            if os.path.lexists(target):
                raise UsageError(busy)
            for path in sorted(aside.iterdir()):  # of a command that was interrupted
                shutil.rmtree(path)
            yield aside
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise


def _is_ours(aside: Path) -> bool:
    """Whether a folder is what an interrupted command may have left."""
    known = (SNAPSHOTS, RECORDS, JOBS, POSITIONS, LOGS, RUN, Temporaries.FOLDER)
    return all(path.name in known and path.is_dir() for path in aside.iterdir())


def _has_copy(there: Directory, source: Directory, record: CompletedCheckpoint, to: str | None) -> bool:
    """Whether another directory has this snapshot, as this command would write it."""
    other = there.records.get(int(record.checkpoint))
    if other is None:
        return False
    if other.format != to if to is not None else msgspec.structs.replace(other, files=record.files) != record:
        return False
    try:
        return list(other.handles) == list(record.handles) and all(
            ordered(source.load(handle).state) == ordered(there.restored(other, task).state)
            for task, handle in record.handles.items()
        )
    except CorruptSnapshot as error:
        raise UsageError(f"{there.root / SNAPSHOTS}: {said(error)}; nothing was changed") from None


def _make_durable(directory: Directory, record: CompletedCheckpoint) -> None:
    """Sync a snapshot that is there already: whoever wrote it may have been interrupted before he did."""
    files = [directory.path(name) for name in directory.needed(record) if _has_file(directory, name)]
    for log in dict.fromkeys(record.logs):
        files += sorted(directory.log(log).iterdir()) if _has_log(directory, log) else ()
    files.append(_record_of(directory.root, record.checkpoint))
    for path in files:
        sync(path)
    for folder in dict.fromkeys(path.parent for path in files):
        sync_folders(folder, directory.root)
    sync(Path(os.path.abspath(directory.root)).parent)


def _demand_whole(directory: Directory, record: CompletedCheckpoint) -> None:
    """Raise UsageError if a snapshot cannot be restored, or is not as its run has reported it."""
    if problem := directory.problem(record):
        raise UsageError(f"{directory.root / SNAPSHOTS}: {problem}; nothing was changed")
    try:
        demand_as_reported(directory, record)
    except UsageError as error:
        raise UsageError(f"{error}; nothing was changed") from None


def _change(
    number: int,
    *,
    target: str | None = None,
    written: list[str] | None = None,
    deleted: list[str] | None = None,
    kept: list[str] | None = None,
    was_done: bool = False,
) -> Change:
    return Change(
        snapshot=number,
        target=target,
        written=written or [],
        deleted=deleted or [],
        kept=kept or [],
        was_done=was_done,
    )
