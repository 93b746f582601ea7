"""Commands that change a directory of snapshots, each in steps after any of which its process may die (SNAP-3, SNAP-4).

A file is written aside, synced, renamed; files come before the record that names them.  So a record never names a file
that is not there, and replacing or deleting a record is the one moment at which a snapshot changes.  Before a command
writes its first file, it notes which files it is about to write or delete.  The next command ends an interrupted one:
of the noted files it deletes those that no record needs.  That is right on either side of that moment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ....reference_impl.core.backends.stored import Loaded
from ....reference_impl.core.vocabulary.errors import CorruptSnapshot
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint, JobRecord
from ....reference_impl.core.vocabulary.ids import Handle, TaskId
from ....reference_impl.core.vocabulary.ordering import ordered
from ....reference_impl.driver.ports import NotDeleted
from ....reference_impl.processes.disk.durable import Temporaries, delete, sealed, sync, unsealed
from ....reference_impl.processes.disk.files import DiskFiles, position_in
from ...runtime.exit_codes import HarnessFailed, UsageError
from ...runtime.progress import Progress
from ...scenario.files import text_of_history
from ...scenario.reading import bytes_of
from .beginning import RUN, demand_of_ancestor, run_before, write_run
from .directory import JOBS, LIMIT_BYTES, LOGS, POSITIONS, RECORDS, SNAPSHOTS, Directory, locked, root_of, said
from .inventory import Change
from .recovery import choices
from .refiling import entries_file, handles_for, refiled

TOOL = "snapshots-tool"
"""whose temporary files these are"""
NOTE = "unfinished"
LOG_BEGINNINGS = "begins-*"


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A command under way: what it is about to write or delete."""

    command: str
    snapshot: int
    target: str | None = None
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
        made = Changing(root, before)
        made.directory.demand_readable()
        if before is not None:
            made.end(before)
        try:
            yield made
        except BaseException:
            under_way = unfinished(root)
            if under_way is not None:  # nothing is complete yet, and what was written is deleted again
                Changing(root, None).end(under_way)
            raise


class Changing:
    """A directory that is locked, and what is done to it."""

    def __init__(self, root: Path, before: Unfinished | None) -> None:
        self.root = root
        self.before = before
        """the command that had been interrupted"""
        self.directory = Directory(root)
        self._files = DiskFiles(root)
        self._temporaries = Temporaries(root)

    # -- steps ---------------------------------------------------------------------------

    def note(self, command: Unfinished) -> None:
        """Make durable what is about to be written or deleted."""
        self._temporaries.settle(self._temporaries.write(TOOL, sealed(command)), self.root / NOTE, self.root)

    def put(self, top: str, path: Path, data: bytes) -> None:
        """Make a file durable below one of the folders."""
        self._temporaries.settle(self._temporaries.write(TOOL, data), path, self.root / top)

    def store(self, record: CompletedCheckpoint) -> None:
        self.put(RECORDS, self.root / RECORDS / f"chk-{record.checkpoint}", sealed(record))
        self.directory = Directory(self.root)

    def forget(self, number: int) -> None:
        """Delete a record: from here on its snapshot is not there."""
        if delete(self.root / RECORDS / f"chk-{number}"):
            sync(self.root / RECORDS)
        self.directory = Directory(self.root)

    def end(self, command: Unfinished) -> tuple[list[str], list[str]]:
        """Delete those of the noted files that no snapshot needs, then the note; returns the deleted and the kept.
        Raises HarnessFailed if the disk does not delete one: the note stays, and the next command tries again."""
        self.directory.demand_readable()
        records = self.directory.records.values()
        needed = frozenset(name for record in records for name in self.directory.needed(record))
        logs = frozenset(log for record in records for log in record.logs)
        unneeded = [name for name in command.names if name not in needed and _is_name(self.directory.path, name)]
        try:
            deleted = self._files.discard(tuple(unneeded), None)
            for log in command.logs:
                if log not in logs and _has_log(self.directory, log):
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
                loaded = _restored(source, handle)
                if to is None:
                    parts = [(name, source.content(name) or b"") for name in (*(f.name for f in loaded.files), handle)]
                else:
                    parts = list(refiled(loaded.state, handles[task], to))
                for name, data in parts:
                    self._refuse_to_replace(name, data)
                    self.put(SNAPSHOTS, self.directory.path(name), data)
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
            if self.is_there(name):
                self._refuse_to_replace(name, source.content(name) or b"")
        for log in dict.fromkeys(record.logs):
            self._refuse_other_log(source, log)

    def is_there(self, name: Handle) -> bool:
        return _is_name(self.directory.path, name) and os.path.lexists(self.directory.path(name))

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
                self.put(LOGS, self.directory.log(log) / name, data)
                names.append(f"{LOGS}/{log}/{name}")
        return names

    def copy_beside(self, source: Path) -> None:
        """What a job that begins here has to know: which numbers former jobs have used, where the logs of the sources
        begin, and what the run that took the snapshot has committed.  The greater numbers count if some are here."""
        beside: tuple[tuple[str, str, Callable[[bytes, bytes], bytes]], ...]
        beside = ((JOBS, "*", _greater_numbers), (POSITIONS, LOG_BEGINNINGS, _later_beginning))
        for top, pattern, greater in beside:
            for path in sorted((source / top).glob(pattern)) if (source / top).is_dir() else ():
                data, here = bytes_of(path, LIMIT_BYTES), self.root / top / path.name
                if os.path.lexists(here):
                    try:
                        data = greater(bytes_of(here, LIMIT_BYTES), data)
                    except CorruptSnapshot as error:
                        raise UsageError(f"{path} or {here}: {said(error)}; restore this file from a copy") from None
                self.put(top, here, data)
        before = run_before(source)
        if before is not None and run_before(self.root) is None:
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


