"""What a run has behind it whose first job begins from a snapshot of another run.

Its history begins with that of the other run up to the snapshot, as the history of a fork does.  So it is judged as any
history with two jobs: what the sink shows in the end is what an undisturbed run would show.  For that, the scenario of
the run is joined to the one before: the same workload, the commands and faults of both, and between them a resume.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import msgspec

from ....faults.plan import AtTime
from ....properties.model import history as h
from ....properties.model.absent import first_absent
from ....properties.model.upgrade import Upgrade
from ....properties.reconstruct.commands import Commands
from ....properties.reconstruct.layouts import absent_nodes, layouts, rescaled, state_types, uids
from ....reference_impl import observed as o
from ....reference_impl.core.vocabulary.events import CommandKind
from ....reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from ....reference_impl.core.vocabulary.transactions import (
    AnyRequest,
    Append,
    BeginTransaction,
    Commit,
    Denied,
    Finalise,
    Flush,
    NoAnswer,
    PreCommit,
    Upsert,
    Write,
)
from ....reference_impl.driver.ports import External
from ...runtime.exit_codes import HarnessFailed
from ...scenario.model import AnyCommand, Cancel, DeleteSnapshot, Fork, Resume, Scenario, kind_of
from .cutting import answers, cut_run, kept_as_copy, up_to
from .translation import identity

PARTS = ("runs", "channels", "stored", "completed", "transactions", "passing", "logs", "written", "journal")
"""of a history that goes on"""


class Past(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The run before, up to the snapshot, as the next run needs it."""

    scenario: Scenario
    """that of both runs: what the history is judged by"""
    history: h.History
    """up to the snapshot"""
    checkpoint: int
    job: int
    """the number of the last job before"""
    order: int
    """of the latest entry before"""
    at_us: int
    """where its time ended; that of the next run goes on from there"""
    faults: int
    commands: int
    """how many the scenario of the run before had, and those in between"""
    command: int
    """the number of the command with which the run begins"""
    parallelism: dict[str, int]
    """by operator: what the next job changes"""
    claimed: bool | None = None
    """whether the next job claims the snapshot; None: nothing is said of it"""
    upgraded: Upgrade = Upgrade()
    """the uids and types that the next job has, as the job has that took the snapshot"""

    # -- the history -------------------------------------------------------------------

    def into(self, history: h.History) -> h.History:
        """Let an empty history go on from this one.  Faults and commands of the run itself are numbered from 0 until
        `end`: these numbers are the ones that its scenario has."""
        before = copy.deepcopy(self.history)
        for part in PARTS:
            setattr(history, part, getattr(before, part))
        shift = {"fault": -self.faults - 1, "command": -self.commands - 1}
        history.journal = [_renumbered(entry, shift) for entry in before.journal]
        history.healed = before.healed
        history.one_clock = history.one_clock and before.one_clock
        for limit in ("restart_attempts", "tolerated_failures"):
            if getattr(history, limit) != getattr(before, limit):
                setattr(history, limit, -1)
        if not history.one_clock:
            _without_times(history)
        return history

    def begin(self) -> tuple[o.CommandIssued, o.CommandReturned]:
        """The command with which the first job of the run begins, and its answer."""
        snapshot = CheckpointId(self.checkpoint)
        return (
            o.CommandIssued(
                -1, CommandKind.RESUME, False, dict(self.parallelism), snapshot=snapshot, claimed=self.claimed
            ),
            o.command_returned(-1, snapshot, None),
        )

    def end(self, history: h.History) -> None:
        """Give faults and commands the numbers that they have in the scenario of both runs."""
        shift = {"fault": self.faults, "command": self.command + 1}
        before = {"fault": self.faults + 1, "command": self.commands + 1}
        known = len(self.history.journal)
        history.journal = [
            _renumbered(entry, before if at < known else shift) for at, entry in enumerate(history.journal)
        ]
        history.lasting = [fault + self.faults for fault in history.lasting]
        history.starved = history.starved or self.history.starved

    # -- the external store -----------------------------------------------------------------

    @property
    def committed(self) -> tuple[str, ...]:
        """The names of the transactions that were committed before."""
        transactions = (*self.history.transactions, *self.history.passing)
        return tuple(one.name for one in transactions if one.status == "committed")

    @property
    def claims(self) -> dict[CheckpointId, bool]:
        """The snapshots of which a user has said whose they are: whether a job has claimed each."""
        answered = answers(self.history)
        of_the_next = {CheckpointId(self.checkpoint): self.claimed} if self.claimed is not None else {}
        before = {
            CheckpointId(snapshot): one.claimed
            for one in self.history.journal
            if isinstance(one, h.CommandIssued) and one.claimed is not None
            if (snapshot := answered.get(one.command)) is not None
        }
        return {**before, **of_the_next}

    @property
    def passing(self) -> tuple[TaskId, ...]:
        """The tasks of two-phase operators before: the next job may have fewer."""
        return tuple(dict.fromkeys(TaskId(one.task) for one in self.history.passing))

    def fill(self, store: External) -> None:
        """Bring what the sinks had written up to the snapshot into an empty store.  Raises HarnessFailed if it does
        not take all of it."""
        for request in self._requests():
            outcome = store.handle(request)
            if isinstance(outcome, Denied | NoAnswer):
                raise HarnessFailed(
                    f"the store of the sinks does not take the rows of the run before: {outcome.reason}"
                )

    def _requests(self) -> Iterator[AnyRequest]:
        """In the order in which rows became visible."""
        finalises = self.scenario.engine.committing == "global"
        by_key = identity(self.scenario.workload) == "key"
        transactions = [*self.history.transactions, *self.history.passing]
        for one in (each for each in transactions if each.rows and each.status in ("prepared", "committed")):
            writer, attempt, name = TaskId(one.task), AttemptId(one.attempt), one.name
            yield BeginTransaction(writer=writer, attempt=attempt, name=name)
            yield Write(writer=writer, attempt=attempt, name=name, rows=tuple(one.rows))
            sealed_for = CheckpointId(one.checkpoint) if one.checkpoint else None  # 0 in histories of before
            yield PreCommit(writer=writer, attempt=attempt, name=name, checkpoint=sealed_for)
            if finalises and one.status == "prepared":
                yield Finalise(writer=writer, attempt=attempt, name=name)
        done = [one for one in transactions if one.rows and one.status == "committed"]
        for one in sorted(done, key=lambda each: each.committed or 0):
            yield Commit(writer=TaskId(one.task), attempt=AttemptId(one.attempt), name=one.name)
        last: AnyRequest | None = None
        for row in self.history.written:
            writer, attempt = TaskId(row.task), AttemptId(row.attempt)
            if last is not None and (last.writer, last.attempt) != (writer, attempt):
                yield Flush(writer=last.writer, attempt=last.attempt)  # rows of other writers come behind these
            if self.history.sink == "plain":
                last = Append(writer=writer, attempt=attempt, row=row.row)
            else:
                key = (row.row[0],) if by_key else row.row
                last = Upsert(writer=writer, attempt=attempt, identity=key, row=row.row)
            yield last
        if last is not None:
            yield Flush(writer=last.writer, attempt=last.attempt)


