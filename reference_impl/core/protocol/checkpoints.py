"""The coordinator's checkpoints: triggered, acknowledged, complete, or given up (ABS-3, ABS-4).

Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (arXiv:1506.08603), section 4.2, has a
central coordinator that injects barriers into the sources.  That each task acknowledges its snapshot, and the
coordinator thereby learns that all are there, is from Flink's documentation of its checkpointing; Chandy and Lamport
(1985) leave open how the parts of a snapshot are collected.

A checkpoint is *pending* from the moment at which it gets its id, before the tasks are triggered, until every expected
task has acknowledged.  Then its record is *being stored*.  Once that is durable the checkpoint is complete, and
*retained* until newer ones subsume it.  A checkpoint that is given up leaves handles behind; their snapshots are
discarded, even if they come late.

The plan of a checkpoint says which tasks take part and which start it (FIN-1).  A task that has finished takes no part.
A task whose senders have all finished is triggered by the coordinator.  A task that finishes while a checkpoint is
pending counts as finished in it, once all its senders do (FIN-8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ..decisions.enumerating import EnumeratorStates
from ..decisions.increments import FileCounts, Holder
from ..decisions.parts import Parts
from ..job.config import Config
from ..job.topology import JobGraph
from ..vocabulary.causes import AnyCause, Subsumed
from ..vocabulary.effects import ClearLogs, Discard, Effect, Store
from ..vocabulary.ends import JobEnd
from ..vocabulary.errors import ProtocolViolated
from ..vocabulary.events import CompletedSnapshot, all_of, files_needed, files_of
from ..vocabulary.formats import CANONICAL, Format
from ..vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ..vocabulary.messages import Abort, Ack, Trigger
from ..vocabulary.notes import CheckpointAborted, CheckpointAcknowledged, CheckpointTriggered
from ..vocabulary.state import LastStates, TaskState
from .task_tracking import Attempts, TaskEnds


class RetainedSnapshots:
    """The complete snapshots of a job, oldest first: kept until newer ones subsume them, and restored from (ABS-6).

    A record that is being stored is not complete yet.  But it may become so, and what it refers to must not be deleted.
    So some methods are told of the records `being_stored`.
    """

    def __init__(self, config: Config, parts: Parts, job: int, named: CheckpointId | None) -> None:
        """`named`: the snapshot of a former job from which the user began this job; None: the newest one."""
        self._config = config
        self._parts = parts
        self._job = job
        self._named = named
        self.all: tuple[CompletedSnapshot, ...] = ()
        self._recoverable: tuple[CompletedSnapshot, ...] = ()
        """all but those to which this job does not go back: they stay"""
        self.knows_all = True
        """False if the record of a complete checkpoint could not be read"""
        self._last_states: dict[Handle, None] = {}
        """handles of finished tasks: later snapshots refer to them, though the tasks took no part in those"""

    def take_over(self, listed: Sequence[CompletedSnapshot], *, knows_all: bool = True) -> None:
        self.knows_all = knows_all
        self._retain(sorted(listed, key=lambda snapshot: snapshot.checkpoint))
        finished_tasks = [one.handles[task] for one in listed for task in one.finished if task in one.handles]
        self._last_states.update(dict.fromkeys(finished_tasks))

    def add(self, snapshot: CompletedSnapshot) -> list[CompletedSnapshot]:
        """A snapshot is complete.  Those that it subsumes are not retained any more, and returned."""
        retained = sorted((*self.all, snapshot), key=lambda one: one.checkpoint)
        subsumed = self._parts.cleanup.subsumed(retained, self._config.retained_checkpoints)
        for one in subsumed:
            retained.remove(one)
        self._retain(retained)
        return subsumed

    def remove(self, checkpoint: CheckpointId) -> CompletedSnapshot | None:
        """A snapshot is not retained any more; None if it was not."""
        removed = next((one for one in self.all if one.checkpoint == checkpoint), None)
        if removed is not None:
            self._retain([one for one in self.all if one is not removed])
        return removed

    def _retain(self, snapshots: Sequence[CompletedSnapshot]) -> None:
        self.all = tuple(snapshots)
        recoverable, savepoints = self._parts.restore_choice.recoverable, self._config.savepoints
        self._recoverable = recoverable(self.all, self._job, self._named, savepoints == "snapshots")

    @property
    def latest(self) -> CompletedSnapshot | None:
        return self._recoverable[-1] if self._recoverable else None

    def to_restore(self) -> CompletedSnapshot | None:
        """The snapshot that a new attempt restores."""
        return self._parts.restore_choice.choose(self._recoverable)

    def last_states(self, tasks: Iterable[TaskId]) -> LastStates:
        """The last states of finished tasks, to which the next record refers."""
        latest = self.latest
        if latest is None:
            return LastStates()
        handles = {task: latest.handles[task] for task in tasks if task in latest.handles}
        self._last_states.update(dict.fromkeys(handles.values()))
        return LastStates(
            handles,
            {task: latest.states[task] for task in handles if task in latest.states},
            {task: latest.files[task] for task in handles if task in latest.files},
        )

    # -- what must not be deleted ----------------------------------------------------

    @property
    def files(self) -> tuple[Handle, ...]:
        """All to which the snapshots refer: the handles of their parts, and the files that these need besides."""
        return files_of(self.all)

    def holds(self, handle: Handle) -> bool:
        return any(handle in snapshot.handles.values() for snapshot in self.all)

    def unneeded(
        self, handles: Iterable[Handle], being_stored: Sequence[CompletedSnapshot]
    ) -> tuple[tuple[Handle, ...], tuple[Handle, ...]]:
        """Which of these handles may be discarded, and which not yet.

        The last state of a finished task stays as long as any record refers to it.  That may be the record of the
        snapshot in which the task took part itself, for example a savepoint.
        """
        if not self._last_states:
            return tuple(handles), ()
        records = (*self.all, *being_stored)
        needed = {handle for record in records for handle in record.handles.values() if handle in self._last_states}
        asked = tuple(handles)
        return tuple(one for one in asked if one not in needed), tuple(one for one in asked if one in needed)

    def oldest(self, being_stored: Sequence[CompletedSnapshot]) -> CheckpointId | None:
        """The oldest checkpoint whose input the sources' logs have to keep."""
        return self._parts.cleanup.oldest_needed([one.checkpoint for one in (*self.all, *being_stored)])

    def logs_from(self, being_stored: Sequence[CompletedSnapshot]) -> CheckpointId | None:
        """The oldest checkpoint whose in-flight data may be needed.  A savepoint is aligned and has none.  But a
        locally recovered task goes on from the newest snapshot, savepoint or not, and takes its input since then
        again."""
        if not self._config.keeps_logs:
            return None
        own = [one.checkpoint for one in (*being_stored, *self.all) if not one.savepoint]
        newest = self.latest.checkpoint if self.latest is not None else None
        if self._config.recovers_from_logs and newest is not None:
            own.append(newest)
        return min(own, default=newest)


