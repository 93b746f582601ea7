"""The coordinator's checkpoints: triggered, acknowledged, complete, retained (ABS-3, ABS-4).

A checkpoint is *pending* from its trigger until every expected task has
acknowledged; then its record is *being stored*; once that is durable it is
complete, and *retained* until newer ones subsume it.  A checkpoint that is given up
leaves handles behind (`unsettled`); their snapshots are discarded, even if they come late.

The plan of a checkpoint says which tasks take part and which start it (FIN-1).  A task
that has finished takes no part.  A task whose senders have all finished is triggered
by the coordinator.  A task that finishes while a checkpoint is pending counts as
finished in it, once all its senders do (FIN-8).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..decisions.parts import Parts
from ..job.config import Config
from ..job.topology import JobGraph
from ..lifecycle.enumerator import Cut, Enumerators
from ..vocabulary.effects import ClearLogs, Discard, Effect, Note, SendToTask, SetTimer, Store
from ..vocabulary.errors import expect
from ..vocabulary.events import CompletedSnapshot
from ..vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ..vocabulary.messages import Abort, Ack, ToTask, Trigger
from ..vocabulary.state import TaskState
from ..vocabulary.timeouts import CheckpointTimeout


class Pending(msgspec.Struct, kw_only=True):
    """A checkpoint under way; `command` is the user's request behind it, if any."""

    checkpoint: CheckpointId
    attempt: AttemptId
    expected: tuple[TaskId, ...]
    savepoint: bool = False
    ending: str = ""
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
    started: tuple[TaskId, ...] = ()
    """tasks that were triggered to start it"""
    record: CompletedSnapshot | None = None
    """its record, once that is being stored"""
    enumerators: Cut = {}
    """the enumerators' states when it was triggered, before any reader was triggered"""

    @property
    def is_acknowledged(self) -> bool:
        return all(task in self.acknowledged for task in self.expected)


