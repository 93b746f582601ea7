"""The coordinator's checkpoints: triggered, acknowledged, complete, or aborted (ABS-3, ABS-4).

Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (arXiv:1506.08603), section 4.2, has a
central coordinator that injects barriers into the sources.  That each task acknowledges its snapshot, and the
coordinator thereby learns that all are there, is from Flink's documentation of its checkpointing; Chandy and Lamport
(1985) leave open how the parts of a snapshot are collected.

A checkpoint is *pending* from the moment at which it gets its id, before the tasks are triggered, until every expected
task has acknowledged.  Then its record is *being stored*.  Once that is durable the checkpoint is complete.

The papers do not say what becomes of older checkpoints, or of the snapshots of one that is aborted; that is handed to
this machine (`CompletedCheckpoints`, `Cleaner`).  Nor do they have tasks that finish (FLIP-147).  A task that has
finished takes no part (FIN-1).  A task whose senders have all finished is triggered by the coordinator.  A task that
finishes while a checkpoint is pending counts as finished in it, once all its senders do (FIN-8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ..decisions.checkpointing import CheckpointPlan, TriggerStep, is_failure
from ..decisions.parts import Parts
from ..job.config import Config
from ..job.topology import JobGraph
from ..vocabulary.causes import AnyCause, Subsumed
from ..vocabulary.effects import Effect, SetTimer, Store
from ..vocabulary.ends import JobEnd
from ..vocabulary.errors import ProtocolViolated
from ..vocabulary.events import CompletedCheckpoint
from ..vocabulary.formats import CANONICAL, Format
from ..vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId, following, preceding
from ..vocabulary.messages import Abort, Ack, Trigger
from ..vocabulary.state import EnumeratorStates, LastStates, TaskState
from ..vocabulary.status_changes import CheckpointAborted, CheckpointAcknowledged, CheckpointTriggered
from ..vocabulary.timeouts import CheckpointTimeout
from .attempts import Attempts


class PendingCheckpoint(msgspec.Struct, kw_only=True):
    """A checkpoint that waits for acknowledgements; `command` is the user's request behind it, if any."""

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
    is_triggered: bool = False
    """its id is durable, and the tasks that start it have been told"""
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
    base: CompletedCheckpoint | None = None
    """the checkpoint on whose files its snapshots may build"""
    files: dict[TaskId, tuple[Handle, ...]] = {}
    """of each task, the files that its acknowledged snapshot needs"""
    in_flight: dict[TaskId, bool] = {}
    """of each task, whether its acknowledged snapshot holds elements that barriers overtook"""

    @property
    def is_acknowledged_by_all(self) -> bool:
        acknowledged = self.acknowledged
        return len(acknowledged) >= len(self.expected) and all(task in acknowledged for task in self.expected)

    def acknowledge(self, ack: Ack) -> None:
        self.acknowledged[ack.task] = ack.handle
        self.logs[ack.task] = ack.logs
        self.in_flight[ack.task] = ack.in_flight
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
        for kept in (self.states, self.logs, self.files, self.in_flight):
            kept.pop(task, None)
        return self.acknowledged.pop(task, None)


class BeingStored(msgspec.Struct, frozen=True):
    """Every task has acknowledged; the record is not durable yet."""

    pending: PendingCheckpoint
    record: CompletedCheckpoint


class UnderWay:
    """The checkpoints of one job that are under way: pending, or acknowledged by all and being stored."""

    def __init__(self) -> None:
        self.pending: dict[CheckpointId, PendingCheckpoint] = {}
        """they wait for acknowledgements"""
        self.storing: tuple[BeingStored, ...] = ()
        """they wait for their record to be durable"""

    @property
    def counted(self) -> int:
        """How many are under way.  Savepoints are left out: they do not count towards the number of checkpoints that
        may be under way at a time (ABS-3)."""
        pending = sum(not one.savepoint for one in self.pending.values())
        return pending + sum(not one.pending.savepoint for one in self.storing)

    @property
    def is_ending(self) -> bool:
        """A stop, a drain or the final checkpoint is under way."""
        if self.pending and any(one.ending is not None for one in self.pending.values()):
            return True
        return bool(self.storing) and any(one.pending.ending is not None for one in self.storing)

    @property
    def records_being_stored(self) -> tuple[CompletedCheckpoint, ...]:
        return tuple(one.record for one in self.storing)

    @property
    def commands(self) -> list[int]:
        """The users' requests behind pending checkpoints."""
        return [one.command for one in self.pending.values() if one.command is not None]

    @property
    def triggered_tasks(self) -> list[TaskId]:
        """The tasks that were triggered to start a checkpoint, and have not acknowledged it."""
        return [task for one in self.pending.values() for task in one.triggered if task not in one.acknowledged]


