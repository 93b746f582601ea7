"""The failures in a history, and the fault that explains each.

A process records how it failed, but does not know the cause.  The harness records the
faults that it injected, but does not know their effects.  Here effects are matched with causes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....reference_impl import observed as o
from ....reference_impl.core.vocabulary import transactions as t
from ....reference_impl.core.vocabulary.causes import (
    ConnectionBroke,
    CoordinatorDied,
    HeartbeatMissed,
    Killed,
    ProcessGone,
    StoreRefused,
)
from ....reference_impl.core.vocabulary.events import CommandKind
from ....reference_impl.core.vocabulary.ids import AttemptId, TaskId
from ....reference_impl.core.vocabulary.status_changes import AttemptStarted, RegionRestarted
from .former_sentences import cause_of
from .order import Placed, Source

COORDINATOR = "coordinator"
"""The name of the coordinator's process."""

LATER_US = 2_000_000
"""of the machine's clock: how much later than its effect a cause may be recorded, and how long after a fault has
healed its effect may still be noticed"""
LONG_LAG_US = 1_000_000
"""an event loop that is this late shows that the machine is too slow for timeouts to mean anything"""


class Run(msgspec.Struct):
    """One attempt of one task: where it lived, when it began and ended."""

    task: TaskId
    attempt: AttemptId
    source: int
    number: int
    began: int
    ended: int | None = None
    how: o.RunEnd | None = None


class Faults:
    """The faults that the harness injected, and when.  Queries return the number of a fault, or None."""

    def __init__(self, placed: Sequence[Placed]) -> None:
        self._healed: dict[int, list[int]] = {}
        self._breaks: list[tuple[int, o.Breaks]] = []
        self._stopped: list[tuple[int, o.Stopped]] = []
        self._died: list[tuple[int, o.Died]] = []
        """each with its stamp"""
        self._fired: dict[int, int] = {}
        """by fault: when it fired first"""
        self._outages: list[tuple[int, int | None, int]] = []
        """(from, until, fault)"""
        self._expired: dict[str, int] = {}
        """by transaction that the store expired: the fault that caused it"""
        for one in placed:
            entry = one.event
            if isinstance(entry, o.FaultFired):
                self._fired.setdefault(entry.fault, one.stamp)
            elif isinstance(entry, o.FaultHealed):
                self._healed.setdefault(entry.fault, []).append(one.stamp)
            elif isinstance(entry, o.Breaks):
                self._breaks.append((one.stamp, entry))
            elif isinstance(entry, o.Stopped):
                self._stopped.append((one.stamp, entry))
            elif isinstance(entry, o.Died):
                self._died.append((one.stamp, entry))
            elif isinstance(entry, o.Outage):
                self._outage(one.stamp, entry)
            elif isinstance(entry, o.Expired):
                self._expired[entry.name] = entry.fault

    def _outage(self, stamp: int, entry: o.Outage) -> None:
        if entry.began:
            self._outages.append((stamp, None, entry.fault))
        else:
            self._outages = [
                (began, stamp if until is None and fault == entry.fault else until, fault)
                for began, until, fault in self._outages
            ]

    def _lasts(self, fault: int, began: int, at: int) -> bool:
        """Whether a fault that began to act at `began` can explain a failure at `at`."""
        healed = next((stamp for stamp in self._healed.get(fault, ()) if stamp >= began), None)
        return healed is None or at <= healed + LATER_US

    def breaking(self, channel: str, at: int) -> int | None:
        """The fault that broke a channel's connection."""
        for stamp, entry in reversed(self._breaks):
            is_meant = entry.channel in (channel, "*")
            if is_meant and stamp <= at + LATER_US and self._lasts(entry.fault, stamp, at):
                return entry.fault
        return None

    def silencing(self, process: str, at: int) -> int | None:
        """The fault that explains why a process shows no sign of life."""
        for stamp, stopped in reversed(self._stopped):
            if stopped.process == process and stamp <= at and self._lasts(stopped.fault, stamp, at):
                return stopped.fault
        died = self.ending(process, at)
        return died if died is not None else self.taking_database(at, at)

    def death(self, process: str, at: int) -> o.Died | None:
        """The death of a process near the time `at`."""
        for stamp, died in reversed(self._died):
            if died.process == process and at - 5 * LATER_US <= stamp <= at + LATER_US:
                return died
        return None

    def death_of(self, source: Source) -> o.Died | None:
        """The death of a process, however late the harness has noticed it: one that waits for Toxiproxy notices
        nothing."""
        ends = (died for _, died in self._died if Source(died.process, died.incarnation) == source)
        return next(ends, None)

    def killed(self, source: Source, at: int) -> bool:
        """Whether a fault that had fired by then ended the process."""
        died = self.death_of(source)
        return died is not None and died.fault is not None and self._fired.get(died.fault, at + 1) <= at

    def ending(self, process: str, at: int) -> int | None:
        """The fault that killed a process near the time `at`."""
        died = self.death(process, at)
        return died.fault if died is not None else None

    def taking_database(self, began: int, at: int) -> int | None:
        """The fault that killed the database between the start and the failure of an attempt.  The attempt's session
        and its open transactions are lost, however late the attempt notices."""
        for start, until, fault in reversed(self._outages):
            if start <= at and (until is None or began <= until + LATER_US):
                return fault
        return None

    def giving_up(self, transaction: str | None) -> int | None:
        """The fault that expired the transaction which the store refuses."""
        return self._expired.get(transaction) if transaction is not None else None

    def slows(self, process: str, at: int) -> bool:
        """Whether some fault is a reason for a process to be late."""
        return self.silencing(process, at) is not None