class Pending(msgspec.Struct, kw_only=True):
    """A checkpoint under way; `command` is the user's request behind it, if any."""

    checkpoint: CheckpointId
    attempt: AttemptId
    expected: tuple[TaskId, ...]
    savepoint: bool = False
    is_separate: bool = False
    """of the timeline of savepoints, apart from that of checkpoints (SNAP-6)"""
    ending: JobEnd | None = None
    alignment_timeout_us: int | None = None
    """of its barriers"""
    command: int | None = None
    acknowledged: dict[TaskId, Handle] = {}
    states: dict[TaskId, TaskState] = {}
    logs: dict[TaskId, tuple[str, ...]] = {}
    """of each task, the logs of persistent channels to which its acknowledged state refers"""
    ended: tuple[TaskId, ...] = ()
    """tasks that acknowledged after all their input"""
    finished: tuple[TaskId, ...] = ()
    """tasks that had finished before all tasks had acknowledged"""
    triggered: tuple[TaskId, ...] = ()
    """tasks that were triggered to start it"""
    enumerators: EnumeratorStates = {}
    """the enumerators' states when it was triggered, before any reader was triggered"""
    format: Format | None = None
    """None: canonical"""
    base: CompletedSnapshot | None = None
    """the checkpoint on whose files its snapshots may build"""
    files: dict[TaskId, tuple[Handle, ...]] = {}
    """of each task, the files that its acknowledged snapshot needs"""

    @property
    def is_acknowledged_by_all(self) -> bool:
        acknowledged = self.acknowledged
        return len(acknowledged) >= len(self.expected) and all(task in acknowledged for task in self.expected)

    def acknowledge(self, ack: Ack) -> None:
        self.acknowledged[ack.task] = ack.handle
        self.logs[ack.task] = ack.logs
        if ack.files:
            self.files[ack.task] = ack.files
        if ack.state is not None:
            self.states[ack.task] = ack.state
        if ack.ended and ack.task not in self.ended:
            self.ended = (*self.ended, ack.task)

    def excuse(self, task: TaskId) -> Handle | None:
        """Go on without a task that has finished; the handle of its acknowledgement, if there was one."""
        self.expected = tuple(one for one in self.expected if one != task)
        self.finished = (*self.finished, task)
        self.states.pop(task, None)
        self.files.pop(task, None)
        return self.acknowledged.pop(task, None)


