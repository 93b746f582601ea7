"""Records the reports of a world as a history, which the checkers read.

A `RunLog` records a task's program order while the task runs.  `Dated` and `DatedChannel`
also record times, for inputs whose splits can become idle after a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from ....faults.plan import KINDS
from ....properties.model import history as h
from ....properties.model.upgrade import Upgrade
from ....properties.model.words import plural
from ....properties.model.workload import SINK
from ....reference_impl import observed as o
from ....reference_impl.core.vocabulary import status_changes as changes
from ....reference_impl.core.vocabulary import transactions as t
from ....reference_impl.core.vocabulary.ids import AttemptId, TaskId, ends_of, operator_of
from ....reference_impl.trace import Appendable, ChannelLog
from .causes import struck_by, translated

Item = TypeVar("Item")


class Dated(Generic[Item]):
    """A list that records the time at which an item is appended, for the items that `of` selects."""

    def __init__(
        self, items: list[Item], moments: list[int], now: Callable[[], int], of: Callable[[Item], bool] = lambda _: True
    ) -> None:
        self._items = items
        self._moments = moments
        self._now = now
        self._of = of

    def append(self, item: Item, /) -> None:
        self._items.append(item)
        if self._of(item):
            self._moments.append(self._now())

    def pop(self) -> Item:
        item = self._items.pop()
        if self._of(item):
            self._moments.pop()
        return item

    def __len__(self) -> int:
        return len(self._items)


class DatedChannel:
    """A channel's log that records the times at which the sender became idle."""

    def __init__(self, channel: h.Channel, now: Callable[[], int]) -> None:
        self.sent = channel.sent
        self.repeated = channel.repeated
        self.recovered = channel.recovered
        self.recovered_watermarks = channel.recovered_watermarks
        self.barriers = channel.barriers
        self.watermarks = Dated(channel.watermarks, channel.idle_at, now, lambda mark: mark[0] is None)


LAST = frozenset(
    name
    for name, kind in KINDS.items()
    if any(field.name in ("for_us", "down_us") and field.required for field in msgspec.structs.fields(kind))
)
"""kinds of faults that act for some time after they have fired, and then heal (a cut does so at a proxy alone)"""

WRITES = (t.Append, t.Upsert)
Text = o.Words | None
CHANGES = (t.Write, t.PreCommit, t.Commit, t.AbortTransaction)
"""requests that change a transaction which has begun"""


