"""Snapshot targets: format of the snapshot x state backend x what the user did x kind of fault.

They are the coverage targets that ask what becomes of a snapshot.  A run hits one only if it really did all four:

- the operators kept state by key in the backend;
- the command was carried out;
- the snapshot that the command is about was complete, and had the format: the one that a savepoint or a stop took, that
  a deletion deleted, that a resume or a fork restored.  A cancel is about every snapshot of its job, and so is a job
  without any command;
- the fault fired in a job that the command concerns: the one in which it was carried out.  A resume also concerns the
  job that it starts, which has to run; a fork concerns the job that took its snapshot.

A fault that strikes a copy or a deletion makes its command fail, so a scenario hits such a target with the same command
once more.  A coordinator that dies while it deletes what is subsumed strikes no command.  Faults on files count by
their mode (`fault_cells`).

A scenario counts once for each target.  On processes the backend `lsm` is RocksDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import msgspec

from ...faults.plan import KINDS, AtPoint
from ...properties.model.history import (
    AttemptRunning,
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    FaultFired,
    Forked,
    History,
    JobEnded,
    SnapshotDeleted,
)
from ...properties.model.workload import KEYED, Tally, Workload
from ...properties.reconstruct.commands import Commands
from ...properties.reconstruct.layouts import layouts
from ..scenario.actions import ACTIONS, KIND_OF, NONE, action_of
from ..scenario.checks import SNAPSHOT_FORMATS, STATE_BACKENDS
from ..scenario.model import Fork, Resume, Savepoint, Scenario, StopWithSavepoint, format_of
from ..scenario.upgrades import CHANGEABLE
from ..subject.abilities import is_promised, operators_of, usable
from ..subject.port import Capabilities
from .fault_cells import DEATHS, FAULT_CELLS, OF_COPIES, OF_DELETIONS, OF_FILES, OF_MARKS, cells_of, kind_in

KEYED_NAMES: frozenset[str] = frozenset(str(kind.__struct_config__.tag) for kind in KEYED if kind is not Tally)
"""the operators that keep state by key"""
FAIL_COMMIT = "fail-commit"
"""the fault that needs a commit; a database that is killed hurts a plain sink that writes to it too"""


class SnapshotTarget(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One combination; each name is one of its axis."""

    format: str
    backend: str
    action: str
    fault: str
    """one of `FAULT_CELLS`"""


class SnapshotRule(msgspec.Struct, frozen=True, kw_only=True):
    """Why some targets cannot be hit with what a subject can do."""

    name: str
    reason: str
    forbids: Callable[[SnapshotTarget, Capabilities], bool]