def fault_in_words(number: int, kind: str, past: Past | None) -> str:
    """A fault of a run as `History.unapplied` names it: by its number in the scenario of both runs."""
    return f"fault {number + (past.faults if past is not None else 0)}: {kind}"


def command_in_words(number: int, kind: str, past: Past | None) -> str:
    """A command, as above."""
    return f"command {number + (past.commands if past is not None else 0)}: {kind}"


def past_of(
    before: Scenario, history: h.History, checkpoint: int, scenario: Scenario, gone: Sequence[int] = ()
) -> Past:
    """What the run of a scenario has behind it.

    `gone` are earlier savepoints that the directory does not have any more: their user has deleted them.  If the job
    before went on behind the snapshot, it counts as cancelled there.
    """
    cut = up_to(history, checkpoint)
    snapshot = next(one for one in cut.completed if one.checkpoint == checkpoint)
    # the history says with which parallelism that job ran: a resume of the scenario may never have been carried out
    layout = layouts(before.topology, range(1, snapshot.job + 1), Commands(history))[snapshot.job]
    wanted = scenario.topology.parallelism
    changed = {name: wanted[name] for name, number in layout.parallelism.items() if wanted[name] != number}
    cut.journal = [one for one in _without_copies(cut.journal) if not _came_later(one, snapshot.job)]
    between: list[AnyCommand] = [DeleteSnapshot(trigger=AtTime(at_us=0)) for _ in gone]
    if not any(isinstance(one, h.JobEnded) and one.job == snapshot.job for one in cut.journal):
        between.append(Cancel(trigger=AtTime(at_us=0)))
    order = latest(history)
    at_us = max((entry.at_us for entry in (*history.journal, *history.completed)), default=0)
    _leave_out_unanswered(cut, history, snapshot)
    for number, (command, deleted) in enumerate(zip_longest(between, gone), len(before.commands)):
        kind = kind_of(command)
        cut.journal += [
            h.CommandIssued(order=order + 1, at_us=at_us, command=number, kind=kind, drain=False, checkpoint=deleted),
            h.CommandReturned(order=order + 2, at_us=at_us, command=number, checkpoint=deleted, error=""),
        ]
        order += 2
    if len(between) > len(gone):
        order += 1
        _end(cut, snapshot.job, order, at_us)
    return Past(
        scenario=msgspec.structs.replace(
            scenario,
            topology=before.topology,
            commands=(
                *before.commands,
                *between,
                Resume(trigger=AtTime(at_us=0), parallelism=changed),
                *scenario.commands,
            ),
            faults=(*before.faults, *scenario.faults),
        ),
        history=cut,
        checkpoint=checkpoint,
        job=snapshot.job,
        order=order,
        at_us=at_us,
        faults=len(before.faults),
        commands=len(before.commands) + len(between) + 1,
        command=len(before.commands) + len(between),
        parallelism=changed,
    )