def _has_log(directory: Directory, log: str) -> bool:
    return _is_name(directory.log, log) and os.path.lexists(directory.log(log))


def _is_name(place: Callable[[str], Path], name: str) -> bool:
    """Whether a record's name can be one within the directory."""
    try:
        place(name)
    except CorruptSnapshot:
        return False
    return True


# -- the commands --------------------------------------------------------------------------


def convert(root: Path, named: str, to: str, progress: Progress) -> Change:
    """Write a snapshot in another format, all files anew, and replace its record; then delete its former files that no
    other snapshot needs."""
    with changing(root) as here:
        number = here.directory.number(named)
        record = here.directory.record(number)
        if record.format == to and not record.increments:
            _demand_whole(here.directory, record)
            return _change(number, was_done=True)
        handles = handles_for(record, to).values()
        names = (*here.directory.needed(record), *handles, *(entries_file(handle) for handle in handles))
        command = Unfinished(command="convert", snapshot=number, names=tuple(dict.fromkeys(names)))
        before = here.directory.needed(record)
        here.note(command)
        written = here.write(here.directory, record, to, progress)
        deleted, kept = here.end(command)
        return _change(number, written=written, deleted=deleted, kept=[name for name in kept if name in before])


def delete_snapshot(root: Path, named: str) -> Change:
    """Delete a snapshot, and its files that no other snapshot needs."""
    with changing(root) as here:
        number = here.directory.number(named)
        if _has_been(here, "delete", number, None):
            return _change(number, was_done=True)
        here.directory.record(number)
        _refuse_needed(here, number)
        return _delete(here, number, "delete", None)


def _delete(here: Changing, number: int, command: str, target: str | None) -> Change:
    record = here.directory.record(number)
    noted = Unfinished(
        command=command, snapshot=number, target=target, names=here.directory.needed(record), logs=record.logs
    )
    here.note(noted)
    here.forget(number)
    deleted, kept = here.end(noted)
    return _change(number, target=target, deleted=deleted, kept=kept)


def move(root: Path, named: str, target: Path, progress: Progress) -> Change:
    """Write a snapshot into another directory, new or not, then delete it here."""
    aim = os.path.abspath(target)
    with changing(root) as here:
        number = here.directory.number(named)
        if _has_been(here, "move", number, aim):
            return _change(number, target=str(target), was_done=True)
        record = here.directory.record(number)
        _refuse_needed(here, number, "; fork copies it")
        if os.path.lexists(target):
            written = _into_other(here.directory, record, target, progress)
        else:
            written = _into_new(here.directory, record, target, None, progress)
        done = _delete(here, number, "move", aim)
        return msgspec.structs.replace(done, target=str(target), written=written)


def fork(root: Path, named: str, target: Path, to: str | None, progress: Progress) -> Change:
    """Copy a snapshot with all that it needs into a new directory, from which a job can begin."""
    with locked(root, alone=False):
        directory = Directory(root)
        number = directory.number(named)
        record = directory.record(number)
        if not os.path.lexists(target):
            return _change(number, target=str(target), written=_into_new(directory, record, target, to, progress))
        other = _other_directory(directory, target)
        with locked(other, alone=False):
            if not _has_copy(Directory(other), directory, record, to):
                raise UsageError(f"{target} is there already, and a fork makes a new directory; name another one")
        return _change(number, target=str(target), was_done=True)