SNAPSHOT_RULES: tuple[SnapshotRule, ...] = (
    SnapshotRule(
        name="no snapshots",
        reason="the subject has no guarantee with checkpoints, or no sink for it",
        forbids=lambda target, capabilities: (
            not any(
                guarantee != "at-most-once" and is_promised(guarantee, sink)
                for guarantee in capabilities.guarantees
                for sink in capabilities.sinks
            )
        ),
    ),
    SnapshotRule(
        name="no state by key",
        reason="the subject has no operator that keeps state by key, so it has no state backend",
        forbids=lambda target, capabilities: (
            not {name.partition(":")[0] for name in operators_of(capabilities)} & KEYED_NAMES
        ),
    ),
    SnapshotRule(
        name="unknown format",
        reason="the subject does not declare the format of the snapshot",
        forbids=lambda target, capabilities: target.format not in capabilities.snapshot_formats,
    ),
    SnapshotRule(
        name="unknown backend",
        reason="the subject does not declare the state backend",
        forbids=lambda target, capabilities: target.backend not in capabilities.state_backends,
    ),
    SnapshotRule(
        name="unknown command",
        reason="the subject does not declare the command",
        forbids=lambda target, capabilities: (
            target.action != NONE and KIND_OF[target.action] not in capabilities.commands
        ),
    ),
    SnapshotRule(
        name="no end to resume from",
        reason="only a job that was stopped or cancelled is resumed, and the subject declares neither command",
        forbids=lambda target, capabilities: (
            _resumes(target) and not capabilities.commands & {"stop-with-savepoint", "cancel"}
        ),
    ),
    SnapshotRule(
        name="no choice of a snapshot",
        reason="the subject resumes a job from the newest snapshot alone, or takes none that a user can name",
        forbids=lambda target, capabilities: (
            target.action in ("resume oldest", "resume named")
            and (
                not capabilities.resumes_older
                or (
                    target.action == "resume named" and not capabilities.commands & {"savepoint", "stop-with-savepoint"}
                )
            )
        ),
    ),
    SnapshotRule(
        name="no claims",
        reason="a resume of the subject cannot say whose the snapshot is",
        forbids=lambda target, capabilities: (
            target.action in ("resume claim", "resume no-claim") and not capabilities.claims_snapshots
        ),
    ),
    SnapshotRule(
        name="no rescaling",
        reason="the subject declares no other parallelism of a job that is resumed or forked",
        forbids=lambda target, capabilities: target.action in RESCALING and not capabilities.rescales,
    ),
    SnapshotRule(
        name="no upgrades",
        reason="a resume of the subject cannot upgrade the job, or no savepoint ends a job",
        forbids=lambda target, capabilities: (
            target.action in ("resume upgraded", "resume changed")
            and not (capabilities.upgrades and "stop-with-savepoint" in capabilities.commands)
        ),
    ),
    SnapshotRule(
        name="no other operators",
        reason="a resume of the subject cannot add or remove operators, or it has no sink or operator with which they"
        " can be",
        forbids=lambda target, capabilities: target.action == "resume changed" and not _changes_operators(capabilities),
    ),
    SnapshotRule(
        name="no commits",
        reason="a commit that fails needs a transactional sink",
        forbids=lambda target, capabilities: target.fault == FAIL_COMMIT and "transactional" not in capabilities.sinks,
    ),
    SnapshotRule(
        name="no file faults",
        reason="the subject does not declare faults of single files",
        forbids=lambda target, capabilities: target.fault in OF_FILES and not capabilities.file_faults,
    ),
    # The faults on copies strike what a copy or a move does, and those on deletions what a deletion or a move does.
    # Beside another command, in the same job, they would tell no more of that command than the death of a coordinator
    # does.
    SnapshotRule(
        name="no copy",
        reason="only a command that copies or moves a snapshot does what the fault strikes",
        forbids=lambda target, capabilities: target.fault in OF_COPIES and target.action not in COPYING,
    ),
    SnapshotRule(
        name="no deletion",
        reason="only a command that deletes or moves a snapshot does what the fault strikes",
        forbids=lambda target, capabilities: target.fault in OF_DELETIONS and target.action not in DELETING,
    ),
    SnapshotRule(
        name="no mark",
        reason="only the record of a snapshot that is moved is marked",
        forbids=lambda target, capabilities: target.fault in OF_MARKS and target.action != "move-snapshot",
    ),
)
COPYING: tuple[str, ...] = ("copy-snapshot", "move-snapshot")
"""the actions that copy a snapshot"""
RESCALING: tuple[str, ...] = ("resume rescaled", "fork rescaled")
"""the actions that begin a job with another parallelism"""
DELETING: tuple[str, ...] = ("delete-snapshot", "move-snapshot")
"""the actions that delete a snapshot"""


def _changes_operators(capabilities: Capabilities) -> bool:
    removable = {str(kind.__struct_config__.tag) for kind in CHANGEABLE if issubclass(kind, KEYED)}
    sinks = capabilities.sinks - {"idempotent"}
    return bool(capabilities.changes_operators and sinks and removable & operators_of(capabilities))


def _resumes(target: SnapshotTarget) -> bool:
    return KIND_OF.get(target.action) == "resume"


def all_snapshot_targets(faults: frozenset[str] = frozenset(KINDS)) -> Iterator[SnapshotTarget]:
    """Every combination, possible or not, in the order of the axes."""
    cells = [cell for cell in FAULT_CELLS if kind_in(cell) in faults]
    for form in SNAPSHOT_FORMATS:
        for backend in STATE_BACKENDS:
            for action in ACTIONS:
                for fault in cells:
                    yield SnapshotTarget(format=form, backend=backend, action=action, fault=fault)


