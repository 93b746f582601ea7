"""How a job is executed: by one attempt after another, until it ends (ABS-6).

Carbone et al. (arXiv:1506.08603, section 4.4): after a failure the whole dataflow restarts from the latest complete
snapshot.  A number is given to each attempt, and is durable before the attempt is deployed.  Each stage of the
job's life is a type (`stages`).  The restart of a region is in `regions.RegionalFailover`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..decisions.parts import Parts
from ..extensions.sources.enumerator import SplitAssignment
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..protocol.checkpoints import Checkpoints, UnderWay
from ..vocabulary.causes import (
    AnyCause,
    AttemptFailed,
    NotUpInTime,
    RecordsUnreadable,
    RegionRestarts,
    RestartsUsedUp,
    SnapshotsLost,
    Submitted,
    TakenOver,
    TaskFailed,
)
from ..vocabulary.effects import Effect, ListSnapshots, Return, SendToTask, SetTimer, Sweep
from ..vocabulary.ends import Status
from ..vocabulary.errors import expect
from ..vocabulary.events import (
    Closure,
    CompletedSnapshot,
    CoordinatorStarted,
    SnapshotsListed,
    TaskLost,
    files_of,
)
from ..vocabulary.ids import CheckpointId, TaskId
from ..vocabulary.messages import Cancel, Running
from ..vocabulary.stages import (
    Deploying,
    Listing,
    Restarting,
    Saving,
    Working,
)
from ..vocabulary.status_changes import AttemptRunning, AttemptStarted
from ..vocabulary.timeouts import DeployTimeout, RestartDelay, RetryListing
from .checkpoint_failure_manager import CheckpointFailureManager
from .checkpoints_cleaner import CheckpointsCleaner
from .completed_checkpoint_store import CompletedCheckpointStore
from .deployment import Deployment
from .job_ending import JobEnding
from .job_life import JobLife
from .job_records import DeployAll, DeployRegion, JobRecords
from .regions import RegionalFailover
from .task_ends import TaskEnds

LISTING_TRIES = 5


class Execution:
    """The execution of one job by one coordinator; it leads the job through the stages of its attempts."""

    def __init__(
        self,
        job: int,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        *,
        initial: Sequence[CompletedSnapshot],
        life: JobLife,
        attempts: Attempts,
        checkpoints: Checkpoints,
        under_way: UnderWay,
        completed: CompletedCheckpointStore,
        cleaner: CheckpointsCleaner,
        failures: CheckpointFailureManager,
        ends: TaskEnds,
        splits: SplitAssignment,
        records: JobRecords,
        ending: JobEnding,
    ) -> None:
        """`initial` are the snapshots of the job that this one resumes."""
        self._job = job
        self._graph = graph
        self._config = config
        self._parts = parts
        self._initial = tuple(initial)
        self._life = life
        self._attempts = attempts
        self._checkpoints = checkpoints
        self._under_way = under_way
        self._completed = completed
        self._cleaner = cleaner
        self._failures = failures
        self._ends = ends
        self._splits = splits
        self._records = records
        self._ending = ending
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._deployment = Deployment(job, graph, config)
        self._regional = (
            RegionalFailover(graph, config, parts, life=life, attempts=attempts, ends=ends, deployment=self._deployment)
            if config.by_region
            else None
        )
        self._restarts = 0
        self._closure: Closure | None = None
        """what a former coordinator decided"""

    # -- taking over ---------------------------------------------------------------

    def on_started(self, event: CoordinatorStarted) -> list[Effect]:
        record = event.record
        if record is None:
            self._completed.take_over(self._initial)
            sweep: list[Effect] = [Sweep(self._completed.files)] if self._initial else []
            return [*sweep, *self._start_attempt(Submitted())]
        self._attempts.take_over(record.attempt)
        self._checkpoints.take_over(record.next_checkpoint)
        self._records.take_over(record)
        self._closure = record.closure
        cancels = [SendToTask(task, Cancel(job=self._job, attempt=record.attempt)) for task in self._tasks]
        return [*cancels, *self._parts.cleanup.on_takeover(None), ListSnapshots()]

    def on_listed(self, event: SnapshotsListed) -> list[Effect]:
        stage = expect(self._life.stage, Listing)
        if self._parts.restore_choice.must_be_read(event.unreadable):
            if stage.tries == LISTING_TRIES:
                return self._give_up_reading(event)
            self._life.enter(Listing(stage.tries + 1))
            return [SetTimer(RetryListing(), self._config.retry_us)]
        self._completed.take_over(event.retained)
        self._completed.copied.update(dict.fromkeys(event.copied))
        if self._closure is not None:
            return self._ending.close(self._closure)
        if self._records.had_snapshot and not event.retained:
            return self._fail(SnapshotsLost())
        sweep = self._parts.cleanup.on_takeover(self._completed.files)
        return [*sweep, *self._start_attempt(TakenOver())]

    def list_again(self, timeout: RetryListing) -> list[Effect]:
        return [ListSnapshots()] if isinstance(self._life.stage, Listing) else []

    def _give_up_reading(self, event: SnapshotsListed) -> list[Effect]:
        """The record of a complete checkpoint cannot be read: fail the job, and leave all that it may refer to.  A job
        whose end was decided before ends as was decided."""
        self._completed.take_over(event.retained, knows_all=False)
        if self._closure is not None:
            return self._ending.close(self._closure)
        return self._fail(RecordsUnreadable(event.unreadable))

    # -- an attempt starts -----------------------------------------------------------

    def _start_attempt(self, cause: AnyCause) -> list[Effect]:
        self._attempts.begin()
        restores = self._completed.to_restore() if self._config.rewinds else None
        incompatible = self._parts.restore_choice.refusal(self._graph, restores) if restores is not None else None
        if incompatible is not None:
            return self._fail(incompatible)
        self._life.enter(Saving(restores))
        self._ends.begin(self._deployment.finished_before(restores))
        self._splits.begin(restores)
        return self._records.save(DeployAll(restores, cause))

    def deploy(self, then: DeployAll) -> list[Effect]:
        """The attempt's number is durable: order all tasks to start."""
        if not isinstance(self._life.stage, Saving):
            return []
        restores, attempt = then.restores, self._attempts.deployed_as_a_whole()
        self._life.enter(Deploying(restores, self._tasks))
        return [
            AttemptStarted(attempt, restores.checkpoint if restores else None, str(then.cause)),
            *self.clear_logs(),
            *self._deployment.orders(self._tasks, attempt, restores),
            SetTimer(DeployTimeout(attempt), self._config.deploy_timeout_us),
        ]

    def clear_logs(self) -> list[Effect]:
        """Delete the logs of persistent channels that no snapshot refers to and no current attempt uses."""
        logs, channels_of = self._parts.naming.logs, self._attempts.channels_of
        living = (logs(self._job, task, channels_of(task)) for task in self._tasks)
        return self._cleaner.clear_logs(living)

    def on_running(self, message: Running) -> list[Effect]:
        """A task is restored and runs.  Once all do, the job works."""
        if self._regional is not None and self._regional.stage is not None:
            return self._up() if self._regional.runs(message.task) else []
        stage = self._life.stage
        if not isinstance(stage, Deploying):
            return []
        self._splits.take_back(message.task, message.returned)
        waiting = tuple(task for task in stage.waiting if task != message.task)
        restores = stage.restores
        self._life.enter(Deploying(restores, waiting))
        if waiting:
            return []
        ending = restores.ending if restores is not None and restores.job == self._job else None
        if restores is not None and ending is not None:
            return [AttemptRunning(self._attempts.newest), *self._ending.terminate(restores.checkpoint, ending)]
        return self._up()

    def _up(self) -> list[Effect]:
        self._life.enter(Working())
        return [AttemptRunning(self._attempts.newest)]

    def not_up_in_time(self, timeout: DeployTimeout) -> list[Effect]:
        """Some tasks do not run in time: the whole dataflow restarts, even if only a region was to."""
        if self._regional is not None and self._regional.stage is not None:
            waiting = self._regional.waiting
        else:
            stage = self._life.stage
            waiting = stage.waiting if isinstance(stage, Deploying) else ()
        if not waiting or timeout.attempt != self._attempts.newest:
            return []
        return self.fail_over(NotUpInTime(waiting))

    # -- an attempt fails ------------------------------------------------------------

    def on_lost(self, event: TaskLost) -> list[Effect]:
        stage, task = self._life.stage, event.task
        if event.attempt != self._attempts.of(task) or not self._parts.failover.restarts(stage):
            return []
        cause, lost = TaskFailed(task, event.cause), self._tasks
        if self._regional is not None:
            lost = self._regional.lost_with(task, stage, is_ending=self._under_way.is_ending)
            if not lost:
                return []
        return self._fail_over_region(lost, cause) if len(lost) < len(self._tasks) else self.fail_over(cause)

    def fail_over(self, cause: AnyCause) -> list[Effect]:
        """The attempt has failed: give up its pending checkpoints, and start another attempt after a delay.

        A partial failover that has not started is counted already: it becomes the restart of all tasks.
        """
        if self._regional is not None and self._regional.is_counted:
            self._restarts -= 1
        failed, stops = AttemptFailed(cause), self._under_way.commands
        effects = [
            *self._checkpoints.abandon(failed),
            *self._cancel(self._tasks),
            *(Return(command, cause=failed) for command in stops),
        ]
        self._failures.attempt_over()
        self._restarts += 1
        if self._restarts > self._config.restart_attempts:
            return [*effects, *self._used_up(cause)]
        self._life.enter(Restarting(cause))
        delay = SetTimer(RestartDelay(), self._config.restart_delay_us)
        referred_to = files_of(self._completed.all_and_stored)
        return [*effects, *self._parts.cleanup.on_failure(referred_to), delay]

    def _cancel(self, tasks: Sequence[TaskId]) -> list[Effect]:
        order = Cancel(job=self._job, attempt=self._attempts.newest)
        return [self._attempts.message_to(task, order) for task in tasks]

    def _used_up(self, cause: AnyCause) -> list[Effect]:
        return self._fail(RestartsUsedUp(self._config.restart_attempts, cause))

    def restart_delay_over(self, timeout: RestartDelay) -> list[Effect]:
        """Restart, unless the record of a checkpoint is being stored: it may become the newest."""
        being_stored = [record.checkpoint for record in self._under_way.being_stored]
        must_wait = bool(self._parts.failover.awaited(being_stored))
        if self._regional is not None and self._regional.stage is not None:
            return self._restart_region() if self._regional.delay_over() and not must_wait else []
        stage = self._life.stage
        if not isinstance(stage, Restarting):
            return []
        self._life.enter(Restarting(stage.cause, delayed=False))
        return [] if must_wait else self._start_attempt(stage.cause)

    def resume_restart(self) -> list[Effect]:
        """A restart that waited for a record to be stored goes on."""
        if self._under_way.storing:
            return []
        if self._regional is not None and self._regional.awaits_record:
            return self._restart_region()
        stage = self._life.stage
        return self._start_attempt(stage.cause) if isinstance(stage, Restarting) and not stage.delayed else []

    # -- a region fails (`RegionalFailover`) ---------------------------------------

    def _fail_over_region(self, lost: tuple[TaskId, ...], cause: AnyCause) -> list[Effect]:
        """Give up the pending checkpoints, since a region is missing now, and restart it after a delay."""
        regional = expect(self._regional, RegionalFailover)
        restart, stops = RegionRestarts(lost, cause), self._under_way.commands
        pending = list(self._under_way.pending.values())
        effects = [
            *(effect for one in pending for effect in self._checkpoints.abort(one, restart)),
            *self._cancel(lost),
            *(Return(command, cause=restart) for command in stops),
        ]
        if regional.widen(lost):
            return effects
        self._restarts += not regional.is_counted
        if self._restarts > self._config.restart_attempts:
            return [*effects, *self._used_up(cause)]
        return [*effects, *regional.begin(lost, cause)]

    def _restart_region(self) -> list[Effect]:
        regional = expect(self._regional, RegionalFailover)
        restores = self._parts.failover.restored_by_region(self._completed.to_restore())
        incompatible = self._parts.restore_choice.refusal(self._graph, restores) if restores is not None else None
        if incompatible is not None:
            return self._fail(incompatible)
        regional.renumber(restores)
        return self._records.save(DeployRegion(self._attempts.newest))

    def deploy_region(self, then: DeployRegion) -> list[Effect]:
        """The new number is durable: order the tasks of the region to start."""
        is_due = self._regional is not None and then.attempt == self._attempts.newest
        last = CheckpointId(self._checkpoints.next_id - 1)
        return self._regional.deploy(last) if self._regional is not None and is_due else []

    def _fail(self, cause: AnyCause) -> list[Effect]:
        return self._ending.close(Closure(Status.FAILED, cause))
