"""The coordinator: it starts checkpoints, collects acknowledgements, and notifies the tasks (ABS-1, ABS-3, ABS-4).

This is the coordinator of Carbone et al. (arXiv:1506.08603, section 4.2), with what Flink adds: acknowledgements,
several checkpoints at a time, savepoints (FLIP-47), and tasks that finish (FLIP-147).  One checkpoint goes through this
file so: the interval passes (`_on_interval_over`), and the checkpoint is created (`_create_checkpoint`).  Once its id
is durable, it is triggered (`_trigger_checkpoint`), and the tasks acknowledge (`_on_ack`).  With the last
acknowledgement the record is written.  Once the record is durable, the checkpoint is complete (`_on_stored`), and the
tasks are notified (`_notify`).

One coordinator lives at a time.  A coordinator that takes over reads what is durable: the job's record and the complete
snapshots (ABS-6).  Its attempts and their failures are in `lifecycle.execution`, the end is in `lifecycle.job_ending`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..decisions.checkpointing import Situation
from ..decisions.parts import Parts
from ..extensions.enumerator import SplitAssignment
from ..extensions.local_recovery import check as check_local
from ..job.config import Config
from ..job.topology import JobGraph
from ..lifecycle.execution import Execution
from ..lifecycle.job_ending import JobEnding
from ..lifecycle.job_life import JobLife
from ..lifecycle.job_records import Close, DeployAll, DeployPart, JobRecords, Perform, TriggerCheckpoint
from ..vocabulary.causes import (
    AnyCause,
    CancelledByUser,
    CheckpointsFailed,
    Declined,
    JobHasEnded,
    JobIsEnding,
    NoSnapshots,
    NotStored,
    SomeInputEnded,
    StopFailed,
    TimedOut,
)
from ..vocabulary.effects import Effect, Return, SetTimer
from ..vocabulary.ends import JobEnd, Status
from ..vocabulary.errors import Handlers
from ..vocabulary.events import (
    Answered,
    Closure,
    Commanded,
    CommandKind,
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
    Ask,
    Assigned,
    Complete,
    Decline,
    Finished,
    InputEnded,
    Running,
    SplitMessage,
    Terminate,
)
from ..vocabulary.stages import Closing, Ended, Listing, Stage, Terminating
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
)
from .checkpoints import Checkpoints, Pending, RetainedSnapshots
from .task_tracking import Attempts, TaskEnds

FIRST_ATTEMPT = AttemptId(1)
FIRST_CHECKPOINT = CheckpointId(1)


class Coordinator:
    """The coordinator of one job; each object that it is composed of owns its part of the state.

    A job that resumes another one gets the other's snapshots (`initial`), and the numbers from which it counts on
    (`first_attempt`, `first_checkpoint`).  A coordinator that finds a record of its own job ignores all three.  The
    job begins from the `named` snapshot (None: the newest), and never restores a newer one of a former job.
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
        named: CheckpointId | None = None,
    ) -> None:
        config.check([spec.name for spec in graph.operators if not spec.rewindable])
        check_local(graph, config)
        self.job = job
        self.tasks = tuple(task for task, _, _ in graph.tasks())
        self._config = config
        self._parts = parts
        self.attempts = Attempts(AttemptId(first_attempt - 1), channels_stay=config.failover == "local")
        self.attempt_of = self.attempts.of
        self.snapshots = RetainedSnapshots(config, parts, job, named)
        self.ends = TaskEnds(graph)
        self._splits = SplitAssignment(job, graph, config, parts)
        self._has_splits = bool(self._splits)
        self.checkpoints = Checkpoints(
            job,
            graph,
            config,
            parts,
            first=first_checkpoint,
            attempts=self.attempts,
            ends=self.ends,
            snapshots=self.snapshots,
            enumerator_states=self._splits.states if self._has_splits else dict,
        )
        life = self._life = JobLife()
        records = self._records = JobRecords(job, self.attempts, self.checkpoints, self.snapshots)
        ending = self._ending = JobEnding(
            job,
            graph,
            config,
            parts,
            life=life,
            attempts=self.attempts,
            checkpoints=self.checkpoints,
            snapshots=self.snapshots,
            ends=self.ends,
            records=records,
        )
        execution = self._execution = Execution(
            job,
            graph,
            config,
            parts,
            initial=initial,
            life=life,
            attempts=self.attempts,
            checkpoints=self.checkpoints,
            snapshots=self.snapshots,
            ends=self.ends,
            splits=self._splits,
            records=records,
            ending=ending,
        )
        self._paused = False
        self._handlers = Handlers(
            {
                CoordinatorStarted: execution.on_started,
                SnapshotsListed: execution.on_listed,
                TaskLost: execution.on_lost,
                Answered: ending.on_answered,
                Received: self._on_received,
                JobSaved: self._on_saved,
                SnapshotStored: self._on_stored,
                StoreFailed: self._on_store_failed,
                TimerFired: self._on_timer,
                Commanded: self._on_command,
            }
        )
        self._what_follows = Handlers(
            {
                TriggerCheckpoint: self._trigger_checkpoint,
                Perform: lambda then: list(then.effects),
                DeployAll: execution.deploy,
                DeployPart: execution.deploy_part,
                Close: ending.decided,
            }
        )
        self._reports = Handlers(
            {
                Running: self._on_running,
                Decline: self._on_decline,
                InputEnded: self._on_input_ended,
                Finished: self._on_finished,
                Ask: self._on_split_message,
                Assigned: self._on_split_message,
            }
        )
        self._timeouts = Handlers(
            {
                CheckpointInterval: self._on_interval_over,
                CheckpointTimeout: self._on_checkpoint_timeout,
                MinimumPause: self._on_pause_over,
                RetryTerminateTasks: self._terminate_tasks_again,
                SplitAppears: self._on_split_appeared,
                RetryAssignments: self._assign_again,
                RestartDelay: execution.restart_delay_over,
                DeployTimeout: execution.not_up_in_time,
                RetryListing: execution.list_again,
                RetryTerminate: ending.send_terminate,
                RetryFence: ending.fence_again,
            }
        )

    @property
    def stage(self) -> Stage:
        """Of the job's life."""
        return self._life.stage

    @property
    def newest_attempt(self) -> AttemptId:
        return self.attempts.newest

    @property
    def is_ending(self) -> bool:
        """A stop, a drain or the final checkpoint is under way."""
        return self.checkpoints.is_ending

    @property
    def has_checkpoint_under_way(self) -> bool:
        return bool(self.checkpoints.pending or self.checkpoints.storing)

    @property
    def retained(self) -> tuple[CompletedSnapshot, ...]:
        """The complete snapshots, oldest first."""
        return self.snapshots.all

    @property
    def newest(self) -> CompletedSnapshot | None:
        """The snapshot that a new attempt restores."""
        return self.snapshots.to_restore()

    def step(self, event: Event) -> list[Effect]:
        """The effects of an event, in order."""
        effects: list[Effect] = self._handlers[type(event)](event)
        return [*effects, *self._distribute_splits()] if self._has_splits else effects

    def _on_timer(self, event: TimerFired) -> list[Effect]:
        effects: list[Effect] = self._timeouts[type(event.timeout)](event.timeout)
        return effects

    # -- a checkpoint is created and triggered (ABS-1, ABS-3) --------------------------------------------

    def _on_interval_over(self, timeout: CheckpointInterval) -> list[Effect]:
        """The interval has passed: create a checkpoint if one may be triggered."""
        if not self._execution.runs_at_least_in_part:
            return []
        again = SetTimer(timeout, self._config.checkpoint_interval_us)
        if self._execution.all_tasks_run and self.ends.all_input_has_ended:
            return [*self._finish(), again]
        if self.checkpoints.is_full or self._paused or not self._parts.triggering.allowed(self._situation()):
            return [again]
        return [*self._create_checkpoint(), again]

    def _situation(self) -> Situation:
        return Situation(
            stage=self.stage,
            is_ending=self.checkpoints.is_ending,
            is_open=self._may_trigger_checkpoints,
            latest=self.snapshots.latest,
            finished=self.ends.finished,
        )

    @property
    def _may_trigger_checkpoints(self) -> bool:
        """Whether a checkpoint other than the final one may be triggered (FIN-7)."""
        return self._config.goes_on or not self.ends.some_input_has_ended

    def _on_pause_over(self, timeout: MinimumPause) -> list[Effect]:
        self._paused = False
        return []

    def _create_checkpoint(
        self, *, savepoint: bool = False, ending: JobEnd | None = None, command: int | None = None
    ) -> list[Effect]:
        """Give an id to a new checkpoint, and make durable that it is given."""
        pending = self.checkpoints.create(savepoint=savepoint, ending=ending, command=command)
        return self._records.save(TriggerCheckpoint(pending.checkpoint))

    def _on_saved(self, event: JobSaved) -> list[Effect]:
        """The job's record is durable: go on with what waited for that."""
        then = self._records.saved(event.version)
        effects: list[Effect] = self._what_follows[type(then)](then) if then is not None else []
        return effects

    def _trigger_checkpoint(self, then: TriggerCheckpoint) -> list[Effect]:
        """A checkpoint's id is durable: trigger it, at once or when every assignment of splits is confirmed."""
        pending = self.checkpoints.pending.get(then.checkpoint)
        if pending is None or pending.attempt != self.attempts.newest:
            return []
        if not self._has_splits:
            return self.checkpoints.trigger(pending)
        self._splits.put_off(then.checkpoint)
        return []

    # -- tasks report ------------------------------------------------------------------

    def _on_received(self, event: Received) -> list[Effect]:
        """A message; all but an acknowledgement must be of the task's present attempt (ABS-6)."""
        message: Any = event.message
        if type(message) is Ack:
            return self._on_ack(message)
        if message.job != self.job or message.attempt != self.attempts.of(message.task):
            return []
        effects: list[Effect] = self._reports[type(message)](message)
        return effects

    def _on_ack(self, message: Ack) -> list[Effect]:
        """A task's snapshot is durable.  With the last one the record is written."""
        if not self.checkpoints.pending and isinstance(self.stage, Listing):
            return []  # its checkpoint may be complete; if not, `Sweep` deletes the state once the snapshots are listed
        effects = self.checkpoints.acknowledge(message)
        if self._config.memory and self.checkpoints.storing and not self._records.had_snapshot:
            # A later coordinator cannot restore what was in this one's memory (ABS-14), and must know that from the
            # job's record before any commit follows from the snapshot.
            self._records.expect_snapshot()
            return self._records.save(Perform(tuple(effects)))
        return effects

    def _on_running(self, message: Running) -> list[Effect]:
        effects = self._execution.on_running(message)
        return [*effects, *self._on_all_running()] if effects and self._execution.all_tasks_run else effects

    def _on_all_running(self) -> list[Effect]:
        """All tasks run now: take checkpoints, and carry out the commands that waited."""
        finishing = self._finish() if self.ends.all_input_has_ended else []
        timer = [SetTimer(CheckpointInterval(), self._config.checkpoint_interval_us)] if self._config.rewinds else []
        commands = self._ending.waiting_commands()
        return [*finishing, *timer, *(effect for command in commands for effect in self._on_command(command))]

    # -- a checkpoint is complete (ABS-4) ------------------------------------------------

    def _on_stored(self, event: SnapshotStored) -> list[Effect]:
        """The record is durable: the checkpoint is complete."""
        complete, effects = self.checkpoints.stored(event.checkpoint)
        effects.extend(self._execution.clear_logs())
        if complete.command is not None:
            effects.append(Return(complete.command, event.checkpoint))
        if complete.attempt == self.attempts.newest and self._execution.runs_at_least_in_part:
            if complete.ending is not None:
                return [*effects, *self._ending.terminate(event.checkpoint, complete.ending)]
            effects.extend(self._notify(complete))
        if self._config.minimum_pause_us:
            self._paused = True
            effects.append(SetTimer(MinimumPause(), self._config.minimum_pause_us))
        return [*effects, *self._execution.resume_restart(), *self._ending.end_if_settled()]

    def _notify(self, complete: Pending) -> list[Effect]:
        """Notify the tasks, and let those finish whose whole work the checkpoint covers (FIN-1)."""
        ordered_before = self.ends.ordered_to_finish
        ordered_now = (
            [] if self.checkpoints.is_ending else self.ends.order_to_finish(complete.ended, complete.checkpoint)
        )
        being_stored = self.checkpoints.being_stored
        news = Complete(
            job=self.job,
            attempt=self.attempts.newest,
            checkpoint=complete.checkpoint,
            oldest=self.snapshots.oldest(being_stored),
            logs_from=self.snapshots.logs_from(being_stored),
        )
        finishing = (*ordered_before, *ordered_now, *self.ends.finished)
        going_on = [task for task in self.tasks if task not in finishing]
        notified: list[Effect] = [self.attempts.message_to(task, news) for task in going_on]
        if not ordered_now:
            return notified
        return [*notified, *self._terminate_tasks(ordered_now), *(() if ordered_before else self._remind())]

    def _terminate_tasks(self, tasks: Sequence[TaskId]) -> list[Effect]:
        covered_by, newest = self.ends.ordered_to_finish, self.attempts.newest
        orders = [(task, Terminate(job=self.job, attempt=newest, checkpoint=covered_by[task])) for task in tasks]
        return [self.attempts.message_to(task, order) for task, order in orders]

    def _terminate_tasks_again(self, timeout: RetryTerminateTasks) -> list[Effect]:
        """Send the order again until each task has reported that it has finished: a message may be lost."""
        if not self.ends.ordered_to_finish or not self._execution.runs_at_least_in_part:
            return []
        return [*self._terminate_tasks(tuple(self.ends.ordered_to_finish)), *self._remind()]

    def _remind(self) -> list[Effect]:
        return self._parts.ending.reminders(RetryTerminateTasks(), self._config.retry_us)

    # -- a checkpoint is given up (ABS-4) ------------------------------------------------

    def _on_decline(self, message: Decline) -> list[Effect]:
        pending = self.checkpoints.pending.get(message.checkpoint)
        return self._abort(pending, Declined(message.task, message.reason)) if pending else []

    def _on_checkpoint_timeout(self, timeout: CheckpointTimeout) -> list[Effect]:
        pending = self.checkpoints.pending.get(timeout.checkpoint)
        return self._abort(pending, TimedOut()) if pending else []

    def _on_store_failed(self, event: StoreFailed) -> list[Effect]:
        cause = NotStored(event.reason)
        pending, effects = self.checkpoints.store_failed(event.checkpoint, cause)
        effects.extend(self._execution.resume_restart())
        return [*effects, *self._after_abort(pending, cause), *self._ending.end_if_settled()]

    def _abort(self, pending: Pending, cause: AnyCause) -> list[Effect]:
        return [*self.checkpoints.abort(pending, cause), *self._after_abort(pending, cause)]

    def _after_abort(self, pending: Pending, cause: AnyCause) -> list[Effect]:
        effects: list[Effect] = []
        if pending.command is not None:
            effects.append(Return(pending.command, cause=cause))
        if not self._execution.all_tasks_run or pending.attempt != self.attempts.newest:
            return effects
        self.checkpoints.count_failure()
        if pending.ending is not None and pending.ending.by_command:
            return [*effects, *self._execution.fail_over(StopFailed(cause))]
        if self.checkpoints.more_failed_than_tolerated:
            return [*effects, *self._execution.fail_over(CheckpointsFailed(cause))]
        return effects

    # -- tasks finish (FIN-1, FIN-3, FIN-8) ----------------------------------------------

    def _on_input_ended(self, message: InputEnded) -> list[Effect]:
        self._splits.end(message.task)
        if not self.ends.awaits_input(message.task):
            return []
        self.ends.end_input(message.task)
        return self._finish_if_all_ended()

    def _finish_if_all_ended(self) -> list[Effect]:
        return self._finish() if self.ends.all_input_has_ended and self._execution.all_tasks_run else []

    def _finish(self) -> list[Effect]:
        """All input is processed: take the final checkpoint."""
        if self.checkpoints.is_ending:
            return []
        if not self._config.rewinds or self._config.settles_at_finish:
            return self._ending.terminate(None, JobEnd.FINISH)
        return self._create_checkpoint(ending=JobEnd.FINISH)

    def _on_finished(self, message: Finished) -> list[Effect]:
        if not self._execution.runs_at_least_in_part:
            return self._ending.on_finished(message.task)
        self._splits.end(message.task)
        self.ends.reported(message.task)
        effects: list[Effect] = []
        while (counted := self.ends.count_next_finished()) is not None:
            effects.extend(self.checkpoints.go_on_without(*counted))
        return [*effects, *self._finish_if_all_ended()]

    # -- commands ----------------------------------------------------------------------

    def _on_command(self, event: Commanded) -> list[Effect]:
        stage = self.stage
        if isinstance(stage, Listing):
            return self._ending.keep(event)
        if event.kind is CommandKind.CANCEL:
            if isinstance(stage, Closing | Ended):
                return [Return(event.command, cause=JobHasEnded())]
            return self._ending.close(Closure(Status.CANCELLED, CancelledByUser()), event.command)
        if not self._config.rewinds:
            return [Return(event.command, cause=NoSnapshots())]
        if not self._may_trigger_checkpoints:
            return [Return(event.command, cause=SomeInputEnded())]
        if isinstance(stage, Terminating | Closing | Ended) or self.checkpoints.is_ending:
            return [Return(event.command, cause=JobIsEnding())]
        if not self._execution.all_tasks_run:
            return self._ending.keep(event)
        if event.kind is CommandKind.SAVEPOINT:
            return self._create_checkpoint(savepoint=True, command=event.command)
        ending = JobEnd.DRAIN if event.drain else JobEnd.STOP
        return self._create_checkpoint(savepoint=True, ending=ending, command=event.command)

    # -- splits that an enumerator assigns (OPS-3) ---------------------------------------

    def _distribute_splits(self) -> list[Effect]:
        """Assign splits to the readers that asked, and trigger the checkpoints that waited for that."""
        if not self._execution.all_tasks_run:
            return []
        effects = self._splits.distribute(self.attempts.newest, self.checkpoints.triggered_tasks)
        while (checkpoint := self._splits.next_due()) is not None:
            pending = self.checkpoints.pending.get(checkpoint)
            effects.extend(self.checkpoints.trigger(pending) if pending is not None else ())
        return effects

    def _on_split_message(self, message: SplitMessage) -> list[Effect]:
        self._splits.on_message(message)
        return []

    def _on_split_appeared(self, timeout: SplitAppears) -> list[Effect]:
        self._splits.discover(timeout.split)
        return []

    def _assign_again(self, timeout: RetryAssignments) -> list[Effect]:
        return self._splits.remind(self.attempts.newest)