def _refuse_needed(here: Changing, number: int, instead: str = "") -> None:
    """Raise UsageError for a snapshot with which a job would begin: the next one, or the last one after a failure."""
    chosen, newest = choices(here.directory), here.directory.newest
    if number in chosen:
        what = f"the newest of {here.root}" if number == newest else f"the one of {here.root}"
        unknown = "" if len(chosen) == 1 else " (no run there says how its last job began)"
        why = f"{what} which a recovery {'would' if len(chosen) == 1 else 'may'} choose{unknown}"
    elif number == newest:
        why = f"the newest of {here.root}, with which a new job begins"
    else:
        return
    raise UsageError(f"snapshot {number} is {why}: it stays{instead}")


def _other_directory(source: Directory, target: Path) -> Path:
    """The directory of snapshots that is there already as a target."""
    try:
        root = root_of(target)
    except UsageError:
        raise UsageError(f"{target} is there already, and is no directory of snapshots; name another one") from None
    if os.path.realpath(root) == os.path.realpath(source.root):
        raise UsageError(f"{target} is the directory itself; name another one")
    return root


def _into_other(source: Directory, record: CompletedCheckpoint, target: Path, progress: Progress) -> list[str]:
    """Write a snapshot into a directory that has others; returns the names of what was written."""
    with changing(_other_directory(source, target)) as into:
        if _has_copy(into.directory, source, record, None):
            return []
        if record.checkpoint in into.directory.records:
            raise UsageError(f"{target} has another snapshot {record.checkpoint} already; name another directory")
        command = Unfinished(
            command="write",
            snapshot=int(record.checkpoint),
            names=tuple(name for name in source.needed(record) if not into.is_there(name)),
            logs=tuple(log for log in record.logs if not _has_log(into.directory, log)),
        )
        if not _of_one_run(source.root, into.root):
            demand_of_ancestor(source, record, into.root)
        try:
            into.refuse_to_replace(source, record)
        except CorruptSnapshot as error:
            raise UsageError(f"{source.root / SNAPSHOTS}: {said(error)}; nothing was changed") from None
        into.note(command)
        into.copy_beside(source.root)
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
    if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(source.root)):
        raise UsageError(f"{target} lies in {source.root} itself; name another directory")
    if not target.parent.is_dir():
        raise UsageError(f"there is no directory {target.parent}; make it first")
    aside = target.parent / f".{target.name}.unfinished"
    if aside.is_symlink() or (os.path.lexists(aside) and not _is_ours(aside)):
        raise UsageError(f"{aside} is in the way: it was not made by this command; remove it")
    aside.mkdir(exist_ok=True)
    with locked(aside, alone=True):
        try:
            for path in sorted(aside.iterdir()):  # of a command that was interrupted
                shutil.rmtree(path)
            for name in (SNAPSHOTS, RECORDS, JOBS, POSITIONS):
                (aside / name).mkdir()
            made = Changing(aside, None)
            written = made.write(source, record, to, progress)
            made.copy_beside(source.root)
            sync(aside)
            os.rename(aside, target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    sync(target.parent)
    return written


def _is_ours(aside: Path) -> bool:
    """Whether a folder is what an interrupted command may have left."""
    known = (SNAPSHOTS, RECORDS, JOBS, POSITIONS, LOGS, RUN, Temporaries.FOLDER)
    return aside.is_dir() and all(path.name in known and path.is_dir() for path in aside.iterdir())


def _has_copy(there: Directory, source: Directory, record: CompletedCheckpoint, to: str | None) -> bool:
    """Whether another directory has this snapshot, as this command would write it."""
    other = there.records.get(int(record.checkpoint))
    if other is None:
        return False
    if other.format != to if to is not None else msgspec.structs.replace(other, files=record.files) != record:
        return False
    try:
        return list(other.handles) == list(record.handles) and all(
            ordered(source.load(handle).state) == ordered(there.load(other.handles[task]).state)
            for task, handle in record.handles.items()
        )
    except CorruptSnapshot as error:
        raise UsageError(f"{there.root / SNAPSHOTS}: {said(error)}; nothing was changed") from None


def _has_been(here: Changing, command: str, number: int, target: str | None) -> bool:
    """Whether the interrupted command was this one, and came so far that only its files were left to delete."""
    before = here.before
    asked = (command, number, target)
    return (
        number not in here.directory.records
        and before is not None
        and (before.command, before.snapshot, before.target) == asked
    )


def _demand_whole(directory: Directory, record: CompletedCheckpoint) -> None:
    """Raise UsageError if a snapshot cannot be restored."""
    for handle in record.handles.values():
        try:
            _restored(directory, handle)
        except CorruptSnapshot as error:
            raise UsageError(f"{directory.root / SNAPSHOTS}: {said(error)}; nothing was changed") from None


def _restored(directory: Directory, handle: Handle) -> Loaded:
    """The state under a handle; raises CorruptSnapshot if a file is not whole, or a log lacks what it refers to."""
    loaded = directory.load(handle)
    for problem in directory.lacking(loaded.state):
        raise CorruptSnapshot(problem)
    return loaded


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
