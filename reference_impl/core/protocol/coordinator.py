"""The coordinator: it deploys attempts, starts checkpoints, and ends the job.

One coordinator lives at a time.  A coordinator that takes over reads what is durable:
the job's record and the complete snapshots (ABS-6).  Each stage of its life is a type,
so that every event is handled, or refused, in every stage.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..decisions.parts import Parts
from ..job.config import Config
from ..job.topology import JobGraph
from ..lifecycle.closing import Closing, close_step
from ..lifecycle.regions import Regional
from ..lifecycle.stages import STATUS, Ended, Listing, PartialFailover, Restarting, Terminating
from ..vocabulary.causes import (
    AnyCause,
    CancelledByUser,
    CheckpointsFailed,
    RecordsUnreadable,
    SnapshotsLost,
    StopFailed,
)
from ..vocabulary.effects import Effect, EndJob, ListSnapshots, Return, SendToTask, SetTimer, Sweep
from ..vocabulary.errors import Handlers, expect
from ..vocabulary.events import (
    Answered,
    Commanded,
    CompletedSnapshot,
    CoordinatorStarted,
    Event,
    JobSaved,
    Received,
    SnapshotsListed,
    SnapshotStored,
    StoreFailed,
    TaskLost,
    TimerFired,
)
from ..vocabulary.ids import AttemptId, CheckpointId, TaskId
from ..vocabulary.messages import (
    Ack,
    Cancel,
    Complete,
    Decline,
    Finished,
    InputEnded,
    Running,
    SplitMessage,
    Terminate,
    ToCoordinator,
)
from ..vocabulary.timeouts import (
    CheckpointInterval,
    CheckpointTimeout,
    DeployTimeout,
    MinimumPause,
    RestartDelay,
    RetryAssignments,
    RetryFence,
    RetryListing,
    RetryTerminate,
    RetryTerminateTasks,
    SplitAppears,
    Timeout,
)
from .checkpoints import Pending

LISTING_TRIES = 5
FIRST_ATTEMPT = AttemptId(1)
FIRST_CHECKPOINT = CheckpointId(1)
EVERY_CHECKPOINT = CheckpointId(1 << 62)
"""Above every checkpoint's id: when the newest is lost, nothing sealed may be aborted."""