class FinishedTasks(Protocol):
    """The tasks that count as finished, and take no part in checkpoints (FIN-8); see `lifecycle.task_ends`."""

    @property
    def finished(self) -> tuple[TaskId, ...]: ...


class CompletedCheckpoints(Protocol):
    """The complete checkpoints of the job; see `lifecycle.completed_checkpoint_store`."""

    @property
    def latest(self) -> CompletedCheckpoint | None: ...

    @property
    def oldest(self) -> CheckpointId | None:
        """The oldest one whose input the sources' logs have to keep, pending ones included (ABS-15)."""
        ...

    @property
    def logs_from(self) -> CheckpointId | None:
        """The oldest one whose in-flight data may be needed (UNA-2)."""
        ...

    def add(self, snapshot: CompletedCheckpoint) -> list[CompletedCheckpoint]:
        """One more is complete.  Those that it subsumes are returned."""
        ...

    def last_states(self, finished: Sequence[TaskId]) -> LastStates:
        """The last states of finished tasks, to which the next record refers (FIN-1)."""
        ...


class Cleaner(Protocol):
    """It discards what no checkpoint needs; see `lifecycle.checkpoints_cleaner`."""

    def discard_if_written(self, handle: Handle) -> None:
        """Nobody needs this snapshot of a task: discard it if it is written, now or later."""
        ...

    def acknowledged(self, ack: Ack, taker: PendingCheckpoint | None) -> list[Effect]:
        """A pending checkpoint took the acknowledged snapshot, or none wants it (None)."""
        ...

    def subsumed(self, snapshots: Sequence[CompletedCheckpoint]) -> list[Effect]: ...

    def aborted(self, pending: PendingCheckpoint, missing: Sequence[Handle]) -> list[Effect]:
        """A checkpoint was aborted; the snapshots in `missing` are not acknowledged, and may still be written."""
        ...

    def discard_leftovers(self) -> list[Effect]:
        """A checkpoint is complete: discard again what may have been written since for those that were aborted."""
        ...

    def clear_logs(self) -> list[Effect]:
        """A checkpoint is complete: older ones may have been the last to need a log of in-flight data (UNA-2)."""
        ...