def snapshot_rule_against(target: SnapshotTarget, capabilities: Capabilities) -> SnapshotRule | None:
    """The first rule that calls a target impossible for a subject; None if it can be hit."""
    return next((rule for rule in SNAPSHOT_RULES if rule.forbids(target, capabilities)), None)


@cache
def possible_snapshot_targets(capabilities: Capabilities) -> tuple[SnapshotTarget, ...]:
    """The targets that no rule forbids, of the subject's kinds of faults."""
    able = usable(capabilities)
    return tuple(one for one in all_snapshot_targets(able.faults) if snapshot_rule_against(one, able) is None)


def snapshot_in_words(target: SnapshotTarget) -> str:
    done = "no command" if target.action == NONE else target.action
    return f"{target.fault} and {done} with {target.format} snapshots of state on {target.backend}"


def keeps_state(workload: Workload) -> bool:
    """Whether some operator keeps state by key."""
    return any(isinstance(node.operator, KEYED) and not isinstance(node.operator, Tally) for node in workload.nodes)


def snapshot_targets_hit(scenario: Scenario, history: History) -> tuple[SnapshotTarget, ...]:
    """The targets that a run hit, in the order of their fields."""
    if not history.completed or not scenario.faults or not keeps_state(scenario.workload):
        return ()
    watch = _Watch(scenario, history)
    for entry in history.journal:
        match entry:
            case AttemptStarted():
                watch.job = entry.job
            case AttemptRunning():
                watch.running()
            case FaultFired():
                watch.fired(entry)
            case CommandIssued():
                watch.command_issued(entry)
            case SnapshotDeleted() if entry.checkpoint:
                watch.deleted[entry.checkpoint] = None
            case CommandReturned():
                watch.returned(entry)
            case JobEnded():
                watch.resumed = None
            case _:
                pass
    return watch.targets() if watch.faults else ()


_BEFORE_ALL = AtPoint(point="snapshot-deleted", side="before")
"""where a deletion has not deleted anything yet"""


class _Done(msgspec.Struct, frozen=True):
    """A command that was carried out."""

    action: str
    job: int
    """in which it was carried out"""
    started: int | None = None
    """the job that it started"""
    checkpoint: int | None = None
    """the snapshot that it is about; None for every snapshot of its job"""


