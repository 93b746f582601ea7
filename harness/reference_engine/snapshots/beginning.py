"""What a job begins with that continues from a snapshot in a directory, and how a run leaves such a directory.

Beside the snapshots lies the run that took them, in the folder `run`, or what a saved run on processes has.  Without it
nobody knows what the job owes: which rows had been committed, and which transactions the snapshot is still to commit.
The job works on a copy; the directory stays as it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from ....properties.model.history import CommandIssued, Completed, History
from ....properties.model.upgrade import Upgrade
from ....reference_impl.core.vocabulary.errors import CorruptSnapshot
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint, JobRecord
from ....reference_impl.core.vocabulary.ids import AttemptId, Handle, TaskId
from ....reference_impl.core.vocabulary.messages import Element
from ....reference_impl.core.vocabulary.ordering import ordered
from ....reference_impl.core.vocabulary.state import Ref, TaskState
from ....reference_impl.processes.disk.durable import Temporaries, sync, unsealed
from ....reference_impl.processes.disk.files import DiskFiles, DiskJobs, position_in
from ....reference_impl.processes.disk.logs import DiskLogs
from ...runtime.exit_codes import HarnessFailed, UsageError, one_line
from ...scenario.files import write_history, write_scenario
from ...scenario.model import Fork, Savepoint, Scenario, StopWithSavepoint
from ...scenario.reading import bytes_of
from ...scenario.recorded import read_recorded
from ..orchestrator.evidence import EVIDENCE, kept
from ..subjects.past import Past, past_of
from .directory import JOBS, LIMIT_BYTES, LOGS, POSITIONS, Directory, demand_outside, locked, owner_of, root_of, said
from .renaming import renamed

RUN, SCENARIO, HISTORY = "run", "scenario.json", "history.json"
ALL = 1 << 62
"""behind every element of a log"""
LIKE_BEFORE = ("guarantee", "sink", "committing", "two_phase", "savepoints", "snapshot_store")
"""settings that the next run has to share: what was promised of the rows before, and which tasks have state"""


class Stores(msgspec.Struct, frozen=True, kw_only=True):
    """What the stores of a run hold besides the rows of its sinks."""

    records: tuple[CompletedCheckpoint, ...]
    """oldest first"""
    files: Mapping[Handle, bytes]
    job: JobRecord
    trimmed: Mapping[int, int]
    """split: the first offset that its log still has"""
    logs: Mapping[str, list[tuple[int, Element]]] = {}
    """of persistent channels"""

    def write(self, root: Path, *, whole_files: bool) -> None:
        """Write them into a directory as processes have it."""
        files, jobs = DiskFiles(root), DiskJobs(root)
        for name, data in self.files.items():
            files.temporaries.settle(files.temporaries.write(SNAPSHOT, data), files.path(name), files.snapshots)
        for log, elements in self.logs.items():
            _write_log(DiskLogs(root, whole_files=whole_files), log, elements)
        jobs.save(self.job)
        for split, offset in self.trimmed.items():
            jobs.trim(split, offset)
        for record in self.records:
            files.store(record)


SNAPSHOT = "snapshot"
"""whose temporary files these are"""


class Writing(Protocol):
    """The stores with which a run on processes begins."""

    @property
    def records(self) -> tuple[CompletedCheckpoint, ...]: ...

    def write(self, root: Path, *, whole_files: bool) -> None: ...


class Behind(Protocol):
    """What a run on processes has behind it, if it begins from a snapshot."""

    @property
    def past(self) -> Past: ...

    @property
    def stores(self) -> Writing: ...


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot with all that a job needs which begins from it."""

    scenario: Scenario
    """of the run that begins"""
    past: Past
    stores: Stores


def _write_log(logs: DiskLogs, log: str, elements: list[tuple[int, Element]]) -> None:
    for number, element in elements:
        logs.append(log, number, element)
    logs.finish(log, logs.begin(log))
    logs.lose(log)


# -- a directory is left -------------------------------------------------------------------


def demand_new(folder: Path) -> None:
    """Raise UsageError if a run cannot leave its snapshots there."""
    demand_outside(folder)
    if os.path.lexists(folder):
        raise UsageError(f"{folder} is there already; name a new directory for the snapshots")
    if not folder.absolute().parent.is_dir():
        raise UsageError(f"there is no directory {folder.absolute().parent}; make it first")
    if os.path.lexists(_aside(folder)):
        raise UsageError(f"{_aside(folder)} is in the way, perhaps of a run that was killed; remove it")


def _aside(folder: Path) -> Path:
    """Where a directory is made, until it is whole."""
    return folder.absolute().parent / f".{folder.name}.unfinished"


