"""What a directory of snapshots holds: each snapshot, its files, and who needs them too (SNAP-3).

A file that several snapshots need is *shared*, any other is the snapshot's *own*.  The oldest snapshot that needs a
file counts as its writer; a newer one that needs it *refers to* that snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ....properties.model.history import History
from ....reference_impl.core.vocabulary.errors import CorruptSnapshot
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint
from ....reference_impl.core.vocabulary.formats import CANONICAL, Manifest
from ....reference_impl.core.vocabulary.ids import Handle, TaskId
from ....reference_impl.core.vocabulary.state import TaskState
from ...runtime.exit_codes import UsageError
from ...runtime.progress import Progress
from .beginning import demand_reported, run_before
from .beside import damages, had_snapshot
from .directory import LOGS, RECORDS, Directory, NotPermitted, UnreadableRecord, said
from .recovery import choices

FORMAT = "cutproof-snapshots/1"
CHECKPOINT, SAVEPOINT = "checkpoint", "savepoint"
_NUMBERED = re.compile(r"(?:.*/)?chk-(0|[1-9][0-9]{0,18})/.*")


class SnapshotSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot in the list.  `problems` has what keeps it from being restored, by file."""

    id: int
    kind: str
    job: int
    attempt: int
    snapshot_format: str
    ending: str | None
    """how its job ended with it: finish, stop or drain; null if the job went on"""
    tasks: int
    """how many have a state in it"""
    files: int
    own_bytes: int
    shared_bytes: int
    refers_to: list[int]
    referred_to_by: list[int]
    problems: list[str]
    no_permission: bool
    """its only problems are files that this user may not read: whether it can be restored is not known"""


class ShownFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a snapshot."""

    name: str
    kind: str
    """under the task's handle: canonical, or manifest; any other: entries, sorted or sst"""
    bytes: int | None
    """null: it is missing, or may not be read"""
    shared_with: list[int]
    """the other snapshots that need it"""
    problem: str
    """"" if it is whole"""
    no_permission: bool
    """that is its problem"""


class ShownTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task's part of a snapshot; its first file is that under its handle."""

    task: str
    finished: bool
    """the task had finished, and this is its last state"""
    files: list[ShownFile]


class ShownSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one snapshot."""

    parallelism: dict[str, int]
    """empty if not recorded"""
    key_groups: int
    """0 if not recorded"""
    finished: list[str]
    increments: int
    """how many checkpoints it builds on, one on the other"""
    logs: list[str]
    """the logs of persistent channels to which it refers"""
    parts: list[ShownTask]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a command has changed."""

    snapshot: int
    target: str | None
    """the directory into which it was moved or forked"""
    written: list[str]
    deleted: list[str]
    kept: list[str]
    """files of the snapshot that stay, because other snapshots need them"""
    was_done: bool
    """an earlier command, which was perhaps interrupted, had done this already; of `delete`: there is no such snapshot,
    or none any more"""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `cutproof snapshots --json` prints (cutproof-snapshots/1)."""

    format: str = FORMAT
    command: str
    directory: str
    newest: int | None
    """the snapshot with which a new job begins; null: there is none, or some record cannot be read"""
    recovery: list[int]
    """the snapshots of which a recovery of the last job would choose one; several if no run says how that job began"""
    snapshots: list[SnapshotSummary]
    unreadable: list[UnreadableRecord]
    unneeded_files: int | None
    """files that no snapshot needs, those of logs too; null: some record cannot be read, or none is there any more, so
    it is not known which are needed"""
    unneeded_bytes: int | None
    without_record: list[int]
    """the checkpoints and savepoints of which there are files and no record: never complete, deleted, or the record is
    lost"""
    problems: list[str]
    """of `verify`: what else keeps a snapshot from being restored, or a job from beginning here"""
    unfinished: str | None
    """the command that was interrupted; the next one that changes the directory ends it"""
    shown: ShownSnapshot | None = None
    """of `show`"""
    change: Change | None = None
    """of `convert`, `delete`, `move` and `fork`"""

    @property
    def is_whole(self) -> bool:
        """Every snapshot can be restored, and what lies beside them can be read."""
        return not self.unreadable and not self.problems and not any(one.problems for one in self.snapshots)


class Inventory:
    """All files of a directory, each examined once."""

    def __init__(self, directory: Directory, progress: Progress) -> None:
        self._directory = directory
        self._needed = {number: directory.needed(one) for number, one in directory.records.items()}
        self.needed_by: dict[Handle, list[int]] = {}
        """by file: the snapshots that need it, in order"""
        for number, names in self._needed.items():
            for name in names:
                self.needed_by.setdefault(name, []).append(number)
        self._problems: dict[Handle, str] = {}
        """by file that is not whole, or may not be read"""
        self._not_permitted: set[str] = set()
        """those problems that are a lack of permission"""
        progress.step(f"reading {directory.root.name}", len(self.needed_by))
        done = 0
        for record in directory.records.values():
            for handle in record.handles.values():
                done += self._examine(handle)
                progress.advance(min(done, len(self.needed_by)))

    def _examine(self, handle: Handle) -> int:
        """Look at the file under a handle and at those that it names; returns how many there are."""
        try:
            found = self._directory.first(handle)
        except CorruptSnapshot as error:
            self._problems[handle] = self._said(error)
            return 1
        for file in found.files if isinstance(found, Manifest) else ():
            if file.name not in self._problems:
                try:
                    self._directory.check(file)
                except CorruptSnapshot as error:
                    self._problems[file.name] = self._said(error)
        return 1 + (len(found.files) if isinstance(found, Manifest) else 0)

    def _said(self, error: CorruptSnapshot) -> str:
        if isinstance(error, NotPermitted):
            self._not_permitted.add(said(error))
        return said(error)

    def with_problems(self, one: SnapshotSummary, more: Sequence[str]) -> SnapshotSummary:
        problems = list(dict.fromkeys((*one.problems, *more)))
        return msgspec.structs.replace(
            one, problems=problems, no_permission=bool(problems) and self._not_permitted.issuperset(problems)
        )

    def restore_all(self, run: History | None, progress: Progress) -> dict[int, list[str]]:
        """Read the whole state of every task, as a restore does, and compare it with what the run has reported that
        took the snapshots, if it is known; the problems that only this shows, by snapshot."""
        found: dict[int, list[str]] = {}
        progress.step("restoring every snapshot", len(self._directory.records))
        for at, (number, record) in enumerate(self._directory.records.items()):
            progress.advance(at)
            problems: list[str] = []
            states: dict[TaskId, TaskState] = {}
            for task, handle in record.handles.items():
                if not self._problems.get(handle) and (misnamed := self._directory.misnamed(record, task)):
                    problems.append(misnamed)
                try:
                    states[task] = self._directory.load(handle).state
                    problems += self._directory.lacking(states[task])
                except CorruptSnapshot as error:
                    problems.append(self._said(error))
            if run is not None and not problems:
                try:
                    demand_reported(self._directory.root, record, states, run)
                except UsageError as error:
                    problems.append(str(error))
            found[number] = list(dict.fromkeys(problems))
        return found

    def listed(self) -> list[SnapshotSummary]:
        return [
            self.with_problems(
                self._listed(number, record),
                [self._problems[name] for name in self._needed[number] if name in self._problems],
            )
            for number, record in self._directory.records.items()
        ]

    def _listed(self, number: int, record: CompletedCheckpoint) -> SnapshotSummary:
        names = self._needed[number]
        shared = [name for name in names if len(self.needed_by[name]) > 1]
        own = [name for name in names if len(self.needed_by[name]) == 1]
        return SnapshotSummary(
            id=number,
            kind=SAVEPOINT if record.savepoint else CHECKPOINT,
            job=record.job,
            attempt=record.attempt,
            snapshot_format=record.format,
            ending=record.ending.value if record.ending is not None else None,
            tasks=len(record.handles),
            files=len(names),
            own_bytes=self._bytes(own),
            shared_bytes=self._bytes(shared),
            refers_to=self._others(number, [self.needed_by[name][0] for name in shared]),
            referred_to_by=self._others(
                number,
                [other for name in shared if self.needed_by[name][0] == number for other in self.needed_by[name]],
            ),
            problems=[],
            no_permission=False,
        )

    def _bytes(self, names: Sequence[Handle]) -> int:
        return sum(self._directory.size(name) or 0 for name in names)

    @staticmethod
    def _others(number: int, found: Sequence[int]) -> list[int]:
        return sorted({other for other in found if other != number})

    def shown(self, number: int) -> ShownSnapshot:
        record = self._directory.record(number)
        return ShownSnapshot(
            parallelism=record.parallelism or {},
            key_groups=record.key_groups or 0,
            finished=list(record.finished),
            increments=record.increments,
            logs=list(record.logs),
            parts=[
                ShownTask(task=task, finished=task in record.finished, files=self._files(number, handle))
                for task, handle in record.handles.items()
            ],
        )

    def _files(self, number: int, handle: Handle) -> list[ShownFile]:
        kinds = {handle: self._kind(handle), **{file.name: file.kind for file in self._directory.files(handle)}}
        return [
            ShownFile(
                name=name,
                kind=kind,
                bytes=self._directory.size(name),
                shared_with=self._others(number, self.needed_by.get(name, [])),
                problem=self._problems.get(name, ""),
                no_permission=self._problems.get(name) in self._not_permitted,
            )
            for name, kind in kinds.items()
        ]

    def _kind(self, handle: Handle) -> str:
        try:
            found = self._directory.first(handle)
        except CorruptSnapshot:
            return "unreadable"
        return "manifest" if isinstance(found, Manifest) else CANONICAL

    @property
    def unneeded(self) -> list[Handle]:
        """The files that no readable record needs."""
        return [name for name in self._directory.files_on_disk if name not in self.needed_by]

    @property
    def unneeded_logs(self) -> list[Path]:
        """The files of logs to which no readable record refers."""
        top = self._directory.root / LOGS
        needed = {log for record in self._directory.records.values() for log in record.logs}
        return [path for path in sorted(top.rglob("*")) if path.is_file() if not _names_of(path, top) & needed]

    @property
    def without_record(self) -> list[int]:
        """The numbers of which there are files that no record needs, and no record; none if some cannot be read."""
        if self._directory.unreadable:
            return []
        found = {int(match[1]) for name in self.unneeded if (match := _NUMBERED.fullmatch(name))}
        return sorted(found - self._directory.records.keys())

    @property
    def has_lost_all(self) -> bool:
        """There are files and no record.  A job whose first checkpoint was never complete leaves that too, and says so
        in its own record."""
        directory = self._directory
        is_bare = not directory.records and not directory.unreadable and bool(directory.files_on_disk)
        return is_bare and not directory.has_copies and had_snapshot(directory.root) is not False


def _names_of(path: Path, top: Path) -> set[str]:
    """The names of the logs in which a file may lie: of all folders above it."""
    return {folder.as_posix() for folder in path.relative_to(top).parents}


def report(
    directory: Directory,
    command: str,
    progress: Progress,
    *,
    unfinished: str | None,
    shown: int | None = None,
    change: Change | None = None,
    restoring: bool = False,
) -> Report:
    """What a command reports of a directory.  `shown`: the snapshot whose parts are wanted; `restoring`: every state is
    read as a whole."""
    inventory = Inventory(directory, progress)
    snapshots = inventory.listed()
    beside: list[str] = []
    if restoring:
        run, beside = _beside(directory)
        problems = inventory.restore_all(run, progress)
        snapshots = [inventory.with_problems(one, problems[one.id]) for one in snapshots]
    if restoring and inventory.has_lost_all:
        beside.append(
            f"{directory.root / RECORDS} holds no record, and nobody knows which files belong to which snapshot: none"
            " can be restored; restore the records from a copy"
        )
    is_known = not directory.unreadable and not inventory.has_lost_all
    unneeded = [directory.size(name) or 0 for name in inventory.unneeded]
    unneeded += [path.stat().st_size for path in inventory.unneeded_logs]
    return Report(
        command=command,
        directory=str(directory.root),
        newest=directory.newest,
        recovery=list(choices(directory)),
        snapshots=snapshots,
        unreadable=directory.unreadable,
        unneeded_files=len(unneeded) if is_known else None,
        unneeded_bytes=sum(unneeded) if is_known else None,
        without_record=inventory.without_record,
        problems=beside,
        unfinished=unfinished,
        shown=inventory.shown(shown) if shown is not None else None,
        change=change,
    )


def _beside(directory: Directory) -> tuple[History | None, list[str]]:
    """The run that took the snapshots, if it is known, and what is wrong with what lies beside them."""
    found = list(damages(directory.owner))
    try:
        before = run_before(directory.root)
    except UsageError as error:
        return None, [*found, str(error)]
    return before[1] if before is not None else None, found