class BarrierOptions(Protocol):
    """What a checkpoint's barriers say besides its id; see `barrier_options`."""

    def choose(self, pending: PendingCheckpoint, format_name: str | None) -> None: ...


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
        ends: FinishedTasks,
        under_way: UnderWay,
        completed: CompletedCheckpoints,
        cleaner: Cleaner,
        options: BarrierOptions,
        enumerator_states: Callable[[], EnumeratorStates],
    ) -> None:
        """`enumerator_states` gives the states of the job's enumerators at present, if it has any."""
        self._job = job
        self._graph = graph
        self._config = config
        self._parts = parts
        self._attempts = attempts
        self._ends = ends
        self._under_way = under_way
        self._completed = completed
        self._cleaner = cleaner
        self._options = options
        self._enumerator_states = enumerator_states
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._last_id = preceding(first)

    # -- what is known ---------------------------------------------------------------

    @property
    def last_id(self) -> CheckpointId | None:
        """The greatest id that was given out, if any was."""
        return self._last_id

    @property
    def next_id(self) -> CheckpointId:
        """No checkpoint has got this id or a greater one."""
        return following(self.last_id)

    def take_over(self, next_id: CheckpointId) -> None:
        """Another coordinator has given out the ids below this one."""
        self._last_id = preceding(next_id)

    # -- created and triggered -------------------------------------------------------------

    def create(
        self, *, savepoint: bool, ending: JobEnd | None, command: int | None, format_name: str | None
    ) -> PendingCheckpoint:
        """Enter a new checkpoint; it is triggered once its id is durable.  `format_name`: None for the job's own."""
        plan, checkpoint = self._plan(), self._parts.checkpoint_ids.next(self.last_id)
        self._last_id = checkpoint
        pending = PendingCheckpoint(
            checkpoint=checkpoint,
            attempt=self._attempts.newest,
            expected=plan.awaited,
            finished=plan.finished,
            savepoint=savepoint,
            is_separate=self._config.separate_savepoints and savepoint and ending is None,
            ending=ending,
            command=command,
        )
        self._options.choose(pending, format_name)
        self._under_way.pending[checkpoint] = pending
        return pending

    def _plan(self) -> CheckpointPlan:
        return self._parts.triggering.plan(self._graph, self._ends.finished)

    def trigger(self, pending: PendingCheckpoint) -> list[Effect]:
        """Its id is durable: order the tasks to take part."""
        checkpoint, attempt = pending.checkpoint, pending.attempt
        pending.is_triggered = True
        pending.enumerators = self._enumerator_states()
        effects: list[Effect] = [CheckpointTriggered(checkpoint, attempt, pending.savepoint)]
        for step in self._parts.triggering.steps():  # begin the timeout, trigger the tasks
            if step is TriggerStep.begin_timeout:
                effects.append(SetTimer(CheckpointTimeout(checkpoint), self._config.checkpoint_timeout_us))
            else:
                effects += self._trigger_tasks(pending)
        return effects if pending.expected else [*effects, *self._store_if_all_acknowledged(pending)]

    def _trigger_tasks(self, pending: PendingCheckpoint) -> list[Effect]:
        """Trigger the tasks that start the checkpoint: those without an unfinished sender."""
        order = Trigger(
            job=self._job,
            attempt=pending.attempt,
            checkpoint=pending.checkpoint,
            ending=pending.ending if pending.ending is not JobEnd.FINISH else None,
            alignment_timeout_us=pending.alignment_timeout_us,
            format=pending.format,
        )
        first = self._plan().triggered
        due_tasks = [task for task in first if task not in pending.acknowledged and task not in pending.triggered]
        pending.triggered = (*pending.triggered, *due_tasks)
        return [self._attempts.message_to(task, order) for task in due_tasks]

    def go_on_without(self, task: TaskId, rests_on: CheckpointId | None) -> list[Effect]:
        """A task counts as finished: the complete checkpoint `rests_on` covers all its work (None: it never had any).
        Newer pending checkpoints go on without the task.  An older one (a savepoint) still needs the task's part."""
        newer = [one for one in self._under_way.pending.values() if rests_on is None or one.checkpoint > rests_on]
        return [effect for pending in newer for effect in self._go_on_without(pending, task)]

    def _go_on_without(self, pending: PendingCheckpoint, task: TaskId) -> list[Effect]:
        """Count a task that has finished as finished in a pending checkpoint, and drop its acknowledgement.

        If the acknowledgement were kept, the snapshot would have this task as running.  A task that it sends to may
        finish too, without an acknowledgement, and the snapshot would have that one as finished behind a sender that
        runs (FIN-8).
        """
        if task not in self._parts.finishing.still_expected(pending.expected, task):
            handle = pending.excuse(task)
            self._cleaner.discard_if_written(handle if handle is not None else self._handle(pending, task))
        if not pending.is_triggered:
            return []  # its id is not durable, or enumerators put it off
        return [*self._trigger_tasks(pending), *self._store_if_all_acknowledged(pending)]

    # -- acknowledgements ----------------------------------------------------------

    def acknowledge(self, ack: Ack) -> list[Effect]:
        """Take an acknowledgement; with the last one the checkpoint's record is being stored."""
        pending = self._awaiting(ack)
        discarded = self._cleaner.acknowledged(ack, pending)
        if pending is None:
            return discarded
        pending.acknowledge(ack)
        return [*discarded, *self._store_if_all_acknowledged(pending)]

    def _awaiting(self, ack: Ack) -> PendingCheckpoint | None:
        """The pending checkpoint that an acknowledgement counts for."""
        pending = self._under_way.pending.get(ack.checkpoint)
        if pending is None or ack.job != self._job or ack.task not in self._tasks:
            return None
        if self._attempts.number_in(pending.attempt, ack.task) != ack.attempt:
            return None
        return pending if self._parts.completion.counts(ack, pending) else None  # unless its task has finished since

    def _store_if_all_acknowledged(self, pending: PendingCheckpoint) -> list[Effect]:
        if not pending.is_acknowledged_by_all:
            return []
        all_pending = self._under_way.pending
        # One that is not triggered is left out.  If all tasks have finished it awaits nobody, and would be stored
        # before its id is durable.
        acknowledged = {
            checkpoint: one.is_acknowledged_by_all for checkpoint, one in all_pending.items() if one.is_triggered
        }
        ready = self._parts.completion.to_store(acknowledged)  # each that all tasks have acknowledged
        return [effect for checkpoint in ready for effect in self._store_record(all_pending[checkpoint])]

    def _store_record(self, pending: PendingCheckpoint) -> list[Effect]:
        """Every task has acknowledged: store the record.  The checkpoint is complete once that is durable (ABS-4)."""
        under_way = self._under_way
        remaining = self._parts.completion.still_pending(tuple(under_way.pending), pending.checkpoint)  # all others
        under_way.pending = {checkpoint: under_way.pending[checkpoint] for checkpoint in remaining}
        record = self._record_of(pending)
        under_way.storing = (*under_way.storing, BeingStored(pending, record))
        attempts = {task: self._attempts.number_in(pending.attempt, task) for task in record.handles}
        return [CheckpointAcknowledged(pending.checkpoint, pending.attempt), Store(record, attempts)]

    def _record_of(self, pending: PendingCheckpoint) -> CompletedCheckpoint:
        """The record: the acknowledged states, and the last states of tasks that had finished before."""
        last = self._completed.last_states(pending.finished)
        return CompletedCheckpoint(
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
            uids=self._graph.uids,
            state_types=self._graph.state_types,
            stateless=self._graph.stateless,
            enumerators=pending.enumerators,
            format=pending.format.name if pending.format is not None else CANONICAL,
            files={**pending.files, **last.files},
            increments=pending.base.increments + 1 if pending.base is not None else 0,
            in_flight=any(pending.in_flight.values()),
        )

    def complete(self, checkpoint: CheckpointId) -> tuple[PendingCheckpoint, list[Effect]]:
        """The record is durable: the checkpoint is complete, older ones are subsumed."""
        complete = self._end_storing(checkpoint)
        effects = self._cleaner.subsumed(self._completed.add(complete.record))
        pending = self._under_way.pending.values()
        older = [one for one in pending if one.checkpoint < checkpoint and not one.savepoint]
        for one in () if complete.pending.is_separate else older:
            effects.extend(self.abort(one, Subsumed(checkpoint)))
        return complete.pending, [*effects, *self._cleaner.discard_leftovers(), *self._cleaner.clear_logs()]

    def _end_storing(self, checkpoint: CheckpointId) -> BeingStored:
        """The store has answered: the record is durable, or is not stored."""
        storing = self._under_way.storing
        answered = next((one for one in storing if one.pending.checkpoint == checkpoint), None)
        if answered is None:
            raise ProtocolViolated(f"the record of checkpoint {checkpoint} is not being stored")
        self._under_way.storing = tuple(one for one in storing if one is not answered)
        self._under_way.pending.pop(checkpoint, None)
        return answered

    # -- aborted --------------------------------------------------------------------
    # A checkpoint that is declined, timed out or subsumed is aborted, each with its cause (ABS-4).
    # `abort_with_attempt` aborts all pending ones when their attempt fails.

    def abort(self, pending: PendingCheckpoint, cause: AnyCause) -> list[Effect]:
        """Abort a pending checkpoint: discard its states, remember which may still be written, and notify the tasks."""
        if self._under_way.pending.pop(pending.checkpoint, None) is None:
            return []
        return [*self._discard_aborted(pending, cause), *self._send_abort(pending)]

    def abort_all(self, cause: AnyCause) -> list[Effect]:
        """A part of the tasks is lost, without whose snapshots no pending checkpoint can complete."""
        pending = list(self._under_way.pending.values())
        return [effect for one in pending for effect in self.abort(one, cause)]

    def abort_not_stored(self, checkpoint: CheckpointId, cause: AnyCause) -> tuple[PendingCheckpoint, list[Effect]]:
        """The record could not be stored, so the checkpoint is aborted although all tasks have acknowledged it."""
        pending = self._end_storing(checkpoint).pending
        return pending, [*self._discard_aborted(pending, cause), *self._send_abort(pending)]

    def _discard_aborted(self, pending: PendingCheckpoint, cause: AnyCause) -> list[Effect]:
        missing = [self._handle(pending, task) for task in pending.expected if task not in pending.acknowledged]
        aborted = CheckpointAborted(pending.checkpoint, pending.attempt, cause, is_failure(cause))
        return [aborted, *self._cleaner.aborted(pending, missing)]

    def _send_abort(self, pending: PendingCheckpoint) -> list[Effect]:
        order = Abort(job=self._job, attempt=pending.attempt, checkpoint=pending.checkpoint)
        return [self._attempts.message_to(task, order) for task in self._tasks]

    def _handle(self, pending: PendingCheckpoint, task: TaskId) -> Handle:
        attempt = self._attempts.number_in(pending.attempt, task)
        return self._parts.naming.handle(self._job, pending.checkpoint, task, attempt)

    def abort_with_attempt(self, cause: AnyCause) -> list[Effect]:
        """The attempt has failed, and its tasks are cancelled: none of its pending checkpoints can complete."""
        pending, self._under_way.pending = self._under_way.pending, {}
        return [effect for one in pending.values() for effect in self._discard_aborted(one, cause)]
