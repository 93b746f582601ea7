"""Records the reports of a world as a history, which the checkers read.

A `RunLog` records a task's program order while the task runs.  `Dated` and `DatedChannel`
also record times, for inputs whose splits can become idle after a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from ....faults.plan import KINDS
from ....properties.model import history as h
from ....properties.model.words import plural
from ....properties.model.workload import SINK
from ....reference_impl.core.vocabulary import transactions as t
from ....reference_impl.core.vocabulary.events import CompletedSnapshot
from ....reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId, Tasks
from ....reference_impl.trace import Appendable, ChannelLog

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
    ) -> None:
        """`kinds` are the kinds of the planned faults, in their order.  `dated` are the inputs whose reads and idle
        marks are recorded with their times."""
        self.history = history
        self.dated = dated
        self.detailed = detailed
        self.now = now
        self._kinds = kinds
        self._order = 0
        self._transactions: dict[str, h.Transaction] = {}
        self._logs: dict[str, h.PersistentLog] = {}
        self._lasting: dict[int, None] = {}
        self._healed: set[int] = set()

    def order(self) -> int:
        self._order += 1
        return self._order

    def events(self) -> int:
        """Records read and applied so far, by all tasks together."""
        events = 0
        for run in self.history.runs:
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
        self.history.runs.append(run)
        self.show("task-deployed", run, None)
        return RunLog(self, run)

    def channel_opened(self, name: str, attempt: AttemptId) -> ChannelLog:
        channel = h.Channel(name=name, attempt=attempt, sent=[], barriers=[], watermarks=[], repeated=[])
        self.history.channels.append(channel)
        return DatedChannel(channel, self.now) if name.partition(">")[0].rpartition("-")[0] in self.dated else channel

    # -- the coordinator -----------------------------------------------------------------

    def note(
        self, what: str, checkpoint: int | None, attempt: int | None, job: int, detail: str, tasks: Tasks = ()
    ) -> None:
        at = self.now()
        journal = self.history.journal
        if what == "attempt-started":
            journal.append(
                h.AttemptStarted(
                    order=self.order(), at_us=at, attempt=attempt or 0, job=job, restores=checkpoint, cause=detail
                )
            )
        elif what in ("tasks-restarted", "tasks-recovered"):
            started = next(entry for entry in reversed(journal) if isinstance(entry, h.AttemptStarted))
            started.tasks = list(tasks)
            started.in_place = what == "tasks-recovered"
        elif what == "attempt-running":
            journal.append(h.AttemptRunning(order=self.order(), at_us=at, attempt=attempt or 0))
        elif what == "checkpoint-triggered":
            journal.append(
                h.CheckpointTriggered(
                    order=self.order(),
                    at_us=at,
                    checkpoint=checkpoint or 0,
                    job=job,
                    attempt=attempt or 0,
                    savepoint=detail == "savepoint",
                )
            )
        elif what == "checkpoint-aborted":
            journal.append(h.CheckpointAborted(order=self.order(), at_us=at, checkpoint=checkpoint or 0, reason=detail))
        if self.detailed:
            self.timed(what, "coordinator", attempt or 0, checkpoint=checkpoint, detail=detail or " ".join(tasks))

    def task_failed(self, task: TaskId, attempt: AttemptId, reason: str, fault: int | None) -> None:
        self.history.journal.append(
            h.TaskFailed(order=self.order(), at_us=self.now(), task=task, attempt=attempt, reason=reason, fault=fault)
        )

    def coordinator(self, up: bool, fault: int | None) -> None:
        entry: h.AnyJournalEntry
        if up:
            entry = h.CoordinatorUp(order=self.order(), at_us=self.now())
        else:
            entry = h.CoordinatorDown(order=self.order(), at_us=self.now(), fault=fault)
        self.history.journal.append(entry)
        if self.detailed:
            self.timed("coordinator-up" if up else "killed", "coordinator", 0)

    def command_issued(
        self,
        command: int,
        kind: str,
        drain: bool,
        parallelism: Mapping[str, int] | None = None,
        inserted: Mapping[str, str] | None = None,
    ) -> None:
        entry = h.CommandIssued(order=self.order(), at_us=self.now(), command=command, kind=kind, drain=drain)
        entry.parallelism, entry.inserted = dict(parallelism or {}), dict(inserted or {})
        self.history.journal.append(entry)

    def command_returned(self, command: int, checkpoint: CheckpointId | None, error: str) -> None:
        self.history.journal.append(
            h.CommandReturned(order=self.order(), at_us=self.now(), command=command, checkpoint=checkpoint, error=error)
        )

    def job_ended(self, job: int, status: str, checkpoint: CheckpointId | None, reason: str) -> None:
        self.history.journal.append(
            h.JobEnded(
                order=self.order(), at_us=self.now(), job=job, status=status, checkpoint=checkpoint, reason=reason
            )
        )
        if self.detailed:
            self.timed("job-ended", "coordinator", 0, detail=status)

    # -- the stores ------------------------------------------------------------------------

    def keeps(self, state: str) -> None:
        """A snapshot was stored or loaded: `state` is its text, which is now in the history."""

    def snapshot_stored(
        self, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId, handle: Handle, state: str
    ) -> None:
        self.history.stored.append(
            h.Stored(
                checkpoint=checkpoint,
                task=task,
                attempt=attempt,
                order=self.order(),
                at_us=self.now(),
                handle=handle,
                state=state,
            )
        )
        self.keeps(state)
        if self.detailed:
            self.timed("snapshot-persisted", task, attempt, checkpoint=checkpoint, peer="store")

    def checkpoint_completed(self, snapshot: CompletedSnapshot) -> None:
        checkpoint, attempt = snapshot.checkpoint, snapshot.attempt
        self.history.completed.append(
            h.Completed(
                checkpoint=checkpoint,
                job=snapshot.job,
                attempt=attempt,
                order=self.order(),
                at_us=self.now(),
                handles={str(task): str(handle) for task, handle in snapshot.handles.items()},
                savepoint=snapshot.savepoint,
                finished=[str(task) for task in snapshot.finished],
                enumerators={
                    name: h.Enumerated(
                        unassigned=dict(state.unassigned),
                        assigned={split: str(task) for split, task in state.assigned.items()},
                    )
                    for name, state in snapshot.enumerators.items()
                },
            )
        )
        if self.detailed:
            self.timed("checkpoint-completed", "coordinator", attempt, checkpoint=checkpoint)

    def deleted(self, checkpoint: CheckpointId | None, handles: Sequence[Handle]) -> None:
        self.history.journal.append(
            h.SnapshotDeleted(
                order=self.order(), at_us=self.now(), checkpoint=checkpoint or 0, handles=[str(one) for one in handles]
            )
        )

    # -- logs of persistent channels ---------------------------------------------------------

    def log_opened(self, name: str, task: TaskId, attempt: AttemptId) -> None:
        if name in self._logs:  # another process goes on with this log (UNA-4)
            return
        log = h.PersistentLog(name=name, task=task, attempt=attempt, opened=self.order())
        self._logs[name] = log
        self.history.logs.append(log)

    def log_trimmed(self, name: str, before: int) -> None:
        self._logs[name].trims.append((self.order(), before))

    def logs_cleared(self, names: Sequence[str]) -> None:
        """The store's logs with these names were deleted.  A log that was never reported is ignored: its writer was
        killed before it could report the log, and before any snapshot could refer to it."""
        order = self.order()
        for name in names:
            if name in self._logs:
                self._logs[name].cleared = order

    def commit_requested(self, name: str) -> None:
        transaction = self._transactions.get(name)
        if transaction is not None and transaction.commit_requested is None:
            transaction.commit_requested = self.order()

    def transacted(self, request: t.AnyRequest, outcome: t.Outcome, applied: int) -> None:
        """The external store has executed or refused a request."""
        if not isinstance(outcome, t.Done):
            return
        if isinstance(request, WRITES):
            self.history.written.append(
                h.Written(
                    task=request.writer, attempt=request.attempt, order=self.order(), applied=applied, row=request.row
                )
            )
        elif isinstance(request, t.Begin):
            self._begun(request)
        elif isinstance(request, t.Publish):
            for name in request.names:
                self._changed(t.Commit(writer=request.writer, attempt=request.attempt, name=name), applied)
        elif isinstance(request, CHANGES):
            self._changed(request, applied)

    def _begun(self, request: t.Begin) -> None:
        if request.name in self._transactions:
            return
        transaction = h.Transaction(
            name=request.name, task=request.writer, attempt=request.attempt, begun=self.order(), rows=[], applied=[]
        )
        self._transactions[request.name] = transaction
        into = self.history.transactions if request.writer.rpartition("-")[0] == SINK else self.history.passing
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

    def looked(self, began: int, rows: int) -> None:
        self.history.reads.append(h.Read(began=began, ended=self.order(), rows=rows))

    # -- faults and the time line ------------------------------------------------------------

    def fault_fired(self, fault: int, phase: str, detail: str, attempt: int | None) -> None:
        """A fault has fired.  A fault that lasts may be felt only after it has healed, and then it no longer lasts."""
        if self._kinds[fault] in LAST and fault not in self._healed:
            self._lasting[fault] = None
        self._heal()
        self.history.journal.append(
            h.FaultFired(
                order=self.order(),
                at_us=self.now(),
                fault=fault,
                kind=self._kinds[fault],
                phase=phase,
                detail=detail,
                attempt=attempt,
            )
        )
        if self.detailed:
            self.timed("fault-fired", "", attempt or 0, detail=detail)

    def fault_healed(self, fault: int) -> None:
        self._healed.add(fault)
        self._lasting.pop(fault, None)
        self._heal()

    def fault_lasts(self, fault: int) -> None:
        """A fault still acts when the run is cut off, whether it has fired or not."""
        self._lasting[fault] = None
        self._heal()

    def _heal(self) -> None:
        order = self.order()
        self.history.lasting = sorted(self._lasting)
        self.history.healed = None if self._lasting else order

    def show(self, what: str, run: h.TaskRun, checkpoint: int | None, detail: str = "") -> None:
        if self.detailed:
            self.timed(what, run.task, run.attempt, checkpoint=checkpoint, detail=detail)

    def timed(
        self,
        what: str,
        task: str,
        attempt: int,
        *,
        peer: str = "",
        detail: str = "",
        channel: str = "",
        position: int = -1,
        checkpoint: int | None = None,
        origin: int | None = None,
    ) -> None:
        self.history.timeline.append(
            h.Timed(
                order=self.order(),
                at_us=self.now(),
                what=what,
                task=task,
                attempt=attempt,
                peer=peer,
                detail=detail,
                channel=channel,
                position=position,
                checkpoint=checkpoint,
                origin=origin,
            )
        )


class RunLog:
    """The program order of one attempt of one task, as it grows."""

    def __init__(self, recorder: Recorder, run: h.TaskRun) -> None:
        self._recorder = recorder
        self._run = run
        self.dated = run.operator in recorder.dated
        self.reads: Appendable[tuple[int, int]] = run.reads
        if self.dated:
            self.reads = Dated(run.reads, run.read_at, recorder.now)
        self.applies = run.applies

    def marked(self, checkpoint: CheckpointId, received: list[int], sent: list[int]) -> None:
        recorder, run = self._recorder, self._run
        run.marks.append(
            h.Mark(
                checkpoint=checkpoint,
                order=recorder.order(),
                at_us=recorder.now(),
                reads=len(run.reads),
                applies=len(run.applies),
                received=received,
                sent=sent,
                events=recorder.events(),
                watermarks=len(run.watermarks),
                ticks=len(run.ticks),
            )
        )
        recorder.show("snapshot-taken", run, checkpoint)

    def advanced(self, time: int) -> None:
        self._run.watermarks.append((len(self._run.reads) + len(self._run.applies), time))
        if self.dated:
            self._run.advanced_at.append(self._recorder.now())

    def ticked(self, time: int) -> None:
        self._run.ticks.append((len(self._run.applies), time))

    def assigned(self, splits: Mapping[int, int]) -> None:
        run = self._run
        known = {split for _, split, _ in run.assigned}
        for split in sorted(splits.keys() - known):
            run.assigned.append((len(run.reads), split, splits[split]))

    def restored(self, checkpoint: CheckpointId, state: str) -> None:
        run = self._run
        before = len(run.applies) + len(run.reads)
        run.loaded = h.Loaded(checkpoint=checkpoint, order=self._recorder.order(), applies_before=before, state=state)
        self._recorder.keeps(state)
        self._recorder.show("state-loaded", run, checkpoint)

    def input_ended(self) -> None:
        self._run.end_of_data = True

    def ended(self, how: str) -> None:
        self._run.ended = self._recorder.order()
        self._run.how = how
        self._recorder.show("ended", self._run, None, how)