class Judged(msgspec.Struct):
    """The entries of a history, and whether the machine was too slow for it."""

    placed: list[Placed]
    starved: bool


def judged(placed: Sequence[Placed], sources: Sequence[Source]) -> Judged:
    """Replace deaths of processes by failures of tasks and of the coordinator.  Each failure is there once, with its
    fault.  Consequences of other failures are left out, and so are failures of replaced attempts."""
    judge = _Judge(placed, sources)
    for one in placed:
        judge.take(one)
    return Judged(judge.kept, judge.starved)


class _Judge:
    def __init__(self, placed: Sequence[Placed], sources: Sequence[Source]) -> None:
        self.kept: list[Placed] = []
        self.starved = False
        self._sources = sources
        self._faults = Faults(placed)
        self._runs = runs_of(placed, sources)
        self._of = {(run.task, run.attempt): run for run in self._runs}
        self._process_of = {run.task: sources[run.source].process for run in self._runs}
        self._parts = _parts(placed)
        self._newest: dict[TaskId | None, int] = {}
        """the newest attempt: of each task that a partial failover restarted, and (None) of all other tasks"""
        self._jobs: dict[int, int] = {}
        """attempt: job"""
        self._over: set[int] = set()
        self._failed: set[tuple[TaskId, AttemptId]] = set()
        self._coordinator_down = False
        self._asked: dict[int, o.CommandIssued] = {}
        self._answered: dict[int, o.CommandReturned] = {}

    def take(self, one: Placed) -> None:
        entry = one.event
        if isinstance(entry, o.TaskFailed):
            self._failure(one, entry)
        elif isinstance(entry, o.Died):
            self._death(one, entry)
        elif isinstance(entry, o.CoordinatorChanged):
            self._change(one, entry)
        elif isinstance(entry, o.CommandIssued):
            if entry.command not in self._asked:
                self._asked[entry.command] = entry
                self.kept.append(one)
        elif isinstance(entry, o.CommandReturned):
            self._answer(one, entry)
        else:
            self._heed(one)
            self.kept.append(one)

    def _heed(self, one: Placed) -> None:
        entry = one.event
        if isinstance(entry, o.StatusChanged) and isinstance(entry.change, AttemptStarted):
            attempt = entry.change.attempt
            for task in self._parts.get(attempt, (None,)):
                self._newest[task] = max(self._newest.get(task, 0), attempt)
            self._jobs[attempt] = entry.job
        elif isinstance(entry, o.Transacting) and isinstance(entry.request, t.Fence):
            # A coordinator that closes a job gives up every attempt, and fences the sinks under a number of its own.
            # It records the request before it sends it, so whoever was refused because of it failed later.
            if self._sources[one.source].process == COORDINATOR:
                self._newest[None] = max(self._newest.get(None, 0), entry.request.attempt)
        elif isinstance(entry, o.JobEnded):
            self._over.add(entry.job)
        elif isinstance(entry, o.Lagged) and entry.by_us >= LONG_LAG_US:
            process = self._sources[one.source].process
            self.starved = self.starved or not self._faults.slows(process, one.stamp)

    # -- tasks -----------------------------------------------------------------------

    def _is_superseded(self, task: TaskId, attempt: AttemptId) -> bool:
        newest = max(self._newest.get(None, 0), self._newest.get(task, 0))
        return newest > attempt or self._jobs.get(attempt) in self._over

    def _failure(self, one: Placed, entry: o.TaskFailed) -> None:
        key = (entry.task, entry.attempt)
        if self._is_superseded(*key) or key in self._failed:
            return
        fault = entry.fault
        if fault is None:
            if self._follows(one.stamp, entry):
                return
            fault = self._explained_by(one.stamp, entry)
        self._failed.add(key)
        self.kept.append(one.with_event(msgspec.structs.replace(self._better_known(one.stamp, entry), fault=fault)))

    def _better_known(self, at: int, entry: o.TaskFailed) -> o.TaskFailed:
        """The failure.  If the process has died, the harness knows more about it than the coordinator."""
        if isinstance(cause_of(entry), ProcessGone):
            died = self._death_behind(entry, at)
            if died is not None:
                return msgspec.structs.replace(entry, reason=died.reason, cause=died.cause or Killed())
        return entry

    def _death_behind(self, entry: o.TaskFailed, at: int) -> o.Died | None:
        """The death of the process in which a task ran."""
        run = self._of.get((entry.task, entry.attempt))
        died = self._faults.death_of(self._sources[run.source]) if run is not None else None
        return died or self._faults.death(self._process_of.get(entry.task, ""), at)

    def _follows(self, at: int, entry: o.TaskFailed) -> bool:
        """Whether a failure is only the effect of another task's failure on a connection.

        The end of a killed or failed task may be reported late.  A cancelled task is often cancelled because of it.  So
        may the sender have failed later, because the attempt was given up for this failure: where a fault broke the
        connection, that is the cause.
        """
        cause = cause_of(entry)
        if not isinstance(cause, ConnectionBroke):
            return False
        run = self._of.get((cause.sender, entry.attempt))
        if run is None or run.ended is None or run.how is o.RunEnd.FINISHED:
            return False
        if run.how is o.RunEnd.FAILED and run.ended > at and self._broken_by(cause.sender, entry.task, at) is not None:
            return False
        if run.how is o.RunEnd.KILLED and self._faults.killed(self._sources[run.source], at):
            return True
        return run.ended <= at + (0 if run.how is o.RunEnd.CANCELLED else LATER_US)

    def _explained_by(self, at: int, entry: o.TaskFailed) -> int | None:
        faults = self._faults
        run = self._of.get((entry.task, entry.attempt))
        cause = cause_of(entry)
        if isinstance(cause, ConnectionBroke):
            return self._broken_by(cause.sender, entry.task, at)
        if isinstance(cause, HeartbeatMissed):
            fault = faults.silencing(self._process_of.get(entry.task, ""), at)
            self.starved = self.starved or fault is None
            return fault
        if isinstance(cause, ProcessGone):
            died = self._death_behind(entry, at)
            return died.fault if died is not None else None
        if isinstance(cause, StoreRefused):
            expired = faults.giving_up(cause.transaction)
            if expired is not None:
                return expired
            return faults.taking_database(run.began if run is not None else at, at)
        return None

    def _broken_by(self, sender: TaskId, receiver: TaskId, at: int) -> int | None:
        """The fault that broke the connection between two tasks."""
        return self._faults.breaking(f"{sender}>{receiver}", at)

    # -- processes -------------------------------------------------------------------

    def _death(self, one: Placed, entry: o.Died) -> None:
        if entry.process == COORDINATOR:
            self._lose_coordinator(one, entry)
            return
        dead = Source(entry.process, entry.incarnation)
        victims = [run for run in self._runs if self._sources[run.source] == dead and run.ended == one.stamp]
        for number, run in enumerate(victims):
            shift = (number + 1) / (len(victims) + 1) / 2
            ended = o.RunEnded(run.number, o.RunEnd.KILLED)
            self.kept.append(Placed(one.stamp, run.source, one.position + shift, ended))
            if not self._is_superseded(run.task, run.attempt) and (run.task, run.attempt) not in self._failed:
                self._failed.add((run.task, run.attempt))
                cause = entry.cause or Killed()
                failed = o.TaskFailed(run.task, run.attempt, entry.reason, entry.fault, cause)
                self.kept.append(one.with_event(failed, shift))

    def _lose_coordinator(self, one: Placed, entry: o.Died) -> None:
        self._change(one, o.CoordinatorChanged(False, entry.fault, entry.reason if entry.fault is None else None))
        for command, asked in self._asked.items():
            if command not in self._answered and asked.kind is not CommandKind.RESUME:
                self._answer(one, o.command_returned(command, None, CoordinatorDied()))

    def _change(self, one: Placed, entry: o.CoordinatorChanged) -> None:
        """A death may be reported twice, by the killer and by a witness: it counts once."""
        if entry.up or not self._coordinator_down:
            self.kept.append(one.with_event(entry))
        self._coordinator_down = not entry.up

    def _answer(self, one: Placed, entry: o.CommandReturned) -> None:
        before = self._answered.setdefault(entry.command, entry)
        if before is entry or not _are_alike(before, entry):
            self.kept.append(one.with_event(entry))