def leave(folder: Path, scenario: Scenario, history: History, store: Stores | Path) -> None:
    """Make a directory with the snapshots of a run, and the run itself: all of it or nothing.  `store` may be the
    directory that the processes of the run had.  Raises UsageError if there are none, HarnessFailed if the disk fails.
    """
    if scenario.engine.snapshot_store == "memory":
        raise UsageError("engine.snapshot_store is memory: such snapshots have no files that could be kept")
    if not (DiskFiles(store).survey()[0] if isinstance(store, Path) else store.records):
        raise UsageError(f"the run has taken no snapshot that it could leave in {folder}")
    demand_new(folder)
    aside = _aside(folder)
    try:
        if isinstance(store, Path):
            shutil.copytree(store, aside, ignore=shutil.ignore_patterns(f"{Temporaries.FOLDER}*"))
        else:
            aside.mkdir()
            store.write(aside, whole_files=scenario.engine.spill_store == "files")
        (aside / RUN).mkdir()
        write_run(aside / RUN, scenario, history)
        for path in (*sorted(aside.rglob("*")), aside):
            sync(path)
        os.rename(aside, folder)
        sync(folder.absolute().parent)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise HarnessFailed(f"the snapshots cannot be left in {folder}: {one_line(error)}") from error
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def write_run(folder: Path, scenario: Scenario, history: History) -> None:
    """Make the run durable beside its snapshots."""
    write_scenario(folder / SCENARIO, scenario, durable=True)
    write_history(folder / HISTORY, history, durable=True)
    sync(folder.parent)


# -- a job begins ---------------------------------------------------------------------------


def run_before(root: Path) -> tuple[Scenario, History] | None:
    """The run that took the snapshots of a directory, or of which they are copies; None if nothing tells of it."""
    owner = owner_of(root)
    if (owner / RUN).is_dir():
        return read_recorded(owner / RUN / HISTORY, owner / RUN / SCENARIO)
    if (owner.parent / EVIDENCE).is_file():
        return kept(owner.parent)
    return None


def beginning(folder: Path, named: str, scenario: Scenario) -> Beginning:
    """Read a snapshot, and what the run before has committed.  Raises UsageError, which names what does not fit."""
    root = root_of(folder)
    with locked(root, alone=False):
        directory = Directory(root)
        directory.demand_readable()
        number = directory.number(named)
        record = directory.record(number)
        before = run_before(root)
        if before is None:
            raise UsageError(
                f"{directory.owner} does not say which run took its snapshots (it has no folder {RUN}), so nobody knows"
                " which rows are still owed; begin from what `replay --snapshots` or a saved run has left"
            )
        _demand_fitting(before[0], scenario, folder)
        _demand_no_upgrade(before[1], folder)
        _demand_same(directory, record, before[1])
        older = [one for at, one in directory.records.items() if at < number]
        try:
            for one in older:
                _demand_same(directory, one, before[1])
        except UsageError as error:
            raise UsageError(f"{error}; the job would have this older one too: delete it first") from None
        _demand_owed(directory, record, before[1])
        stores = _stores(directory, (*older, record), before[1])
        history = renamed(before[1], stores.records, directory.size)
    gone = [
        one.checkpoint
        for one in history.completed
        if one.savepoint and one.checkpoint < number and one.checkpoint not in directory.records
    ]
    _demand_layout(before[0], scenario, folder)
    past = past_of(_without_names(before[0], scenario), history, number, scenario, gone)
    return Beginning(scenario=scenario, past=past, stores=stores)


def demand_of_ancestor(source: Directory, record: CompletedCheckpoint, target: Path) -> None:
    """Raise UsageError unless the run of which `target` is has a snapshot in its past: one that it took itself, or one
    of an ancestor, up to the snapshot from which it began.  A job that begins from it there goes on where that run once
    was."""
    before = run_before(target)
    taken = f"the run that took snapshot {record.checkpoint}"
    unknown = f"{target} is not known to be of {taken}, nor of one that began behind it"
    if before is None:
        raise UsageError(f"{unknown}, and a job that begins there could not go on from it; name another directory")
    try:
        _demand_same(source, record, before[1])
    except UsageError as error:
        raise UsageError(f"{unknown} ({error}); name another directory") from None
    _demand_owed(source, record, before[1])
    begins = dict(_trimmed(target))
    for handle in record.handles.values():
        for split, position in source.load(handle).state.positions.items():
            if position < begins.get(split, 0):
                raise UsageError(
                    f"snapshot {record.checkpoint} goes on at offset {position} of split {split}, and the run that"
                    f" {target} is of has discarded what lies before {begins[split]}; name another directory"
                )