class Checkpoints:
    """The checkpoints of one coordinator; each method returns the effects of one change."""

    def __init__(self, job: int, config: Config, parts: Parts, graph: JobGraph):
        self.job = job
        self.config = config
        self.parts = parts
        self.tasks = tuple(task for task, _, _ in graph.tasks())
        self.sources = tuple(task for task, spec, _ in graph.tasks() if spec.role == "source")
        self.finished_tasks: tuple[TaskId, ...] = ()
        """the attempt's tasks that count as finished"""
        self.reported_finished: dict[TaskId, CheckpointId | None] = {}
        """tasks that reported that they have finished, and the checkpoint that covers their work"""
        self.survivors: dict[TaskId, AttemptId] = {}
        """the attempt numbers of tasks that a partial failover did not restart; all others have the newest"""
        self._graph = graph
        self.next_id = CheckpointId(1)
        self.under_way = 0
        """the pending checkpoints that no user requested: `concurrent_checkpoints` bounds their number"""
        self.pending: dict[CheckpointId, Pending] = {}
        self.storing: list[Pending] = []
        self._last_states: dict[Handle, None] = {}
        """handles of finished tasks: later snapshots refer to them, though the tasks took no part in those"""
        self.retained: list[CompletedSnapshot] = []
        self.unsettled: dict[Handle, None] = {}
        self.enumerators = Enumerators(job, graph, config, parts, None)
        """of the current attempt"""

    # -- begin ---------------------------------------------------------------------

    def message_to(self, task: TaskId, message: ToTask) -> SendToTask:
        """A message of the newest attempt, to a task that may have an older number."""
        attempt = self.survivors.get(task)
        return SendToTask(task, message if attempt is None else msgspec.structs.replace(message, attempt=attempt))

    def attempt_of(self, taken: Pending | CompletedSnapshot, task: TaskId) -> AttemptId:
        """The attempt of a task that has part in a checkpoint of the newest attempt."""
        return self.survivors.get(task, taken.attempt)

    def open(self, attempt: AttemptId, *, savepoint: bool, ending: str, command: int | None) -> Pending:
        """Enter a new checkpoint; it is triggered once its id is durable."""
        asked = self._unfinished()
        excused = tuple(task for task in self.tasks if task not in asked and task not in self.finished_tasks)
        pending = Pending(
            checkpoint=self.parts.checkpoint_ids.allocate(self),
            attempt=attempt,
            expected=self.parts.triggering.expected(
                asked, tuple(source for source in self.sources if source not in self.finished_tasks)
            ),
            finished=(*self.finished_tasks, *excused),
            savepoint=savepoint,
            ending=ending,
            command=command,
        )
        pending.alignment_timeout_us = self._alignment_timeout_us(pending)
        self.pending[pending.checkpoint] = pending
        self.under_way += not savepoint
        return pending

    def _alignment_timeout_us(self, pending: Pending) -> int | None:
        """Not less than that of the checkpoints before it: else its barriers would overtake theirs."""
        if pending.savepoint or pending.ending:
            return None
        own = self.config.barrier_timeout_us(pending.checkpoint)
        all_of_them = [own, *(one.alignment_timeout_us for one in self.pending.values())]
        waiting = [alignment_timeout_us for alignment_timeout_us in all_of_them if alignment_timeout_us is not None]
        return max(waiting) if len(waiting) == len(all_of_them) else None

    def trigger(self, pending: Pending) -> list[Effect]:
        checkpoint, attempt = pending.checkpoint, pending.attempt
        pending.enumerators = self.enumerators.snapshot()
        effects: list[Effect] = [Note("checkpoint-triggered", checkpoint, attempt, "savepoint" * pending.savepoint)]
        if self.parts.triggering.times_out():
            effects.append(SetTimer(CheckpointTimeout(checkpoint), self.config.checkpoint_timeout_us))
        effects.extend(self._start(pending))
        return effects if pending.expected else [*effects, *self._complete_what_is_ready(pending)]

    def _start(self, pending: Pending) -> list[Effect]:
        """Trigger the tasks that start the checkpoint: those without an unfinished sender."""
        ending = pending.ending if pending.ending != "finish" else ""
        order = Trigger(
            job=self.job,
            attempt=pending.attempt,
            checkpoint=pending.checkpoint,
            ending=ending,
            alignment_timeout_us=pending.alignment_timeout_us,
        )
        first = self._graph.first_of(self._unfinished()) if self.finished_tasks else self.sources
        due_tasks = [task for task in first if task not in pending.acknowledged and task not in pending.started]
        pending.started = (*pending.started, *due_tasks)
        return [self.message_to(task, order) for task in due_tasks]

    def _unfinished(self) -> tuple[TaskId, ...]:
        return self.parts.triggering.asked(self.tasks, self.finished_tasks)

    def task_finished(self, task: TaskId, on: CheckpointId | None) -> list[Effect]:
        """A task has finished, and all its work is covered by checkpoint `on`.  Newer pending checkpoints go on
        without the task.  An older one (a savepoint) still needs the task's part.

        The report of a sender that finished before it may be late or lost.  Until that report has come, the task does
        not count as finished: a snapshot must not have a task as finished, and its sender as running.
        """
        self.reported_finished[task] = on
        effects: list[Effect] = []
        for one in self.tasks:
            if (
                one in self.reported_finished
                and one not in self.finished_tasks
                and set(self._graph.senders(one)).issubset(self.finished_tasks)
            ):
                self.finished_tasks = (*self.finished_tasks, one)
                rests_on = self.reported_finished[one] or CheckpointId(0)
                for pending in [pending for pending in self.pending.values() if pending.checkpoint > rests_on]:
                    effects.extend(self._go_on_without(pending, one))
        return effects

    def _go_on_without(self, pending: Pending, task: TaskId) -> list[Effect]:
        """Expect no acknowledgement of a task that has finished, even if it has acknowledged: a task behind it may
        finish without an acknowledgement."""
        if self.parts.finishing.excuses(pending, task):
            pending.expected = tuple(one for one in pending.expected if one != task)
            pending.finished = (*pending.finished, task)
            self.unsettled[pending.acknowledged.pop(task, self._handle(pending, task))] = None
            pending.states.pop(task, None)
        if not pending.started:
            return []  # its id is not durable yet: `_start` will know of the task that finished
        return [*self._start(pending), *self._complete_what_is_ready(pending)]

    # -- acknowledgements ----------------------------------------------------------

    def acknowledge(self, ack: Ack) -> list[Effect]:
        """Take an acknowledgement; with the last one the checkpoint's record is written."""
        completion = self.parts.completion
        pending = completion.find(self, ack)
        if pending is None or ack.job != self.job or ack.task not in self.tasks:
            return self._reject(ack)
        if self.attempt_of(pending, ack.task) != ack.attempt:
            return self._reject(ack)
        if ack.task in pending.finished:
            return self._reject(ack)  # it was written before its task finished, and is not needed any more
        pending.acknowledged[ack.task] = ack.handle
        pending.logs[ack.task] = ack.logs
        if ack.state is not None:
            pending.states[ack.task] = ack.state
        if ack.ended and ack.task not in pending.ended:
            pending.ended = (*pending.ended, ack.task)
        return self._complete_what_is_ready(pending)

    def _complete_what_is_ready(self, pending: Pending) -> list[Effect]:
        ready = self.parts.completion.finished(self, pending)
        return [effect for done in ready for effect in self._complete(done)]

    def _reject(self, ack: Ack) -> list[Effect]:
        """Discard the state of an acknowledgement that no pending checkpoint wants, unless a complete one holds it."""
        if any(ack.handle in snapshot.handles.values() for snapshot in self.retained):
            return []
        if any(ack.handle in stored.acknowledged.values() for stored in self.storing):
            return []
        self.unsettled.pop(ack.handle, None)
        handles = tuple(self.parts.completion.rejected(ack))
        return [Discard(handles)] if handles else []

    def _complete(self, pending: Pending) -> list[Effect]:
        self.parts.completion.claim(self, pending)
        self.storing.append(pending)
        pending.record = self._record_of(pending)
        return [Note("checkpoint-acknowledged", pending.checkpoint, pending.attempt), Store(pending.record)]

    def _record_of(self, pending: Pending) -> CompletedSnapshot:
        """The record: the acknowledged states, and the last states of tasks that had finished before."""
        handles, states = dict(pending.acknowledged), dict(pending.states)
        newest = self.retained[-1] if self.retained else None
        for task in self.parts.finishing.kept(self._graph, pending.finished):
            if newest is not None and task in newest.handles:
                handles[task] = newest.handles[task]
                self._last_states[newest.handles[task]] = None
            if newest is not None and task in newest.states:
                states[task] = newest.states[task]
        return CompletedSnapshot(
            checkpoint=pending.checkpoint,
            job=self.job,
            attempt=pending.attempt,
            savepoint=pending.savepoint,
            ending=pending.ending,
            handles=handles,
            states=states,
            finished=pending.finished,
            logs=tuple(log for logs in pending.logs.values() for log in logs),
            parallelism=self._graph.parallelism,
            key_groups=self._graph.key_groups,
            enumerators=self.parts.enumerating.recorded(pending.enumerators, self.enumerators.snapshot),
        )

    def stored(self, checkpoint: CheckpointId) -> tuple[Pending, list[Effect]]:
        """The record is durable: the checkpoint is complete, older ones are subsumed."""
        pending = self._store_answered(checkpoint)
        self.retained.append(expect(pending.record, CompletedSnapshot))
        self.retained.sort(key=lambda snapshot: snapshot.checkpoint)
        effects: list[Effect] = []
        for snapshot in self.parts.cleanup.subsumed(self.retained, self.config.retained_checkpoints):
            self.retained.remove(snapshot)
            effects.append(Discard(self._unneeded(snapshot.handles.values()), snapshot.checkpoint))
        for older in [one for one in self.pending.values() if one.checkpoint < checkpoint and not one.savepoint]:
            effects.extend(self.abort(older, f"subsumed by checkpoint {checkpoint}"))
        return pending, [*effects, *self.settle()]

    def _store_answered(self, checkpoint: CheckpointId) -> Pending:
        pending = next(one for one in self.storing if one.checkpoint == checkpoint)
        self.storing.remove(pending)
        self.pending.pop(checkpoint, None)
        self.under_way -= not pending.savepoint
        return pending

    # -- giving up -----------------------------------------------------------------

    def abort(self, pending: Pending, reason: str) -> list[Effect]:
        """Give a pending checkpoint up, discard its states, and remember which states may still be written."""
        if self.pending.pop(pending.checkpoint, None) is None:
            return []
        self.under_way -= not pending.savepoint
        return [*self._give_up(pending, reason), *self._send_abort(pending)]

    def store_failed(self, checkpoint: CheckpointId, reason: str) -> tuple[Pending, list[Effect]]:
        pending = self._store_answered(checkpoint)
        return pending, [*self._give_up(pending, reason), *self._send_abort(pending)]

    def _give_up(self, pending: Pending, reason: str) -> list[Effect]:
        for task in pending.expected:
            if task not in pending.acknowledged:
                self.unsettled[self._handle(pending, task)] = None
        effects: list[Effect] = [Note("checkpoint-aborted", pending.checkpoint, pending.attempt, reason)]
        if pending.acknowledged:
            effects.append(Discard(tuple(pending.acknowledged.values())))
        return effects

    def _send_abort(self, pending: Pending) -> list[Effect]:
        order = Abort(job=self.job, attempt=pending.attempt, checkpoint=pending.checkpoint)
        return [self.message_to(task, order) for task in self.tasks]

    def _handle(self, pending: Pending, task: TaskId) -> Handle:
        return self.parts.naming.handle(self.job, pending.checkpoint, task, self.attempt_of(pending, task))

    def abandon(self, reason: str) -> list[Effect]:
        """The attempt has failed: none of its pending checkpoints can complete any more."""
        pending, self.pending = self.pending, {}
        effects = [effect for one in pending.values() for effect in self._give_up(one, reason)]
        self.parts.failover.reset(self)
        self.parts.checkpoint_ids.first_of_attempt(self)
        return effects

    def settle(self) -> list[Effect]:
        """Discard what may have been written for checkpoints that were given up.  Done again each time, since a task
        that was out of reach may write late."""
        unneeded = self._unneeded(self.unsettled)
        return [Discard(unneeded)] if unneeded else []

    def _unneeded(self, handles: Iterable[Handle]) -> tuple[Handle, ...]:
        """These handles, but for last states of finished tasks to which a complete snapshot still refers.  Those
        stay until none does, the snapshot in which the task itself took part included (it may be a savepoint)."""
        records = (*self.retained, *(one.record for one in self.storing if one.record is not None))
        needed = {handle for record in records for handle in record.handles.values() if handle in self._last_states}
        asked = tuple(handles)
        self.unsettled.update((handle, None) for handle in asked if handle in needed)
        return tuple(handle for handle in asked if handle not in needed)

    # -- what is retained ----------------------------------------------------------

    def take_over(self, listed: Sequence[CompletedSnapshot]) -> None:
        self.retained = sorted(listed, key=lambda snapshot: snapshot.checkpoint)
        finished_tasks = [one.handles[task] for one in listed for task in one.finished if task in one.handles]
        self._last_states.update(dict.fromkeys(finished_tasks))

    def handles(self) -> tuple[Handle, ...]:
        return tuple(handle for snapshot in self.retained for handle in snapshot.handles.values())

    @property
    def oldest(self) -> CheckpointId | None:
        """The oldest checkpoint that may be restored; one whose record is being stored may still complete."""
        stored = [one.checkpoint for one in self.retained]
        return min([*stored, *(one.checkpoint for one in self.storing)], default=None)

    @property
    def logs_from(self) -> CheckpointId | None:
        """The oldest checkpoint whose in-flight data may be needed.  A savepoint is aligned and has none.  But a
        locally recovered task goes on from the newest snapshot, savepoint or not, and takes its input since then
        again."""
        if not self.config.keeps_logs:
            return None
        storing = [one.checkpoint for one in self.storing if not one.savepoint]  # an older one may complete later
        own = [*storing, *(snapshot.checkpoint for snapshot in self.retained if not snapshot.savepoint)]
        newest = self.retained[-1].checkpoint if self.retained else None
        if self.config.recovers_from_logs and newest is not None:
            own.append(newest)
        return min(own, default=newest)

    def clear_logs(self, living: Iterable[str]) -> list[Effect]:
        """Delete the logs of persistent channels that no snapshot refers to and that are not of a living attempt."""
        if not self.config.keeps_logs:
            return []
        records = (*self.retained, *(one.record for one in self.storing if one.record is not None))
        kept = [*(log for record in records for log in record.logs)]
        kept += [log for one in self.pending.values() for logs in one.logs.values() for log in logs]
        return [ClearLogs(tuple(dict.fromkeys(kept)), tuple(living))]

    def newest(self) -> CompletedSnapshot | None:
        return self.parts.restore_choice.choose(self.retained)