class _Watch:
    """What a journal shows, read in its order."""

    def __init__(self, scenario: Scenario, history: History) -> None:
        self._scenario = scenario
        self._history = history
        self.job = 0
        self.faults: dict[int, dict[str, None]] = {}
        """by job, the cells of the faults that fired in it"""
        self._issued: dict[int, tuple[int, int | None]] = {}
        """by command, the job in which it was issued, and the snapshot that it named"""
        self._deleting: dict[int, int] = {}
        """by command that deletes a snapshot and has no answer yet: the snapshot"""
        self.deleted: dict[int, None] = {}
        """the snapshots whose records were deleted, in this order"""
        self._amid: dict[tuple[int, str], dict[str, None]] = {}
        """by job and action, the cells of the faults that struck what the action deleted"""
        self.resumed: _Done | None = None
        """a resume whose job does not run yet"""
        self._done: list[_Done] = []
        self._formats: dict[int, str] = {}
        """of the snapshots that commands took"""

    def fired(self, entry: FaultFired) -> None:
        planned = self._scenario.faults
        cells = cells_of(planned[entry.fault]) if entry.fault < len(planned) else (entry.kind,)
        self.faults.setdefault(self.job, {}).update((cell, None) for cell in cells if cell not in OF_DELETIONS)
        for cell in cells:
            if cell in OF_DELETIONS:
                self._struck(cell, entry.order)

    def _struck(self, cell: str, order: int) -> None:
        """The coordinator dies amid a deletion: that of each command which waits for its answer, and whose snapshot it
        is that is being deleted."""
        for number, snapshot in self._deleting.items():
            if self._is_next(order) if DEATHS[cell] == _BEFORE_ALL else [*self.deleted][-1:] == [snapshot]:
                action = action_of(self._scenario.commands[number])
                self._amid.setdefault((self.job, action), {})[cell] = None

    def _is_next(self, order: int) -> bool:
        """Whether the record that would have been deleted is that of a command.  There are no more snapshots than the
        job retains, so none is subsumed."""
        there = [one for one in self._history.completed if one.order < order and one.checkpoint not in self.deleted]
        return len(there) <= self._scenario.engine.retained_checkpoints

    def command_issued(self, entry: CommandIssued) -> None:
        self._issued[entry.command] = (self.job, entry.checkpoint)
        known = entry.command < len(self._scenario.commands)
        if known and entry.checkpoint is not None and action_of(self._scenario.commands[entry.command]) in DELETING:
            self._deleting[entry.command] = entry.checkpoint

    def returned(self, entry: CommandReturned) -> None:
        number = entry.command
        self._deleting.pop(number, None)
        if entry.error or number not in self._issued or number >= len(self._scenario.commands):
            return
        command, (job, named) = self._scenario.commands[number], self._issued[number]
        if isinstance(command, Resume):
            self.resumed = _Done(self._action_of(command, job), job, None, entry.checkpoint)
            return
        if entry.checkpoint is not None and isinstance(command, Savepoint | StopWithSavepoint):
            self._formats[entry.checkpoint] = format_of(command) or self._scenario.engine.snapshot_format
        self._done.append(_Done(action_of(command), job, None, entry.checkpoint if named is None else named))

    def _action_of(self, command: Resume | Fork, job: int) -> str:
        """The action of a command that begins with a snapshot of this job, or behind its end."""
        if not command.parallelism:
            return action_of(command)
        return action_of(command, layouts(self._scenario.topology, range(job + 1), Commands(self._history))[job])

    def _fork(self, one: Forked, job: int) -> _Done:
        command = self._scenario.commands[one.command]
        action = self._action_of(command, job) if isinstance(command, Fork) else "fork"
        return _Done(action, job, None, one.checkpoint)

    def running(self) -> None:
        if self.resumed is not None and self.resumed.checkpoint is not None and self.job != self.resumed.job:
            self._done.append(msgspec.structs.replace(self.resumed, started=self.job))
        self.resumed = None

    def targets(self) -> tuple[SnapshotTarget, ...]:
        history, own = self._history, self._scenario.engine.snapshot_format
        taken: dict[int, dict[str, None]] = {}
        """by job, the formats of its complete snapshots"""
        formats: dict[int, str] = {}
        job_of: dict[int, int] = {}
        for done in history.completed:
            form = self._formats.get(done.checkpoint, "" if done.savepoint else own)
            if form:  # of a savepoint whose command had no answer it is not known
                formats[done.checkpoint] = form
                taken.setdefault(done.job, {})[form] = None
            job_of[done.checkpoint] = done.job
        forks = () if isinstance(history.forks, msgspec.UnsetType) else history.forks
        ran = [one for one in forks if _ran(one) and one.checkpoint in job_of]
        carried_out = [*self._done, *(self._fork(one, job_of[one.checkpoint]) for one in ran)]
        busy = {one.job for one in carried_out} | {one.started for one in carried_out}
        carried_out += [_Done(NONE, job) for job in taken if job not in busy]
        found: set[tuple[str, str, str]] = set()
        for one in carried_out:
            about = taken.get(one.job, {}) if one.checkpoint is None else [formats.get(one.checkpoint, "")]
            kinds = {**self.faults.get(one.job, {}), **self.faults.get(-1 if one.started is None else one.started, {})}
            kinds |= self._amid.get((one.job, one.action), {})
            found.update((form, one.action, kind) for form in about if form for kind in kinds)
        backend = self._scenario.engine.state_backend
        return tuple(
            SnapshotTarget(format=form, backend=backend, action=action, fault=kind)
            for form, action, kind in sorted(found)
        )


def _ran(one: Forked) -> bool:
    """Whether the job that was started beside has restored its snapshot."""
    attempts = (entry for entry in reversed(one.history.journal) if isinstance(entry, AttemptStarted | AttemptRunning))
    return isinstance(next(attempts, None), AttemptRunning)