class Recorder:
    """An observer of a world, which records what it observes in `history`."""

    def __init__(
        self,
        history: h.History,
        kinds: Sequence[str],
        now: Callable[[], int],
        detailed: bool,
        dated: Collection[str] = (),
        order: int = 0,
    ) -> None:
        """`kinds` are the kinds of the planned faults, in their order.  `dated` are the inputs whose reads and idle
        marks are recorded with their times.  `order` is that of the last entry of a history that is continued."""
        self.history = history
        self.dated = dated
        self.detailed = detailed
        self.now = now
        self._kinds = kinds
        self._order = order
        self._alive: dict[int, h.TaskRun] = {}
        self._events_of_ended = 0
        self._transactions: dict[str, h.Transaction] = {
            one.name: one for one in (*history.transactions, *history.passing) if one.status != "aborted"
        }
        self._logs: dict[str, h.PersistentLog] = {one.name: one for one in history.logs}
        self._lasting: dict[int, None] = {}
        self._healed: set[int] = set()

    def saw(self, event: o.Observed) -> None:
        self._record[type(event)](self, event)

    @property
    def latest(self) -> int:
        """The order of the latest entry."""
        return self._order

    def order(self) -> int:
        self._order += 1
        return self._order

    def events(self) -> int:
        """Records read and applied so far, by all tasks together."""
        events = self._events_of_ended
        for run in self._alive.values():
            events += len(run.reads) + len(run.applies)
        return events

    # -- tasks and channels ------------------------------------------------------------

    def task_started(
        self,
        task: TaskId,
        operator: str,
        subtask: int,
        attempt: AttemptId,
        job: int,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> RunLog:
        run = h.TaskRun(
            task=task,
            operator=operator,
            subtask=subtask,
            attempt=attempt,
            job=job,
            started=self.order(),
            inputs=list(inputs),
            outputs=list(outputs),
            reads=[],
            applies=[],
            marks=[],
            watermarks=[],
            ticks=[],
            assigned=[],
        )
        number = len(self.history.runs)
        self.history.runs.append(run)
        self._alive[number] = run
        self.show("task-deployed", run, None)
        return RunLog(self, number)

    def channel_opened(self, name: str, attempt: AttemptId) -> ChannelLog:
        channel = h.Channel(name=name, attempt=attempt, sent=[], barriers=[], watermarks=[], repeated=[])
        self.history.channels.append(channel)
        return DatedChannel(channel, self.now) if operator_of(ends_of(name).sender) in self.dated else channel

    # -- one attempt of one task -----------------------------------------------------------

    def _marked(self, event: o.Marked) -> None:
        run = self.history.runs[event.run]
        run.marks.append(
            h.Mark(
                checkpoint=event.checkpoint,
                order=self.order(),
                at_us=self.now(),
                reads=len(run.reads),
                applies=len(run.applies),
                received=list(event.received),
                sent=list(event.sent),
                events=self.events(),
                watermarks=len(run.watermarks),
                ticks=len(run.ticks),
            )
        )
        self.show("snapshot-taken", run, event.checkpoint)

    def _advanced(self, event: o.TimeAdvanced) -> None:
        run = self.history.runs[event.run]
        run.watermarks.append((len(run.reads) + len(run.applies), event.time))
        if run.operator in self.dated:
            run.advanced_at.append(self.now())

    def _ticked(self, event: o.Ticked) -> None:
        run = self.history.runs[event.run]
        run.ticks.append((len(run.applies), event.time))

    def _assigned(self, event: o.SplitsAssigned) -> None:
        run = self.history.runs[event.run]
        known = {split for _, split, _ in run.assigned}
        for split in sorted(event.splits.keys() - known):
            run.assigned.append((len(run.reads), split, event.splits[split]))

    def _restored(self, event: o.StateRestored) -> None:
        run = self.history.runs[event.run]
        before = len(run.applies) + len(run.reads)
        run.loaded = h.Loaded(checkpoint=event.checkpoint, order=self.order(), applies_before=before, state=event.state)
        self.keeps(event.state)
        self.show("state-loaded", run, event.checkpoint)

    def _input_ended(self, event: o.InputEnded) -> None:
        self.history.runs[event.run].end_of_data = True

    def _ended(self, event: o.RunEnded) -> None:
        run, how = self.history.runs[event.run], event.how.value
        run.ended, run.how = self.order(), how
        if self._alive.pop(event.run, None) is not None:
            self._events_of_ended += len(run.reads) + len(run.applies)
        self.show("ended", run, None, how)

    # -- the coordinator -----------------------------------------------------------------

    def _status_changed(self, event: o.StatusChanged) -> None:
        self._record_change[type(event.change)](self, event.change, event.job)

    def _attempt_started(self, change: changes.AttemptStarted, job: int) -> None:
        attempt, restores, cause = change.attempt, change.restores, str(change.cause)
        self.history.journal.append(
            h.AttemptStarted(
                order=self.order(), at_us=self.now(), attempt=attempt, job=job, restores=restores, cause=cause
            )
        )
        self._show_change("attempt-started", attempt, restores, cause)

    def _region_restarted(self, change: changes.RegionRestarted, job: int) -> None:
        started = next(entry for entry in reversed(self.history.journal) if isinstance(entry, h.AttemptStarted))
        started.tasks, started.in_place = list(change.tasks), change.in_place
        what = "tasks-recovered" if change.in_place else "tasks-restarted"
        self._show_change(what, change.attempt, change.restores, " ".join(change.tasks))

    def _attempt_running(self, change: changes.AttemptRunning, job: int) -> None:
        self.history.journal.append(h.AttemptRunning(order=self.order(), at_us=self.now(), attempt=change.attempt))
        self._show_change("attempt-running", change.attempt, None)

    def _checkpoint_triggered(self, change: changes.CheckpointTriggered, job: int) -> None:
        self.history.journal.append(
            h.CheckpointTriggered(
                order=self.order(),
                at_us=self.now(),
                checkpoint=change.checkpoint,
                job=job,
                attempt=change.attempt,
                savepoint=change.savepoint,
            )
        )
        self._show_change(
            "checkpoint-triggered", change.attempt, change.checkpoint, "savepoint" if change.savepoint else None
        )

    def _checkpoint_acknowledged(self, change: changes.CheckpointAcknowledged, job: int) -> None:
        self._show_change("checkpoint-acknowledged", change.attempt, change.checkpoint)

    def _checkpoint_aborted(self, change: changes.CheckpointAborted, job: int) -> None:
        checkpoint, why, failed = change.checkpoint, str(change.cause), change.failed
        self.history.journal.append(
            h.CheckpointAborted(order=self.order(), at_us=self.now(), checkpoint=checkpoint, reason=why, failed=failed)
        )
        self._show_change("checkpoint-aborted", change.attempt, checkpoint, why)

    def _show_change(self, what: str, attempt: int, checkpoint: int | None, detail: Text = None) -> None:
        if self.detailed:
            self.timed(what, "coordinator", attempt, checkpoint=checkpoint, detail=detail)

    def _task_failed(self, event: o.TaskFailed) -> None:
        self.history.journal.append(
            h.TaskFailed(
                order=self.order(),
                at_us=self.now(),
                task=event.task,
                attempt=event.attempt,
                reason=event.reason,
                cause=translated(event.cause),
                fault=event.fault,
            )
        )

    def _coordinator_changed(self, event: o.CoordinatorChanged) -> None:
        order, now = self.order(), self.now()
        if event.up:
            self.history.journal.append(h.CoordinatorUp(order=order, at_us=now))
        else:
            why = event.reason or ""
            self.history.journal.append(h.CoordinatorDown(order=order, at_us=now, fault=event.fault, reason=why))
        if self.detailed:
            self.timed("coordinator-up" if event.up else "killed", "coordinator", 0)

    def _command_issued(self, event: o.CommandIssued) -> None:
        entry = h.CommandIssued(
            order=self.order(), at_us=self.now(), command=event.command, kind=event.kind.value, drain=event.drain
        )
        entry.parallelism, entry.inserted = dict(event.parallelism), dict(event.inserted)
        entry.format, entry.checkpoint, entry.claimed = event.format or "", event.snapshot, event.claimed
        if event.upgrade is not None:
            mapping, retyped = event.upgrade.mapping, event.upgrade.retyped
            entry.upgrade = Upgrade(
                renamed=event.upgrade.renamed,
                retyped=retyped,
                moves=mapping.moves,
                converts=mapping.converts,
                removed=event.upgrade.removed,
                added=event.upgrade.added,
                begin_empty=mapping.begin_empty,
                allow_non_restored_state=mapping.allow_non_restored_state,
            )
        self.history.journal.append(entry)

    def _command_returned(self, event: o.CommandReturned) -> None:
        self.history.journal.append(
            h.CommandReturned(
                order=self.order(),
                at_us=self.now(),
                command=event.command,
                checkpoint=event.checkpoint,
                error=event.error or "",
                cause=translated(event.cause),
            )
        )

    def _job_ended(self, event: o.JobEnded) -> None:
        self.history.journal.append(
            h.JobEnded(
                order=self.order(),
                at_us=self.now(),
                job=event.job,
                status=event.status.value,
                checkpoint=event.checkpoint,
                reason=event.reason or "",
                cause=translated(event.cause),
            )
        )
        if self.detailed:
            self.timed("job-ended", "coordinator", 0, detail=event.status.value)

    # -- the stores ------------------------------------------------------------------------

    def keeps(self, state: str) -> None:
        """A snapshot was stored or loaded: `state` is its text, which is now in the history."""

    def _snapshot_stored(self, event: o.SnapshotStored) -> None:
        self.history.stored.append(
            h.Stored(
                checkpoint=event.checkpoint,
                task=event.task,
                attempt=event.attempt,
                order=self.order(),
                at_us=self.now(),
                handle=event.handle,
                state=event.state,
                files=[(str(file.name), file.size, file.own) for file in event.files],
            )
        )
        self.keeps(event.state)
        if self.detailed:
            self.timed("snapshot-persisted", event.task, event.attempt, checkpoint=event.checkpoint, peer="store")

    def _checkpoint_completed(self, event: o.CheckpointCompleted) -> None:
        checkpoint, attempt = event.snapshot.checkpoint, event.snapshot.attempt
        self.history.completed.append(
            h.Completed(
                checkpoint=checkpoint,
                job=event.snapshot.job,
                attempt=attempt,
                order=self.order(),
                at_us=self.now(),
                handles={str(task): str(handle) for task, handle in event.snapshot.handles.items()},
                savepoint=event.snapshot.savepoint,
                finished=[str(task) for task in event.snapshot.finished],
                enumerators={
                    name: h.Enumerated(
                        unassigned=dict(state.unassigned),
                        assigned={split: str(task) for split, task in state.assigned.items()},
                    )
                    for name, state in event.snapshot.enumerators.items()
                },
            )
        )
        if self.detailed:
            self.timed("checkpoint-completed", "coordinator", attempt, checkpoint=checkpoint)

    def _deleted(self, event: o.SnapshotsDeleted) -> None:
        self.history.journal.append(
            h.SnapshotDeleted(
                order=self.order(),
                at_us=self.now(),
                checkpoint=event.checkpoint or 0,
                handles=[str(one) for one in event.handles],
            )
        )

    # -- logs of persistent channels ---------------------------------------------------------

    def _log_opened(self, event: o.LogOpened) -> None:
        if event.name in self._logs:  # another process goes on with this log (UNA-4)
            return
        log = h.PersistentLog(name=event.name, task=event.task, attempt=event.attempt, opened=self.order())
        self._logs[event.name] = log
        self.history.logs.append(log)

    def _log_trimmed(self, event: o.LogTrimmed) -> None:
        self._logs[event.name].trims.append((self.order(), event.before))

    def _logs_cleared(self, event: o.LogsCleared) -> None:
        """The store's logs with these names were deleted.  A log that was never reported is ignored: its writer was
        killed before it could report the log, and before any snapshot could refer to it."""
        order = self.order()
        for name in event.names:
            if name in self._logs:
                self._logs[name].cleared = order

    def _commit_requested(self, event: o.CommitRequested) -> None:
        transaction = self._transactions.get(event.name)
        if transaction is not None and transaction.commit_requested is None:
            transaction.commit_requested = self.order()

    def _transacted(self, event: o.Transacted) -> None:
        """The external store has executed or refused a request."""
        if not event.is_done:
            return
        request, applied = event.request, event.applied
        if isinstance(request, WRITES):
            self.history.written.append(
                h.Written(
                    task=request.writer, attempt=request.attempt, order=self.order(), applied=applied, row=request.row
                )
            )
        elif isinstance(request, t.BeginTransaction):
            self._begun(request)
        elif isinstance(request, t.Publish):
            for name in request.names:
                self._changed(t.Commit(writer=request.writer, attempt=request.attempt, name=name), applied)
        elif isinstance(request, CHANGES):
            self._changed(request, applied)

    def _expired(self, event: o.Expired) -> None:
        """The external store has given up a transaction; nobody requested it."""
        if transaction := self._transactions.get(event.name):
            writer = TaskId(transaction.task)
            self._changed(t.AbortTransaction(writer=writer, attempt=AttemptId(0), name=event.name), 0)

    def _begun(self, request: t.BeginTransaction) -> None:
        if request.name in self._transactions:
            return
        transaction = h.Transaction(
            name=request.name, task=request.writer, attempt=request.attempt, begun=self.order(), rows=[], applied=[]
        )
        self._transactions[request.name] = transaction
        into = self.history.transactions if operator_of(request.writer) == SINK else self.history.passing
        into.append(transaction)

    def _changed(self, request: t.Write | t.PreCommit | t.Commit | t.AbortTransaction, applied: int) -> None:
        transaction = self._transactions.get(request.name)
        if isinstance(request, t.Commit) and request.by_id:
            named = [one for name, one in self._transactions.items() if t.id_of(name) == t.id_of(request.name)]
            transaction = named[-1] if named else None
        if transaction is None or transaction.status in ("committed", "aborted"):
            return
        if isinstance(request, t.Write):
            transaction.rows.extend(request.rows)
            transaction.applied.extend([applied] * len(request.rows))
            return
        order = self.order()
        if isinstance(request, t.PreCommit):
            transaction.status, transaction.prepared, transaction.checkpoint = "prepared", order, request.checkpoint
        elif isinstance(request, t.Commit):
            transaction.status, transaction.committed = "committed", order
        else:
            transaction.status, transaction.aborted = "aborted", order
        if self.detailed:
            self.timed(
                f"transaction-{transaction.status}",
                request.writer,
                request.attempt,
                checkpoint=transaction.checkpoint,
                detail=f"{plural(len(transaction.rows), 'row')}",
            )

    def _looked(self, event: o.Looked) -> None:
        self.history.reads.append(h.Read(began=event.began, ended=self.order(), rows=event.rows))

    # -- faults and the time line ------------------------------------------------------------

    def _fault_fired(self, event: o.FaultFired) -> None:
        """A fault has fired.  A fault that lasts may be felt only after it has healed, and then it no longer lasts."""
        if self._kinds[event.fault] in LAST and event.fault not in self._healed:
            self._lasting[event.fault] = None
        self._heal()
        self.history.journal.append(
            h.FaultFired(
                order=self.order(),
                at_us=self.now(),
                fault=event.fault,
                kind=self._kinds[event.fault],
                phase=event.phase,
                detail=event.detail,
                attempt=event.attempt,
                struck=struck_by(event.struck),
            )
        )
        if self.detailed:
            self.timed("fault-fired", "", event.attempt or 0, detail=event.detail)

    def _fault_healed(self, event: o.FaultHealed) -> None:
        self._healed.add(event.fault)
        self._lasting.pop(event.fault, None)
        self._heal()

    def fault_lasts(self, fault: int) -> None:
        """A fault still acts when the run is cut off, whether it has fired or not."""
        self._lasting[fault] = None
        self._heal()

    def _heal(self) -> None:
        order = self.order()
        self.history.lasting = sorted(self._lasting)
        self.history.healed = None if self._lasting else order

    def show(self, what: str, run: h.TaskRun, checkpoint: int | None, detail: Text = None) -> None:
        if self.detailed:
            self.timed(what, run.task, run.attempt, checkpoint=checkpoint, detail=detail)

    def timed(
        self, what: str, task: str, attempt: int, checkpoint: int | None = None, detail: Text = None, peer: Text = None
    ) -> None:
        self._timed(o.Timed(what, task, attempt, peer=peer, detail=detail, checkpoint=checkpoint))

    def _timed(self, event: o.Timed) -> None:
        self.history.timeline.append(
            h.Timed(
                order=self.order(),
                at_us=self.now(),
                what=event.what,
                task=event.task,
                attempt=event.attempt,
                peer=event.peer or "",
                detail=event.detail or "",
                channel=event.channel or "",
                position=event.position if event.position is not None else -1,
                checkpoint=event.checkpoint,
                origin=event.origin,
            )
        )

    _record: ClassVar[Mapping[type[o.Observed], Callable[[Any, Any], None]]] = {
        o.Marked: _marked,
        o.TimeAdvanced: _advanced,
        o.Ticked: _ticked,
        o.SplitsAssigned: _assigned,
        o.StateRestored: _restored,
        o.InputEnded: _input_ended,
        o.RunEnded: _ended,
        o.StatusChanged: _status_changed,
        o.TaskFailed: _task_failed,
        o.CoordinatorChanged: _coordinator_changed,
        o.CommandIssued: _command_issued,
        o.CommandReturned: _command_returned,
        o.JobEnded: _job_ended,
        o.SnapshotStored: _snapshot_stored,
        o.CheckpointCompleted: _checkpoint_completed,
        o.SnapshotsDeleted: _deleted,
        o.LogOpened: _log_opened,
        o.LogTrimmed: _log_trimmed,
        o.LogsCleared: _logs_cleared,
        o.CommitRequested: _commit_requested,
        o.Transacted: _transacted,
        o.Expired: _expired,
        o.Looked: _looked,
        o.FaultFired: _fault_fired,
        o.FaultHealed: _fault_healed,
        o.Timed: _timed,
    }

    _record_change: ClassVar[Mapping[type[changes.StatusChange], Callable[[Any, Any, int], None]]] = {
        changes.AttemptStarted: _attempt_started,
        changes.RegionRestarted: _region_restarted,
        changes.AttemptRunning: _attempt_running,
        changes.CheckpointTriggered: _checkpoint_triggered,
        changes.CheckpointAcknowledged: _checkpoint_acknowledged,
        changes.CheckpointAborted: _checkpoint_aborted,
    }


class RunLog:
    """The records of one attempt of one task, as they grow."""

    def __init__(self, recorder: Recorder, number: int) -> None:
        run = recorder.history.runs[number]
        self.run = number
        self.reads: Appendable[tuple[int, int]] = run.reads
        if run.operator in recorder.dated:
            self.reads = Dated(run.reads, run.read_at, recorder.now)
        self.applies = run.applies