def past_of_fork(
    scenario: Scenario,
    history: h.History,
    checkpoint: int,
    command: int,
    job: int,
    copied_us: int,
    *,
    from_copy: bool = False,
) -> tuple[Past, Scenario]:
    """What a job has behind it that is forked from a run by one of its commands, and the scenario that it runs: nothing
    disturbs it.  `job` is the last job before, `copied_us` when the stores were copied; `from_copy`: the snapshot is a
    copy that a user has."""
    fork = scenario.commands[command]
    assert isinstance(fork, Fork)
    cut = up_to(history, checkpoint)
    entries = (*history.journal, *history.completed)
    later = min((one.order for one in entries if one.at_us > copied_us), default=None)
    cut.journal = [one for one in cut.journal if one.at_us <= copied_us or not _takes_away(one)]
    if later is not None:
        cut.logs = [_discarded_until(log, later) for log in cut.logs]
    if from_copy:
        cut = kept_as_copy(cut, checkpoint)
        cut.journal = list(_without_copies(cut.journal))
    snapshot = next(one for one in cut.completed if one.checkpoint == checkpoint)
    layout = layouts(scenario.topology, range(1, snapshot.job + 1), Commands(history))[snapshot.job]
    absent = absent_nodes(scenario.workload, range(1, snapshot.job + 1), Commands(history))[snapshot.job]
    past = Past(
        scenario=scenario,
        history=cut,
        checkpoint=checkpoint,
        job=job,
        order=latest(history),
        at_us=max(entry.at_us for entry in (*history.journal, *history.completed)),
        faults=len(scenario.faults),
        commands=len(scenario.commands),
        command=command,
        parallelism=dict(fork.parallelism),
        claimed=True if fork.by_reference else None,
        upgraded=Upgrade(
            renamed=uids(range(1, snapshot.job + 1), Commands(history))[snapshot.job],
            retyped=state_types(range(1, snapshot.job + 1), Commands(history))[snapshot.job],
            removed=absent,
            added=tuple(name for name in first_absent(scenario.workload) if name not in absent),
        ),
    )
    topology = rescaled(layout, fork.parallelism)
    return past, msgspec.structs.replace(scenario, topology=topology, faults=(), commands=(), deviations=())


def _discarded_until(log: h.PersistentLog, order: int) -> h.PersistentLog:
    """A log of a persistent channel that has discarded nothing from a moment on: the fork's copy of it did not."""
    cleared = log.cleared if log.cleared is not None and log.cleared < order else None
    return msgspec.structs.replace(log, trims=[one for one in log.trims if one[0] < order], cleared=cleared)