def demand_of_run(directory: Directory, record: CompletedCheckpoint, root: Path) -> None:
    """Raise UsageError unless a snapshot of `directory` is one that the run of which `root` is has in its past."""
    before = run_before(root)
    if before is None:
        raise UsageError(
            f"{root} does not say which run took its snapshots, so nobody knows whether snapshot {record.checkpoint}"
            f" in {directory.root} is one of them"
        )
    _demand_same(directory, record, before[1])


def _demand_no_upgrade(before: History, folder: Path) -> None:
    """Raise UsageError if the operators of the run before have other uids than their names: a new run does not know
    them."""
    if any(isinstance(one, CommandIssued) and isinstance(one.upgrade, Upgrade) for one in before.journal):
        raise UsageError(
            f"the run that {folder} is of has upgraded its job, and a new run does not know the uids of the operators;"
            " begin from a snapshot of a run without an upgrade"
        )


def _demand_fitting(before: Scenario, scenario: Scenario, folder: Path) -> None:
    """Raise UsageError if a job of the scenario cannot continue what the run before has begun."""
    if scenario.workload != before.workload:
        what = [
            name for name in ("inputs", "nodes") if getattr(scenario.workload, name) != getattr(before.workload, name)
        ]
        raise UsageError(
            f"{folder} holds snapshots of another workload: its {' and '.join(what) or 'query'} differ from"
            " those of the scenario; a job begins from a snapshot of the same workload"
        )
    for name in LIKE_BEFORE:
        was, wanted = getattr(before.engine, name), getattr(scenario.engine, name)
        if was != wanted:
            raise UsageError(f"engine.{name} is {wanted!r}, and was {was!r} in the run that {folder} is of; keep it")
    if scenario.engine.pooled_ids:
        raise UsageError("engine.pooled_ids: transactional ids belong to one run, and a new run has none of them")
    if any(isinstance(command, Fork) for command in scenario.commands):
        raise UsageError("a run that begins from a snapshot has no command fork; leave it out")


def _demand_layout(before: Scenario, scenario: Scenario, folder: Path) -> None:
    """Raise UsageError if more than the parallelism differs."""
    was, wanted = before.topology, scenario.topology
    if was.parallelism.keys() != wanted.parallelism.keys() or was.edges != wanted.edges:
        raise UsageError(f"topology.edges differ from those of the run that {folder} is of; only parallelism may")
    if was.key_groups != wanted.key_groups:
        raise UsageError(
            f"topology.key_groups is {wanted.key_groups}, and was {was.key_groups} in the run that {folder} is of;"
            " keep it"
        )


def _taken(history: History, record: CompletedCheckpoint, root: Path) -> Completed:
    """The entry of a snapshot in the history of its run."""
    for one in history.completed:
        if one.checkpoint == record.checkpoint:
            same = (one.job, one.attempt, one.savepoint, sorted(one.handles), sorted(one.finished))
            if same == (record.job, record.attempt, record.savepoint, sorted(record.handles), sorted(record.finished)):
                return one
    raise UsageError(
        f"snapshot {record.checkpoint} in {root} is not of the run that {RUN}/{HISTORY} tells of:"
        " that of another job was put there"
    )


def _demand_same(directory: Directory, record: CompletedCheckpoint, history: History) -> None:
    """Raise UsageError for a snapshot that cannot be restored, and for one that another run has taken."""
    taken = _taken(history, record, directory.root)
    states: dict[TaskId, TaskState] = {}
    for name in directory.needed(record):
        try:
            problem = "" if directory.has(name) else f"{name} is missing"
        except CorruptSnapshot as error:
            problem = said(error)
        if problem:
            raise UsageError(f"{directory.root}: {problem}; snapshot {record.checkpoint} cannot be restored")
    for task in record.handles:
        try:
            states[task] = directory.restored(record, task).state
        except CorruptSnapshot as error:
            raise UsageError(
                f"{directory.root}: {said(error)}; snapshot {record.checkpoint} cannot be restored"
            ) from None
    _demand_states(directory.root, record, states, taken, history)


def demand_as_reported(directory: Directory, record: CompletedCheckpoint) -> None:
    """Raise UsageError for a snapshot that is not as its run has reported it, if that run can be read there."""
    try:
        before = run_before(directory.root)
    except UsageError:  # whoever needs that run reads it himself
        return
    if before is not None:
        _demand_same(directory, record, before[1])