class BeingStored(msgspec.Struct, frozen=True):
    """Every task has acknowledged; the record is not durable yet."""

    pending: Pending
    record: CompletedSnapshot


class Checkpoints:
    """The checkpoints of one job; each method returns the effects of one change."""

    def __init__(
        self,
        job: int,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        *,
        first: CheckpointId,
        attempts: Attempts,
        ends: TaskEnds,
        snapshots: RetainedSnapshots,
        enumerator_states: Callable[[], EnumeratorStates],
        files: Callable[[Callable[[], Sequence[Holder]]], FileCounts],
    ) -> None:
        """`enumerator_states` gives the states of the job's enumerators at present, if it has any.  `files` makes what
        counts the files of snapshots, given everybody who needs some."""
        self._job = job
        self._graph = graph
        self._config = config
        self._parts = parts
        self._attempts = attempts
        self._ends = ends
        self._snapshots = snapshots
        self._enumerator_states = enumerator_states
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._sources = tuple(task for task, spec, _ in graph.tasks() if spec.role == "source")
        self.next_id = first
        self.pending: dict[CheckpointId, Pending] = {}
        self.storing: tuple[BeingStored, ...] = ()
        self._under_way = 0
        """the checkpoints, pending or being stored, that no user requested"""
        self._failed_in_a_row = 0
        self._files = files(self._holders)
        self._leftovers: dict[Handle, None] = {}
        """what may have been written for checkpoints that were given up"""
        self._still_needed: dict[Handle, None] = {}
        """the last states of finished tasks that are of no retained checkpoint, but needed by one"""

    # -- what is known ---------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """As many checkpoints are under way as may be at a time (ABS-3)."""
        return self._under_way >= self._config.concurrent_checkpoints

    @property
    def is_ending(self) -> bool:
        """A stop, a drain or the final checkpoint is under way."""
        if self.pending and any(one.ending is not None for one in self.pending.values()):
            return True
        return bool(self.storing) and any(one.pending.ending is not None for one in self.storing)

    @property
    def being_stored(self) -> tuple[CompletedSnapshot, ...]:
        return tuple(one.record for one in self.storing)

    @property
    def commands(self) -> list[int]:
        """The users' requests behind pending checkpoints."""
        return [one.command for one in self.pending.values() if one.command is not None]

    @property
    def triggered_tasks(self) -> list[TaskId]:
        """The tasks that were triggered to start a checkpoint, and have not acknowledged it."""
        return [task for one in self.pending.values() for task in one.triggered if task not in one.acknowledged]

    def take_over(self, next_id: CheckpointId) -> None:
        """Another coordinator has given out the ids below this one."""
        self.next_id = next_id

    # -- created and triggered -------------------------------------------------------------

    def create(self, *, savepoint: bool, ending: JobEnd | None, command: int | None, format_name: str) -> Pending:
        """Enter a new checkpoint; it is triggered once its id is durable.  `format_name`: "" for the job's own."""
        finished = self._ends.finished
        asked = self._parts.triggering.asked(self._tasks, finished)
        excused = tuple(task for task in self._tasks if task not in asked and task not in finished)
        pending = Pending(
            checkpoint=self._next_id(),
            attempt=self._attempts.newest,
            expected=self._parts.triggering.expected(
                asked, tuple(source for source in self._sources if source not in finished)
            ),
            finished=(*finished, *excused),
            savepoint=savepoint,
            is_separate=self._config.separate_savepoints and savepoint and ending is None,
            ending=ending,
            command=command,
        )
        pending.alignment_timeout_us = self._alignment_timeout_us(pending)
        name = format_name or self._config.snapshot_format
        if name != CANONICAL:
            pending.base = self._files.base_of(name, self._snapshots.all)
            pending.format = Format(name, pending.base.checkpoint if pending.base is not None else None)
        self.pending[pending.checkpoint] = pending
        self._under_way += not savepoint  # savepoints do not count (ABS-3)
        return pending

    def _next_id(self) -> CheckpointId:
        untouched = tuple(one.checkpoint for one in self.pending.values() if not one.acknowledged)
        checkpoint = self._parts.checkpoint_ids.allocate(self.next_id, untouched)
        self.next_id = max(self.next_id, CheckpointId(checkpoint + 1))
        return checkpoint

    def _alignment_timeout_us(self, pending: Pending) -> int | None:
        """The alignment timeout of a checkpoint's barriers.

        It is not less than that of any pending checkpoint.  Otherwise these barriers would overtake the older ones.
        """
        if pending.savepoint or pending.ending is not None:
            return None
        own = self._config.barrier_timeout_us(pending.checkpoint)
        all_of_them = [own, *(one.alignment_timeout_us for one in self.pending.values())]
        waiting = [alignment_timeout_us for alignment_timeout_us in all_of_them if alignment_timeout_us is not None]
        return max(waiting) if len(waiting) == len(all_of_them) else None

    def trigger(self, pending: Pending) -> list[Effect]:
        """Its id is durable: order the tasks to take part."""
        checkpoint, attempt = pending.checkpoint, pending.attempt
        pending.enumerators = self._enumerator_states()
        effects = [
            CheckpointTriggered(checkpoint, attempt, pending.savepoint),
            *self._parts.triggering.timeout(checkpoint, self._config.checkpoint_timeout_us),
            *self._trigger_tasks(pending),
        ]
        return effects if pending.expected else [*effects, *self._store_if_all_acknowledged(pending)]

    def _trigger_tasks(self, pending: Pending) -> list[Effect]:
        """Trigger the tasks that start the checkpoint: those without an unfinished sender."""
        finished = self._ends.finished
        order = Trigger(
            job=self._job,
            attempt=pending.attempt,
            checkpoint=pending.checkpoint,
            ending=pending.ending if pending.ending is not JobEnd.FINISH else None,
            alignment_timeout_us=pending.alignment_timeout_us,
            format=pending.format,
        )
        asked = self._parts.triggering.asked
        first = self._graph.first_of(asked(self._tasks, finished)) if finished else self._sources
        due_tasks = [task for task in first if task not in pending.acknowledged and task not in pending.triggered]
        pending.triggered = (*pending.triggered, *due_tasks)
        return [self._attempts.message_to(task, order) for task in due_tasks]

    def go_on_without(self, task: TaskId, rests_on: CheckpointId | None) -> list[Effect]:
        """A task counts as finished, and all its work is covered by a checkpoint.  Newer pending checkpoints go on
        without the task.  An older one (a savepoint) still needs the task's part."""
        newer = [one for one in self.pending.values() if rests_on is None or one.checkpoint > rests_on]
        return [effect for pending in newer for effect in self._go_on_without(pending, task)]

    def _go_on_without(self, pending: Pending, task: TaskId) -> list[Effect]:
        """Count a task that has finished as finished in a pending checkpoint, and drop its acknowledgement.

        A task downstream of it may finish too, without any acknowledgement.  So a snapshot that had the sender as
        running would have the receiver as finished.
        """
        if task not in self._parts.finishing.still_expected(pending.expected, task):
            handle = pending.excuse(task)
            self._leftovers[handle if handle is not None else self._handle(pending, task)] = None
        if not pending.triggered:
            return []  # its id is not durable yet: `_trigger_tasks` will know of the task that finished
        return [*self._trigger_tasks(pending), *self._store_if_all_acknowledged(pending)]

    # -- acknowledgements ----------------------------------------------------------

    def acknowledge(self, ack: Ack) -> list[Effect]:
        """Take an acknowledgement; with the last one the checkpoint's record is written."""
        pending = self._awaiting(ack)
        if pending is None:
            return self._reject(ack)
        pending.acknowledge(ack)
        for handle in self._parts.completion.unwanted(ack, savepoint=pending.savepoint, taken=True):
            self._leftovers[handle] = None
        return self._store_if_all_acknowledged(pending)

    def _awaiting(self, ack: Ack) -> Pending | None:
        """The pending checkpoint that an acknowledgement counts for."""
        pending = self.pending.get(ack.checkpoint)
        if pending is None or ack.job != self._job or ack.task not in self._tasks:
            return None
        if self._attempts.within(pending.attempt, ack.task) != ack.attempt:
            return None
        counts = self._parts.completion.counts(ack, pending.finished, pending.acknowledged)
        return pending if counts else None

    def _store_if_all_acknowledged(self, pending: Pending) -> list[Effect]:
        if not pending.is_acknowledged_by_all:
            return []
        acknowledged = {checkpoint: one.is_acknowledged_by_all for checkpoint, one in self.pending.items()}
        ready = self._parts.completion.completes(pending.checkpoint, acknowledged)
        return [effect for checkpoint in ready for effect in self._store_record(self.pending[checkpoint])]

    def _reject(self, ack: Ack) -> list[Effect]:
        """Discard the state of an acknowledgement that no pending checkpoint wants, unless a complete one holds it."""
        if self._snapshots.holds(ack.handle):
            return []
        if any(ack.handle in one.pending.acknowledged.values() for one in self.storing):
            return []
        self._leftovers.pop(ack.handle, None)
        handles = tuple(self._parts.completion.unwanted(ack, savepoint=False, taken=False))
        if handles and ack.files:
            handles = (*handles, *self._files.given_up(ack.files))
        return [Discard(handles)] if handles else []

    def _store_record(self, pending: Pending) -> list[Effect]:
        """Every task has acknowledged: write the record.  The checkpoint is complete once that is durable (ABS-4)."""
        remaining = self._parts.completion.still_pending(tuple(self.pending), pending.checkpoint)
        self.pending = {checkpoint: self.pending[checkpoint] for checkpoint in remaining}
        record = self._record_of(pending)
        self.storing = (*self.storing, BeingStored(pending, record))
        attempts = {task: self._attempts.within(pending.attempt, task) for task in record.handles}
        return [CheckpointAcknowledged(pending.checkpoint, pending.attempt), Store(record, attempts)]

    def _record_of(self, pending: Pending) -> CompletedSnapshot:
        """The record: the acknowledged states, and the last states of tasks that had finished before."""
        enumerators = pending.enumerators
        if enumerators:
            enumerators = self._parts.enumerating.recorded(enumerators, self._enumerator_states())
        kept = self._parts.finishing.kept(self._graph, pending.finished) if pending.finished else []
        last = self._snapshots.last_states(kept)
        return CompletedSnapshot(
            checkpoint=pending.checkpoint,
            job=self._job,
            attempt=pending.attempt,
            savepoint=pending.savepoint,
            ending=pending.ending,
            handles={**pending.acknowledged, **last.handles},
            states={**pending.states, **last.states},
            finished=pending.finished,
            logs=tuple(log for logs in pending.logs.values() for log in logs),
            parallelism=self._graph.parallelism,
            key_groups=self._graph.key_groups,
            enumerators=enumerators,
            format=pending.format.name if pending.format is not None else CANONICAL,
            files={**pending.files, **last.files},
            increments=pending.base.increments + 1 if pending.base is not None else 0,
        )

    def stored(self, checkpoint: CheckpointId) -> tuple[Pending, list[Effect]]:
        """The record is durable: the checkpoint is complete, older ones are subsumed."""
        complete = self._store_answered(checkpoint)
        self._failed_in_a_row = self._parts.tolerance.after_completion(self._failed_in_a_row)
        effects: list[Effect] = []
        for snapshot in self._snapshots.add(complete.record):
            self._files.let_go(files_needed(snapshot))
            effects.append(Discard(self._unneeded(snapshot.handles.values()), snapshot.checkpoint))
        overtaken = [one for one in self.pending.values() if one.checkpoint < checkpoint and not one.savepoint]
        for older in () if complete.pending.is_separate else overtaken:
            effects.extend(self.abort(older, Subsumed(checkpoint)))
        return complete.pending, [*effects, *self.discard_leftovers()]

    def delete(self, checkpoint: CheckpointId) -> list[Effect]:
        """Delete a snapshot, and the files that no other one needs; nothing if it is not there (any more)."""
        if (snapshot := self._snapshots.remove(checkpoint)) is None:
            return []
        self._files.let_go(files_needed(snapshot))
        handles = self._unneeded(snapshot.handles.values())
        return self._parts.cleanup.deletion(snapshot, (*handles, *self._files.unneeded()))

    def _holders(self) -> list[Holder]:
        """Everybody who needs files of snapshots."""
        records = (*self._snapshots.all, *self.being_stored)
        held = [Holder(one.checkpoint, one.job, files_needed(one)) for one in records if one.files]
        for pending in self.pending.values():
            base = files_needed(pending.base) if pending.base is not None else ()
            held.append(Holder(pending.checkpoint, self._job, (*all_of(pending.files), *base)))
        return held

    def _store_answered(self, checkpoint: CheckpointId) -> BeingStored:
        answered = next((one for one in self.storing if one.pending.checkpoint == checkpoint), None)
        if answered is None:
            raise ProtocolViolated(f"the record of checkpoint {checkpoint} is not being stored")
        self.storing = tuple(one for one in self.storing if one is not answered)
        self.pending.pop(checkpoint, None)
        self._under_way -= not answered.pending.savepoint
        return answered

    # -- giving up -----------------------------------------------------------------
    # A checkpoint that is declined, timed out or subsumed is aborted, each with its cause (ABS-4).  `abandon` gives up
    # all pending ones when their attempt fails.

    def abort(self, pending: Pending, cause: AnyCause) -> list[Effect]:
        """Give a pending checkpoint up, discard its states, and remember which states may still be written."""
        if self.pending.pop(pending.checkpoint, None) is None:
            return []
        self._under_way -= not pending.savepoint
        return [*self._give_up(pending, cause), *self._send_abort(pending)]

    def store_failed(self, checkpoint: CheckpointId, cause: AnyCause) -> tuple[Pending, list[Effect]]:
        pending = self._store_answered(checkpoint).pending
        return pending, [*self._give_up(pending, cause), *self._send_abort(pending)]

    def count_failure(self, failed: CheckpointId, cause: AnyCause) -> None:
        """One more checkpoint of the attempt has failed; a complete one ends the row (ABS-3)."""
        latest = self._snapshots.latest
        complete = latest.checkpoint if latest is not None else None
        self._failed_in_a_row += self._parts.tolerance.counts(failed, cause, complete)

    @property
    def more_failed_than_tolerated(self) -> bool:
        """More checkpoints have failed in a row than the job tolerates (ABS-3)."""
        return self._failed_in_a_row > self._config.tolerated_failures

    def _give_up(self, pending: Pending, cause: AnyCause) -> list[Effect]:
        for task in pending.expected:
            if task not in pending.acknowledged:
                self._leftovers[self._handle(pending, task)] = None
        effects: list[Effect] = [CheckpointAborted(pending.checkpoint, pending.attempt, str(cause))]
        deletable = (*pending.acknowledged.values(), *self._files.given_up(all_of(pending.files)))
        if deletable:
            effects.append(Discard(deletable))
        return effects

    def _send_abort(self, pending: Pending) -> list[Effect]:
        order = Abort(job=self._job, attempt=pending.attempt, checkpoint=pending.checkpoint)
        return [self._attempts.message_to(task, order) for task in self._tasks]

    def _handle(self, pending: Pending, task: TaskId) -> Handle:
        attempt = self._attempts.within(pending.attempt, task)
        return self._parts.naming.handle(self._job, pending.checkpoint, task, attempt)

    def abandon(self, cause: AnyCause) -> list[Effect]:
        """The attempt has failed: none of its pending checkpoints can complete any more."""
        pending, self.pending = self.pending, {}
        self._failed_in_a_row = 0
        effects = [effect for one in pending.values() for effect in self._give_up(one, cause)]
        being_stored = sum(not one.pending.savepoint for one in self.storing)
        self._under_way = self._parts.failover.under_way(self._under_way, being_stored)
        self.next_id = self._parts.checkpoint_ids.first_of_attempt(self.next_id)
        return effects

    def discard_leftovers(self) -> list[Effect]:
        """Discard what may have been written for checkpoints that were given up.

        The same handles are discarded again after each checkpoint: a task that was out of reach may write late.
        """
        still_needed, self._still_needed = self._still_needed, {}
        unneeded = (*self._unneeded(still_needed), *self._files.unneeded())
        effects: list[Effect] = [Discard(unneeded)] if unneeded else []
        if self._leftovers:
            effects.append(Discard(tuple(self._leftovers), with_files=self._files.in_use))
        return effects

    def _unneeded(self, handles: Iterable[Handle]) -> tuple[Handle, ...]:
        """Those of these handles that may be discarded now; the others once no record refers to them."""
        unneeded, needed = self._snapshots.unneeded(handles, self.being_stored)
        self._still_needed.update(dict.fromkeys(needed))
        return unneeded

    def clear_logs(self, living: Iterable[str]) -> list[Effect]:
        """Delete logs of persistent channels that nobody needs (UNA-2).

        A log is needed while a snapshot refers to it, while an acknowledged state of a pending one does, and while its
        attempt lives.
        """
        if not self._config.keeps_logs:
            return []
        kept = [log for record in (*self._snapshots.all, *self.being_stored) for log in record.logs]
        kept += [log for one in self.pending.values() for logs in one.logs.values() for log in logs]
        return [ClearLogs(tuple(dict.fromkeys(kept)), tuple(living))]