def _takes_away(entry: h.AnyJournalEntry) -> bool:
    """Whether an entry says that a snapshot was deleted, or that its user wanted that."""
    return isinstance(entry, h.SnapshotDeleted) or (isinstance(entry, h.CommandIssued) and entry.kind in h.REMOVING)


def _without_copies(journal: Sequence[h.AnyJournalEntry]) -> Iterator[h.AnyJournalEntry]:
    """The copies that a user had made lie in a directory that the next run does not see: it knows a snapshot that was
    moved there as deleted, and nothing of one that was copied."""
    copied = {one.command for one in journal if isinstance(one, h.CommandIssued) and one.kind == "copy-snapshot"}
    for one in journal:
        if isinstance(one, h.CommandIssued | h.CommandReturned) and one.command in copied:
            continue
        moved = isinstance(one, h.CommandIssued) and one.kind == "move-snapshot"
        yield msgspec.structs.replace(one, kind="delete-snapshot") if moved else one


def _came_later(entry: h.AnyJournalEntry, job: int) -> bool:
    """The end of the job before, unless it ended with the snapshot itself, and that of any later job."""
    return isinstance(entry, h.JobEnded) and (
        entry.job > job or (entry.job == job and entry.status in ("cancelled", "failed"))
    )


def _leave_out_unanswered(cut: h.History, history: h.History, snapshot: h.Completed) -> None:
    """Leave out the commands whose answers came behind the snapshot: nobody has given them there.  With a drain, also
    one that was given later, the end of all data is left out that it has made."""
    answered = {one.command for one in cut.journal if isinstance(one, h.CommandReturned)}
    dropped = [one for one in history.journal if isinstance(one, h.CommandIssued) and one.command not in answered]
    numbers = {one.command for one in dropped}
    cut.journal = [one for one in cut.journal if not isinstance(one, h.CommandIssued) or one.command not in numbers]
    if any(one.drain for one in dropped):
        cut.runs = [cut_run(run, snapshot) for run in cut.runs]
        for run in (one for one in cut.runs if not one.inputs):
            run.end_of_data = run.end_of_data and (run.attempt < snapshot.attempt or run.task in snapshot.finished)


def _end(cut: h.History, job: int, order: int, at_us: int) -> None:
    """Let the job end, and its tasks with it."""
    for run in cut.runs:
        if run.ended is None:
            run.ended, run.how = order, "cancelled"
    cut.journal.append(h.JobEnded(order=order, at_us=at_us, job=job, status="cancelled", checkpoint=None, reason=""))


def latest(history: h.History) -> int:
    """The greatest order of all entries of a history."""
    return max(_orders(history), default=0)


def _orders(history: h.History) -> Iterator[int]:
    for run in history.runs:
        loaded = [run.loaded.order] if run.loaded is not None else []
        yield from _there((run.started, run.ended, *(mark.order for mark in run.marks), *loaded))
    for one in (*history.transactions, *history.passing):
        yield from _there((one.begun, one.prepared, one.commit_requested, one.committed, one.aborted))
    for log in history.logs:
        yield from _there((log.opened, log.cleared, *(order for order, _ in log.trims)))
    for entry in (*history.stored, *history.completed, *history.written, *history.journal, *history.timeline):
        yield entry.order
    yield from _there((history.healed, *(read.ended for read in history.reads)))


def _there(orders: Iterable[int | None]) -> list[int]:
    return [order for order in orders if order is not None]


def _renumbered(entry: h.AnyJournalEntry, shift: dict[str, int]) -> h.AnyJournalEntry:
    """The entry with the number of its fault, or of its command, moved."""
    for field, by in shift.items():
        number = getattr(entry, field, None)
        if number is not None:
            return msgspec.structs.replace(entry, **{field: number + by})
    return entry


def _without_times(history: h.History) -> None:
    """Two clocks gave the times of this history: those that only one clock makes comparable are left out."""
    for run in history.runs:
        run.read_at, run.advanced_at = [], []
    for channel in history.channels:
        channel.idle_at = []