def demand_reported(root: Path, record: CompletedCheckpoint, states: Mapping[TaskId, TaskState], run: History) -> None:
    """Raise UsageError for a snapshot that a run has not taken, or of which it has reported other states."""
    _demand_states(root, record, states, _taken(run, record, root), run)


def _demand_states(
    root: Path, record: CompletedCheckpoint, states: Mapping[TaskId, TaskState], taken: Completed, history: History
) -> None:
    stored = {one.handle: one.state for one in history.stored}
    for task, state in states.items():
        text = stored.get(taken.handles[task])
        if text is None or _bare(msgspec.json.decode(text, type=TaskState)) != _bare(state):
            raise UsageError(
                f"{root}: snapshot {record.checkpoint} holds another state of {task} than its run has"
                f" reported ({RUN}/{HISTORY}): a file of another job was put there, or the engine wrote something else"
            )


def _demand_owed(directory: Directory, record: CompletedCheckpoint, history: History) -> None:
    """Raise UsageError if a job that begins from the snapshot could not commit what it owes."""
    given_up = {one.name for one in (*history.transactions, *history.passing) if one.status == "aborted"}
    for handle in record.handles.values():
        lost = [name for name, _ in directory.load(handle).state.transactions if name in given_up]
        if lost:
            raise UsageError(
                f"{directory.root}: snapshot {record.checkpoint} is to commit the transaction {lost[0]}, which the"
                " store of its run has given up; begin from another snapshot"
            )


def _bare(state: TaskState) -> TaskState:
    """A state without what a history shows in another way: in-flight data that is in logs."""
    return msgspec.structs.replace(ordered(state), spilled={}, queued={}, replays={})


def _stores(directory: Directory, records: tuple[CompletedCheckpoint, ...], history: History) -> Stores:
    """A copy of what a job needs that begins from the last of these snapshots."""
    names = dict.fromkeys(name for one in records for name in directory.needed(one))
    last = records[-1]
    job = _job_record(directory.owner, last, history)
    logs = DiskLogs(directory.root, whole_files=False)
    try:
        return Stores(
            records=tuple(one.in_another_place() for one in records),
            files={name: directory.content(name) or b"" for name in names},
            job=job,
            trimmed=dict(_trimmed(directory.owner)),
            logs={
                log: logs.read(Ref(log, 0, ALL))
                for one in records
                for log in one.logs
                if directory.log(log).is_relative_to(directory.root / LOGS)
            },
        )
    except CorruptSnapshot as error:
        raise UsageError(f"{directory.root}: {said(error)}") from None


def _job_record(root: Path, last: CompletedCheckpoint, history: History) -> JobRecord:
    """The record of the job that took a snapshot: a new job uses none of its numbers again."""
    path = root / JOBS / f"job-{last.job}"
    if path.is_file():
        try:
            return unsealed(bytes_of(path, LIMIT_BYTES), JobRecord, str(path))
        except CorruptSnapshot as error:
            raise UsageError(f"{said(error)}; restore this file from a copy") from None
    attempt = max((run.attempt for run in history.runs), default=last.attempt)
    return JobRecord(job=last.job, attempt=AttemptId(attempt), next_checkpoint=last.checkpoint)


def _trimmed(root: Path) -> Iterator[tuple[int, int]]:
    """Where the sources' logs begin, by split."""
    for path in sorted((root / POSITIONS).glob("begins-*")) if (root / POSITIONS).is_dir() else ():
        split = path.name.removeprefix("begins-")
        if split.isdecimal():
            try:
                yield int(split), position_in(bytes_of(path, LIMIT_BYTES), int(split))[1]
            except CorruptSnapshot as error:
                raise UsageError(f"{path}: {said(error)}; restore this file from a copy") from None


def _without_names(before: Scenario, scenario: Scenario) -> Scenario:
    """The scenario of the run before, whose savepoints have no name that the next run gives too."""
    takes = (Savepoint, StopWithSavepoint)
    taken = {one.name for one in scenario.commands if isinstance(one, takes) and one.name}
    known = taken | {one.name for one in before.commands if isinstance(one, takes)}
    renamed: dict[str, str] = {}
    for name in sorted(taken & {one.name for one in before.commands if isinstance(one, takes)}):
        number = next(at for at in range(1, len(known) + 2) if f"before-{at}" not in {*known, *renamed.values()})
        renamed[name] = f"before-{number}"
    commands = tuple(
        msgspec.structs.replace(one, **{field: renamed[value]})
        if (field := "name" if isinstance(one, takes) else "snapshot") and (value := getattr(one, field, "")) in renamed
        else one
        for one in before.commands
    )
    return msgspec.structs.replace(before, commands=commands)