def _are_alike(one: o.CommandReturned, other: o.CommandReturned) -> bool:
    """Whether they are the same answer; journals of older runs have the cause in words only."""
    if one.cause is None or other.cause is None:
        return (one.checkpoint, one.error) == (other.checkpoint, other.error)
    return (one.checkpoint, one.cause) == (other.checkpoint, other.cause)


def _parts(placed: Sequence[Placed]) -> dict[int, tuple[TaskId, ...]]:
    """For each attempt of a partial failover, the tasks that it restarted; the other tasks keep their attempt."""
    changes = [one.event.change for one in placed if isinstance(one.event, o.StatusChanged)]
    return {change.attempt: change.tasks for change in changes if isinstance(change, RegionRestarted)}


def runs_of(placed: Sequence[Placed], sources: Sequence[Source]) -> list[Run]:
    """Every attempt of a task, with its end: the recorded one, or the end of its process."""
    runs: dict[tuple[int, int], Run] = {}
    for one in placed:
        entry = one.event
        if isinstance(entry, o.TaskStarted):
            runs[one.source, entry.run] = Run(entry.task, entry.attempt, one.source, entry.run, one.stamp)
        elif isinstance(entry, o.RunEnded):
            run = runs[one.source, entry.run]
            run.ended, run.how = one.stamp, entry.how
        elif isinstance(entry, o.Died):
            dead = Source(entry.process, entry.incarnation)
            for run in runs.values():
                if sources[run.source] == dead and run.ended is None:
                    run.ended, run.how = one.stamp, o.RunEnd.KILLED
    return list(runs.values())