class Coordinator(Regional):
    """The coordinator.

    `initial` and arguments that begin with `first_` come from the job that this one resumes (`initial` are its
    snapshots).  They matter only to a job without a record of its own.
    """

    def __init__(
        self,
        job: int,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        *,
        first_attempt: AttemptId = FIRST_ATTEMPT,
        first_checkpoint: CheckpointId = FIRST_CHECKPOINT,
        initial: Sequence[CompletedSnapshot] = (),
    ) -> None:
        super().__init__(job, graph, config, parts, AttemptId(first_attempt - 1))
        self.checkpoints.next_id = first_checkpoint
        self._initial = tuple(initial)
        self._paused = False
        self._took_over = False
        self._knows_all = True
        """every complete checkpoint is known; False if the record of one could not be read"""
        self._closing: tuple[str, AnyCause | None] = ("", None)
        self._handlers = Handlers(
            {
                CoordinatorStarted: self._on_started,
                SnapshotsListed: self._on_listed,
                JobSaved: self._on_saved,
                Received: self._on_received,
                TaskLost: self._on_lost,
                SnapshotStored: self._on_stored,
                StoreFailed: self._on_store_failed,
                TimerFired: self._on_timer,
                Commanded: self._on_command,
                Answered: self._on_answered,
            }
        )
        self._timeouts = Handlers(
            {
                CheckpointInterval: self._on_tick,
                CheckpointTimeout: self._on_checkpoint_timeout,
                MinimumPause: self._on_pause_over,
                RestartDelay: self._on_restart_delay_over,
                DeployTimeout: self._not_up_in_time,
                SplitAppears: self._on_split_appeared,
                RetryListing: self._list_again,
                RetryTerminate: self._terminate_again,
                RetryTerminateTasks: self._terminate_tasks_again,
                RetryAssignments: self._assign_again,
                RetryFence: self._fence_again,
            }
        )

    def step(self, event: Event) -> list[Effect]:
        """The effects of an event, in order."""
        effects: list[Effect] = self._handlers[type(event)](event)
        return [*effects, *self._distribute_splits()] if self.checkpoints.enumerators else effects

    # -- taking over ---------------------------------------------------------------

    def _on_started(self, event: CoordinatorStarted) -> list[Effect]:
        record = event.record
        if record is None:
            self.checkpoints.take_over(self._initial)
            sweep: list[Effect] = [Sweep(self.checkpoints.handles())] if self._initial else []
            return [*sweep, *self._start_attempt("the job was submitted")]
        self._took_over = True
        self.attempt, self._version = record.attempt, record.version
        self.checkpoints.next_id = record.next_checkpoint
        self._had_snapshot = record.had_snapshot
        self._closing = (record.closing, record.cause)
        cancels = [SendToTask(task, Cancel(job=self.job, attempt=record.attempt)) for task in self.tasks]
        early = [Sweep(())] if self.parts.cleanup.on_takeover(listed=False) else []
        return [*cancels, *early, ListSnapshots()]

    def _on_listed(self, event: SnapshotsListed) -> list[Effect]:
        stage = expect(self.stage, Listing)
        if event.unreadable and not self.parts.restore_choice.despite_unreadable(event.unreadable):
            if stage.tries == LISTING_TRIES:
                return self._give_up_reading(event)
            self.stage = Listing(stage.tries + 1)
            return [SetTimer(RetryListing(), self.config.retry_us)]
        self.checkpoints.take_over(event.retained)
        if self._had_snapshot and not event.retained:
            return self._close("failed", SnapshotsLost())
        if self._closing[0]:
            return self._close(*self._closing)
        sweep: list[Effect] = [Sweep(self.checkpoints.handles())] if self.parts.cleanup.on_takeover(True) else []
        return [*sweep, *self._start_attempt("a new coordinator took over")]

    def _give_up_reading(self, event: SnapshotsListed) -> list[Effect]:
        """The record of a complete checkpoint cannot be read: fail the job, and leave all that it may refer to."""
        self.checkpoints.take_over(event.retained)
        self._knows_all = False
        return self._close("failed", RecordsUnreadable(event.unreadable))

    # -- checkpoints ---------------------------------------------------------------

    def _on_tick(self, timeout: CheckpointInterval) -> list[Effect]:
        """The interval has passed: start a checkpoint if one may be started."""
        if not self.is_working:
            return []
        again = SetTimer(timeout, self.config.checkpoint_interval_us)
        if self.is_running and len(self._ended_inputs) == len(self.tasks):
            return [*self._finish(), again]
        full = self.checkpoints.under_way >= self.config.concurrent_checkpoints
        if full or self._paused or not self.parts.triggering.allowed(self):
            return [again]
        return [*self._trigger(), again]

    def _trigger(self, *, savepoint: bool = False, ending: str = "", command: int | None = None) -> list[Effect]:
        attempt = self.attempt
        pending = self.checkpoints.open(attempt, savepoint=savepoint, ending=ending, command=command)

        def when_saved() -> list[Effect]:
            alive = self.checkpoints.pending.get(pending.checkpoint) is pending
            return self._begin(pending) if alive and attempt == self.attempt else []

        return self._save(when_saved)

    def _on_stored(self, event: SnapshotStored) -> list[Effect]:
        pending, effects = self.checkpoints.stored(event.checkpoint)
        effects.extend(self._clear_logs())
        self._failed_checkpoints = 0
        if pending.command is not None:
            effects.append(Return(pending.command, event.checkpoint))
        if pending.attempt == self.attempt and self.is_working:
            if pending.ending:
                return [*effects, *self._terminate(event.checkpoint, pending.ending)]
            effects.extend(self._send_complete(pending))
        if self.config.minimum_pause_us:
            self._paused = True
            effects.append(SetTimer(MinimumPause(), self.config.minimum_pause_us))
        return [*effects, *self._resume_restart(), *self._end_if_settled()]

    def _send_complete(self, pending: Pending) -> list[Effect]:
        """The checkpoint is complete: notify the tasks, and let those finish whose whole work it covers (FIN-1)."""
        finished = self.checkpoints.finished_tasks
        going = (
            () if self.is_ending else self.parts.finishing.may_finish(pending.ended, (*finished, *self._terminating))
        )
        waits = bool(self._terminating)
        self._terminating.update((task, pending.checkpoint) for task in going)
        oldest, since = self.checkpoints.oldest, self.checkpoints.logs_from
        news = Complete(
            job=self.job, attempt=self.attempt, checkpoint=pending.checkpoint, oldest=oldest, logs_from=since
        )
        others = [task for task in self.tasks if task not in self._terminating and task not in finished]
        stay = [self.checkpoints.message_to(task, news) for task in others]
        again = self._later(RetryTerminateTasks()) if going and not waits else []
        return [*stay, *self._terminate_tasks(going), *again]

    def _terminate_tasks(self, tasks: Sequence[TaskId]) -> list[Effect]:
        job, attempt = self.job, self.attempt
        message_to, terminating = self.checkpoints.message_to, self._terminating
        return [message_to(task, Terminate(job=job, attempt=attempt, checkpoint=terminating[task])) for task in tasks]

    def _terminate_tasks_again(self, timeout: RetryTerminateTasks) -> list[Effect]:
        """Send the order again until each task has reported that it has finished: a message may be lost."""
        if not self._terminating or not self.is_working:
            return []
        return [*self._terminate_tasks(tuple(self._terminating)), *self._later(timeout)]

    def _later(self, timeout: Timeout) -> list[Effect]:
        return [SetTimer(timeout, self.config.retry_us)] if self.parts.ending.sends_again() else []

    def _on_store_failed(self, event: StoreFailed) -> list[Effect]:
        pending, effects = self.checkpoints.store_failed(event.checkpoint, event.reason)
        return [*effects, *self._resume_restart(), *self._after_abort(pending, event.reason), *self._end_if_settled()]

    def _abort(self, pending: Pending, reason: str) -> list[Effect]:
        return [*self.checkpoints.abort(pending, reason), *self._after_abort(pending, reason)]

    def _after_abort(self, pending: Pending, reason: str) -> list[Effect]:
        effects: list[Effect] = []
        if pending.command is not None:
            effects.append(Return(pending.command, error=reason))
        if not self.is_running or pending.attempt != self.attempt:
            return effects
        self._failed_checkpoints += 1
        if pending.ending in ("stop", "drain"):
            return [*effects, *self._fail_over(StopFailed(reason))]
        if self._failed_checkpoints > self.config.tolerated_failures:
            return [*effects, *self._fail_over(CheckpointsFailed(reason))]
        return effects

    # -- messages ------------------------------------------------------------------

    def _on_received(self, event: Received) -> list[Effect]:
        message = event.message
        if isinstance(message, Ack):
            return self._on_ack(message)
        if not isinstance(message, ToCoordinator) or message.job != self.job:
            return []
        if message.attempt != self.attempt_of(message.task):
            return []
        if isinstance(message, Running):
            return self._on_running(message)
        if isinstance(message, Decline):
            pending = self.checkpoints.pending.get(message.checkpoint)
            return self._abort(pending, f"{message.task} declined: {message.reason}") if pending else []
        if isinstance(message, InputEnded):
            return self._on_input_ended(message.task)
        if isinstance(message, SplitMessage):
            self.checkpoints.enumerators.on_message(message)
        return self._on_finished(message) if isinstance(message, Finished) else []

    def _on_ack(self, message: Ack) -> list[Effect]:
        if isinstance(self.stage, Listing):
            return []  # it may belong to a complete snapshot; if not, the sweep deletes it
        effects = self.checkpoints.acknowledge(message)
        if self.config.memory and self.checkpoints.storing and not self._had_snapshot:
            self._had_snapshot = True  # durable before any commit that follows from it: it cannot be restored elsewhere
            return self._save(lambda: effects)
        return effects

    def _on_input_ended(self, task: TaskId) -> list[Effect]:
        self.checkpoints.enumerators.end(task)
        if task in self._ended_inputs:
            return []
        self._ended_inputs = (*self._ended_inputs, task)
        everything = len(self._ended_inputs) == len(self.tasks)
        return self._finish() if everything and self.is_running else []

    # -- the end -------------------------------------------------------------------

    def _finish(self) -> list[Effect]:
        """All input is processed: take the final checkpoint."""
        if self.is_ending:
            return []
        if not self.config.rewinds or self.config.settles_at_finish:
            return self._terminate(None, "finish")
        return self._trigger(ending="finish")

    def _terminate(self, checkpoint: CheckpointId | None, ending: str) -> list[Effect]:
        waiting = tuple(task for task in self.tasks if task not in self.checkpoints.finished_tasks)
        self.stage = Terminating(checkpoint, ending, waiting)
        return [*self._send_terminate(), *self._end_if_settled()]

    def _send_terminate(self) -> list[Effect]:
        """Send the order again until each task has finished: a message may be lost."""
        stage = expect(self.stage, Terminating)
        order = Terminate(job=self.job, attempt=self.attempt, checkpoint=stage.checkpoint)
        return [*(self.checkpoints.message_to(task, order) for task in stage.waiting), *self._later(RetryTerminate())]

    def _on_finished(self, message: Finished) -> list[Effect]:
        stage, task = self.stage, message.task
        rests_on = self._terminating.pop(task, None)
        if self.is_working and task not in (*self.checkpoints.reported_finished, *self.checkpoints.finished_tasks):
            return [*self.checkpoints.task_finished(task, rests_on), *self._on_input_ended(task)]
        if not isinstance(stage, Terminating):
            return []
        waiting = tuple(task for task in stage.waiting if task != message.task)
        self.stage = Terminating(stage.checkpoint, stage.ending, waiting)
        return self._end_if_settled()

    def _end_if_settled(self) -> list[Effect]:
        """End once every task has finished and no snapshot's record is being stored."""
        stage = self.stage
        if self.checkpoints.storing:
            return []
        if isinstance(stage, Closing) and stage.is_saved and not stage.waiting:
            return self._go_on_closing()
        if not isinstance(stage, Terminating) or stage.waiting:
            return []
        return self._end(STATUS[stage.ending], None)

    def _close(self, status: str, cause: AnyCause | None, command: int | None = None) -> list[Effect]:
        """The job is cancelled or failed: fence every attempt, and abort what no complete checkpoint covers."""
        pending = [one.command for one in self.checkpoints.pending.values() if one.command is not None]
        effects = [
            *(Return(command, error=f"the job is {status}") for command in pending),
            *self.checkpoints.abandon(f"the job is {status}"),
            *(self.checkpoints.message_to(task, Cancel(job=self.job, attempt=self.attempt)) for task in self.tasks),
        ]
        self._renumber({})
        self.stage = Closing(status, cause, self.attempt, CheckpointId(0), ())
        answer = [Return(command)] if command is not None else []
        return [*effects, *self._save(lambda: [*answer, *self._go_on_closing()], closing=status, cause=cause)]

    def _go_on_closing(self) -> list[Effect]:
        """The decision is durable, and so is every record that was being stored before it."""
        stage = msgspec.structs.replace(expect(self.stage, Closing), is_saved=True)
        self.stage = stage
        if self.checkpoints.storing:
            return []
        stage = msgspec.structs.replace(stage, covered=self._covered(), waiting=self.writers)
        self.stage = stage
        return stage.requests() or self._end(stage.status, stage.cause)

    def _covered(self) -> CheckpointId:
        """The checkpoint up to which sealed transactions must be committed: all of them, if the newest is unknown."""
        newest = self.checkpoints.newest()
        if newest is not None and self._knows_all:
            return newest.checkpoint
        return EVERY_CHECKPOINT if self._had_snapshot or not self._knows_all else CheckpointId(0)

    def _on_answered(self, event: Answered) -> list[Effect]:
        if not isinstance(self.stage, Closing):
            return []
        self.stage, effects = close_step(self.stage, event, self.config.retry_us)
        return effects if self.stage.waiting else [*effects, *self._end(self.stage.status, self.stage.cause)]

    def _end(self, status: str, cause: AnyCause | None) -> list[Effect]:
        newest = self.checkpoints.newest()
        checkpoint = newest.checkpoint if newest else None
        sweep: list[Effect] = [Sweep(self.checkpoints.handles())] if self._took_over and self._knows_all else []
        waiting = [command.command for command in self._waiting_commands]
        pending = [one.command for one in self.checkpoints.pending.values() if one.command is not None]
        self._waiting_commands = []
        self.stage = Ended()
        return [
            *self.checkpoints.abandon(f"the job is {status}"),
            *self.checkpoints.settle(),
            *sweep,
            *(self.checkpoints.clear_logs(()) if self._knows_all else ()),
            *(Return(command, error=f"the job is {status}") for command in (*waiting, *pending)),
            EndJob(status, checkpoint, cause),
        ]

    # -- commands ------------------------------------------------------------------

    def _on_command(self, event: Commanded) -> list[Effect]:
        if isinstance(self.stage, Listing):
            self._waiting_commands.append(event)
            return []
        if event.kind == "cancel":
            if isinstance(self.stage, Closing | Ended):
                return [Return(event.command, error="the job has ended")]
            return self._close("cancelled", CancelledByUser(), event.command)
        if not self.config.rewinds:
            return [Return(event.command, error="at-most-once takes no snapshots")]
        if not self.takes_checkpoints:
            return [Return(event.command, error="some input has ended, and this job takes no snapshots after that")]
        if isinstance(self.stage, Terminating | Closing | Ended) or self.is_ending:
            return [Return(event.command, error="the job is ending already")]
        if not self.is_running:
            self._waiting_commands.append(event)
            return []
        ending = "" if event.kind == "savepoint" else "drain" if event.drain else "stop"
        return self._trigger(savepoint=True, ending=ending, command=event.command)

    # -- timers ----------------------------------------------------------------------

    def _on_timer(self, event: TimerFired) -> list[Effect]:
        effects: list[Effect] = self._timeouts[type(event.timeout)](event.timeout)
        return effects

    def _on_checkpoint_timeout(self, timeout: CheckpointTimeout) -> list[Effect]:
        pending = self.checkpoints.pending.get(timeout.checkpoint)
        return self._abort(pending, "it timed out") if pending else []

    def _on_pause_over(self, timeout: MinimumPause) -> list[Effect]:
        self._paused = False
        return []

    def _on_restart_delay_over(self, timeout: RestartDelay) -> list[Effect]:
        return self._restart() if isinstance(self.stage, Restarting | PartialFailover) else []

    def _on_split_appeared(self, timeout: SplitAppears) -> list[Effect]:
        self.checkpoints.enumerators.discover(timeout.split)
        return []

    def _terminate_again(self, timeout: RetryTerminate) -> list[Effect]:
        return self._send_terminate() if isinstance(self.stage, Terminating) else []

    def _assign_again(self, timeout: RetryAssignments) -> list[Effect]:
        return self.checkpoints.enumerators.remind(self.attempt)

    def _list_again(self, timeout: RetryListing) -> list[Effect]:
        return [ListSnapshots()] if isinstance(self.stage, Listing) else []

    def _fence_again(self, timeout: RetryFence) -> list[Effect]:
        return self.stage.requests() if isinstance(self.stage, Closing) else []
