"""The coordinator of a job: its checkpoints, its attempts, its commands, and its end.

One coordinator lives at a time.  A coordinator that takes over reads what is durable: the job's record and the complete
snapshots (ABS-6).  This file puts together what a coordinator is made of, and says what becomes of each event.  The
checkpoints are in `protocol.checkpoint_coordinator`.  An attempt starts in `execution`, and fails in `failover`.  The
job comes to its end in `finishing_tasks` or in `closing`, and ends in `job_ending`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from ..decisions.parts import Parts
from ..extensions.barrier_options import BarrierOptions
from ..extensions.local_recovery import check as check_local
from ..extensions.snapshots.shared_files import SharedFiles
from ..extensions.sources.enumerator import SplitAssignment
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..protocol.checkpoint_coordinator import CheckpointCoordinator
from ..protocol.checkpoints import Checkpoints, UnderWay
from ..vocabulary.causes import (
    CancelledByUser,
    FormatNeedsFiles,
    JobHasEnded,
    JobIsEnding,
    NoSnapshots,
    SomeInputEnded,
)
from ..vocabulary.effects import Effect, Return
from ..vocabulary.ends import JobEnd, Status
from ..vocabulary.errors import Handlers, Refused
from ..vocabulary.events import (
    Answered,
    Claims,
    Closure,
    Commanded,
    CommandKind,
    CompletedCheckpoint,
    CoordinatorStarted,
    CopyFailed,
    DeleteFailed,
    Event,
    FilesCopied,
    JobSaved,
    Received,
    RecordStored,
    SnapshotCopied,
    SnapshotsListed,
    StoreFailed,
    TaskLost,
    TimerFired,
)
from ..vocabulary.formats import CANONICAL
from ..vocabulary.ids import AttemptId, CheckpointId, TaskId
from ..vocabulary.messages import (
    Ack,
    Ask,
    Assigned,
    Decline,
    Finished,
    InputEnded,
    Running,
    SplitMessage,
)
from ..vocabulary.stages import Closing, Ended, Listing, PartialFailover, Stage, Terminating
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
from .cancellation import Cancellation
from .checkpoint_failure_manager import CheckpointFailureManager
from .checkpoints_cleaner import CheckpointsCleaner
from .closing import JobClosing
from .commands import Commands
from .completed_checkpoint_store import CompletedCheckpointStore
from .deployment import Deployment
from .execution import Execution
from .failover import Failover
from .finishing_tasks import FinishingTasks
from .job_ending import JobEnding
from .job_life import JobLife
from .job_records import Close, DeployAll, DeployRegion, JobRecords, Perform, TriggerCheckpoint
from .regions import RegionalFailover
from .snapshot_commands import SnapshotCommands
from .taking_over import TakeOver
from .task_ends import TaskEnds

FIRST_ATTEMPT = AttemptId(1)
FIRST_CHECKPOINT = CheckpointId(1)


class Coordinator:
    """The coordinator of one job; each object that it is composed of owns its part of the state.

    A job that resumes another one gets the other's snapshots (`initial`), and the numbers from which it counts on
    (`first_attempt`, `first_checkpoint`).  If the other one `had_snapshot` and `initial` is empty, its snapshots are
    lost, and the job fails (ABS-14).  A coordinator that finds a record of its own job ignores all four.

    The job begins from the `named` snapshot (None: the newest), and never restores a newer one of a former job.
    `claims`: which of the snapshots from which its user resumed this job and former ones are the engine's.
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
        initial: Sequence[CompletedCheckpoint] = (),
        had_snapshot: bool = False,
        named: CheckpointId | None = None,
        claims: Claims | None = None,
    ) -> None:
        """Raises Refused for settings that cannot keep what they promise, and for a number below 1."""
        config.check([spec.name for spec in graph.operators if not spec.rewindable])
        check_local(graph, config)
        if min(job, first_attempt, first_checkpoint) < 1:
            raise Refused(
                "jobs, attempts and checkpoints are numbered from 1 on:"
                f" not job {job}, attempt {first_attempt}, checkpoint {first_checkpoint}"
            )
        self.job = job
        self.tasks = tuple(task for task, _, _ in graph.tasks())
        self._config = config
        self._parts = parts
        self.attempts = Attempts(first_attempt, channels_stay=config.failover == "local")
        self.under_way = UnderWay()
        self.completed = CompletedCheckpointStore(graph, config, parts, job, self.under_way, named=named, claims=claims)
        files = SharedFiles(
            job, config, parts.increments, self.under_way, self.completed, begun_from=named, claims=claims
        )
        cleaner = self._cleaner = CheckpointsCleaner(
            job,
            graph,
            config,
            parts,
            attempts=self.attempts,
            under_way=self.under_way,
            completed=self.completed,
            files=files,
        )
        failures = CheckpointFailureManager(parts.tolerance, config.tolerated_failures, self.completed)
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
            under_way=self.under_way,
            completed=self.completed,
            cleaner=cleaner,
            options=BarrierOptions(config, self.under_way, files),
            enumerator_states=self._splits.states if self._has_splits else dict,
        )
        life = self._life = JobLife()
        records = self._records = JobRecords(
            job,
            config,
            attempts=self.attempts,
            checkpoints=self.checkpoints,
            under_way=self.under_way,
            completed=self.completed,
            had_snapshot=had_snapshot,
        )
        commands = self._commands = Commands(self.under_way)
        cancellation = Cancellation(
            job, graph, attempts=self.attempts, checkpoints=self.checkpoints, failures=failures, commands=commands
        )
        self._of_snapshots = SnapshotCommands(parts.cleanup, completed=self.completed, cleaner=cleaner)
        ending = self._ending = JobEnding(
            life=life,
            under_way=self.under_way,
            checkpoints=self.checkpoints,
            completed=self.completed,
            cleaner=cleaner,
            commands=commands,
        )
        closing = self._closing = JobClosing(
            graph,
            config,
            life=life,
            attempts=self.attempts,
            under_way=self.under_way,
            completed=self.completed,
            records=records,
            cancellation=cancellation,
            ending=ending,
        )
        finishing = self._finishing = FinishingTasks(
            job,
            config,
            parts.ending,
            attempts=self.attempts,
            under_way=self.under_way,
            ends=self.ends,
            life=life,
            ending=ending,
        )
        deployment = Deployment(job, graph, config, parts, ends=self.ends, splits=self._splits)
        execution = self._execution = Execution(
            job,
            graph,
            config,
            life=life,
            attempts=self.attempts,
            completed=self.completed,
            cleaner=cleaner,
            deployment=deployment,
            records=records,
            finishing=finishing,
            closing=closing,
        )
        regional = self._regional = RegionalFailover(
            graph,
            config,
            parts,
            life=life,
            attempts=self.attempts,
            ends=self.ends,
            completed=self.completed,
            deployment=deployment,
            records=records,
            closing=closing,
        )
        failover = self._failover = Failover(
            graph,
            config,
            parts,
            life=life,
            attempts=self.attempts,
            under_way=self.under_way,
            cancellation=cancellation,
            regional=regional,
            execution=execution,
            closing=closing,
        )
        self._take_over = TakeOver(
            config,
            parts.restore_choice,
            initial=initial,
            life=life,
            completed=self.completed,
            cleaner=cleaner,
            records=records,
            cancellation=cancellation,
            execution=execution,
            closing=closing,
        )
        self._checkpointing = CheckpointCoordinator(
            job,
            self.tasks,
            config,
            parts,
            attempts=self.attempts,
            checkpoints=self.checkpoints,
            under_way=self.under_way,
            completed=self.completed,
            failures=failures,
            ends=self.ends,
            finishing=finishing,
            life=life,
            records=records,
            fail_over=failover.fail_over,
            go_on_after_storing=partial(_go_on_after_storing, life, failover, closing, ending),
            put_off=self._splits.put_off if self._has_splits else None,
        )

    @property
    def stage(self) -> Stage:
        """Of the job's life."""
        return self._life.stage

    @property
    def newest_attempt(self) -> AttemptId | None:
        """None: no attempt has begun."""
        return self.attempts.newest if self.attempts.has_begun else None

    def attempt_of(self, task: TaskId) -> AttemptId | None:
        """The number of a task at present; None: no attempt has begun."""
        return self.attempts.number_of(task) if self.attempts.has_begun else None

    @property
    def has_begun(self) -> bool:
        """An attempt of the job was deployed; none is of a job that its snapshot does not fit."""
        return self._records.has_begun

    @property
    def is_ending(self) -> bool:
        """A stop, a drain or the final checkpoint is under way."""
        return self.under_way.is_ending

    @property
    def has_checkpoint_under_way(self) -> bool:
        return bool(self.under_way.pending or self.under_way.storing)

    @property
    def retained(self) -> tuple[CompletedCheckpoint, ...]:
        """The complete snapshots, oldest first."""
        return self.completed.all

    @property
    def newest(self) -> CompletedCheckpoint | None:
        """The snapshot that a new attempt restores."""
        return self.completed.to_restore()

    def step(self, event: Event) -> list[Effect]:
        """The effects of an event, in order."""
        effects: list[Effect] = self._handlers[type(event)](self, event)
        return [*effects, *self._distribute_splits()] if self._has_splits else effects

    def _on_timer(self, event: TimerFired) -> list[Effect]:
        effects: list[Effect] = self._timeouts[type(event.timeout)](self, event.timeout)
        return effects

    def _on_saved(self, event: JobSaved) -> list[Effect]:
        """The job's record is durable: go on with what waited for that."""
        then = self._records.saved(event.version)
        effects: list[Effect] = self._what_follows[type(then)](self, then) if then is not None else []
        return effects

    # -- tasks report ------------------------------------------------------------------

    def _on_received(self, event: Received) -> list[Effect]:
        """A message; all but an acknowledgement must be of the task's present attempt (ABS-6)."""
        message: Any = event.message
        if type(message) is Ack:
            if not self.under_way.pending and isinstance(self.stage, Listing):
                return []  # its checkpoint may be complete; if not, `Sweep` deletes the state once all are listed
            return self._checkpointing.on_ack(message)
        if message.job != self.job or message.attempt != self.attempts.number_of(message.task):
            return []
        effects: list[Effect] = self._reports[type(message)](self, message)
        return effects

    def _on_running(self, message: Running) -> list[Effect]:
        is_partial = isinstance(self.stage, PartialFailover)
        effects = self._regional.on_running(message) if is_partial else self._execution.on_running(message)
        if not effects or not self._life.all_tasks_run:
            return effects
        begun = self._checkpointing.on_all_running()
        commands = self._commands.take_waiting()
        return [*effects, *begun, *(effect for command in commands for effect in self._on_command(command))]

    # -- tasks finish (FIN-1, FIN-3, FIN-8) ----------------------------------------------

    def _on_input_ended(self, message: InputEnded) -> list[Effect]:
        self._splits.end(message.task)
        if not self.ends.awaits_input(message.task):
            return []
        self.ends.end_input(message.task)
        return self._checkpointing.finish_if_all_ended()

    def _on_finished(self, message: Finished) -> list[Effect]:
        if not self._life.runs_at_least_in_part:
            return self._finishing.finished_with_all(message.task)
        self._splits.end(message.task)
        self.ends.reported(message.task)
        effects: list[Effect] = []
        while (counted := self.ends.count_next_finished()) is not None:
            effects.extend(self.checkpoints.go_on_without(*counted))
        return [*effects, *self._checkpointing.finish_if_all_ended()]

    # -- commands ----------------------------------------------------------------------

    def _on_command(self, event: Commanded) -> list[Effect]:
        stage = self.stage
        if isinstance(stage, Listing):
            return self._commands.wait(event)
        if event.kind is CommandKind.CANCEL:
            if isinstance(stage, Closing | Ended):
                return [Return(event.command, cause=JobHasEnded())]
            return self._closing.close(Closure(Status.CANCELLED, CancelledByUser()), event.command)
        if not self._config.takes_checkpoints:
            return [Return(event.command, cause=NoSnapshots())]
        if event.snapshot is not None:
            return self._on_snapshot(event, event.snapshot)
        if self._config.snapshots_in_memory and event.format is not None and event.format != CANONICAL:
            return [Return(event.command, cause=FormatNeedsFiles(event.format))]
        if not self._checkpointing.may_trigger_before_final:
            return [Return(event.command, cause=SomeInputEnded())]
        if isinstance(stage, Terminating | Closing | Ended) or self.under_way.is_ending:
            return [Return(event.command, cause=JobIsEnding())]
        if not self._life.all_tasks_run:
            return self._commands.wait(event)
        if event.kind is CommandKind.SAVEPOINT:
            return self._checkpointing.create_checkpoint(command=event.command, format_name=event.format)
        ending = JobEnd.DRAIN if event.drain else JobEnd.STOP
        return self._checkpointing.create_checkpoint(ending=ending, command=event.command, format_name=event.format)

    def _on_snapshot(self, event: Commanded, snapshot: CheckpointId) -> list[Effect]:
        """Delete, copy or move a snapshot (SNAP-3).  Once all tasks run, no task loads it any more."""
        if isinstance(self.stage, Terminating | Closing | Ended):
            return [Return(event.command, cause=JobIsEnding())]
        if not self._life.all_tasks_run:
            return self._commands.wait(event)
        return self._of_snapshots.on_command(event, snapshot)

    # -- splits that an enumerator assigns (OPS-3) ---------------------------------------

    def _distribute_splits(self) -> list[Effect]:
        """Assign splits to the readers that asked, and trigger the checkpoints that waited for that."""
        if not self._life.all_tasks_run:
            return []
        effects = self._splits.distribute(self.attempts.newest, self.under_way.triggered_tasks)
        while (checkpoint := self._splits.next_due()) is not None:
            pending = self.under_way.pending.get(checkpoint)
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

    # -- what handles what ---------------------------------------------------------------

    def _deploy_region(self, then: DeployRegion) -> list[Effect]:
        return self._regional.deploy(then, self.checkpoints.last_id)

    _handlers: ClassVar[Handlers] = Handlers(
        {
            CoordinatorStarted: lambda self, event: self._take_over.on_started(event),
            SnapshotsListed: lambda self, event: self._take_over.on_listed(event),
            TaskLost: lambda self, event: self._failover.on_lost(event),
            Answered: lambda self, event: self._closing.on_answered(event),
            Received: _on_received,
            JobSaved: _on_saved,
            RecordStored: lambda self, event: self._checkpointing.on_record_stored(event),
            StoreFailed: lambda self, event: self._checkpointing.on_record_not_stored(event),
            DeleteFailed: lambda self, event: self._parts.storing.on_failed_delete(event.files, event.checkpoint),
            FilesCopied: lambda self, event: self._of_snapshots.on_files(event),
            SnapshotCopied: lambda self, event: self._of_snapshots.on_copied(event),
            CopyFailed: lambda self, event: self._of_snapshots.on_failed(event),
            TimerFired: _on_timer,
            Commanded: _on_command,
        }
    )
    _what_follows: ClassVar[Handlers] = Handlers(
        {
            TriggerCheckpoint: lambda self, then: self._checkpointing.trigger_checkpoint(then.checkpoint),
            Perform: lambda self, then: list(then.effects),
            DeployAll: lambda self, then: self._execution.deploy(then),
            DeployRegion: _deploy_region,
            Close: lambda self, then: self._closing.decided(then),
        }
    )
    _reports: ClassVar[Handlers] = Handlers(
        {
            Running: _on_running,
            Decline: lambda self, message: self._checkpointing.on_decline(message),
            InputEnded: _on_input_ended,
            Finished: _on_finished,
            Ask: _on_split_message,
            Assigned: _on_split_message,
        }
    )
    _timeouts: ClassVar[Handlers] = Handlers(
        {
            CheckpointInterval: lambda self, timeout: self._checkpointing.on_interval_over(timeout),
            CheckpointTimeout: lambda self, timeout: self._checkpointing.on_checkpoint_timeout(timeout),
            MinimumPause: lambda self, timeout: self._checkpointing.on_pause_over(timeout),
            RetryTerminateTasks: lambda self, timeout: self._finishing.order_again(timeout),
            SplitAppears: _on_split_appeared,
            RetryAssignments: _assign_again,
            RestartDelay: lambda self, timeout: self._failover.restart_delay_over(timeout),
            DeployTimeout: lambda self, timeout: self._failover.not_up_in_time(timeout),
            RetryListing: lambda self, timeout: self._take_over.list_again(timeout),
            RetryTerminate: lambda self, timeout: self._finishing.order_all(timeout),
            RetryFence: lambda self, timeout: self._closing.fence_again(timeout),
        }
    )


def _go_on_after_storing(life: JobLife, failover: Failover, closing: JobClosing, ending: JobEnding) -> list[Effect]:
    """A record is not being stored any more: a restart, the closing or the end of the job may have waited for it, and
    nothing while all tasks run."""
    if life.all_tasks_run:
        return []
    return [*failover.resume(), *closing.resume(), *ending.end_if_settled()]
