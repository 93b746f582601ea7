"""How a job is executed: by one attempt after another, until it ends (ABS-6).

Carbone et al. (arXiv:1506.08603, section 4.4): after a failure the whole dataflow restarts from the latest complete
snapshot.  A number is given to each attempt, and is durable before the attempt is deployed.  Each stage of the
job's life is a type (`stages`).  A restart of a part is the extension `regions.RegionalFailover`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..decisions.parts import Parts
from ..extensions.enumerator import SplitAssignment
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.checkpoints import Checkpoints, RetainedSnapshots
from ..protocol.task_lives import Attempts, TaskEnds
from ..vocabulary.effects import Effect, EndJob, ListSnapshots, Note, Return, SendToTask, SetTimer, Sweep
from ..vocabulary.errors import expect
from ..vocabulary.events import (
    Answered,
    Commanded,
    CompletedSnapshot,
    CoordinatorStarted,
    SnapshotsListed,
    TaskLost,
)
from ..vocabulary.ids import CheckpointId, TaskId
from ..vocabulary.messages import Cancel, Running, Terminate
from ..vocabulary.stages import (
    STATUS,
    AwaitingRecords,
    Closing,
    Closure,
    Covered,
    CoveredUpTo,
    Deploying,
    Ended,
    JobEnd,
    Listing,
    MayBeCovered,
    NothingCovered,
    PartialFailover,
    Restarting,
    Saving,
    Settling,
    Stage,
    Status,
    Terminating,
    Working,
    ending_of,
)
from ..vocabulary.timeouts import DeployTimeout, RestartDelay, RetryFence, RetryListing, RetryTerminate
from .closing import close_step, is_settled, requests
from .deployment import Deployment
from .job_records import Close, Deploy, DeployPart, JobRecords, Then, closure_of
from .regions import RegionalFailover

LISTING_TRIES = 5


class Execution:
    """The execution of one job by one coordinator; it owns the stage of the job's life."""

    def __init__(
        self,
        job: int,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        *,
        initial: Sequence[CompletedSnapshot],
        attempts: Attempts,
        checkpoints: Checkpoints,
        snapshots: RetainedSnapshots,
        ends: TaskEnds,
        splits: SplitAssignment,
        records: JobRecords,
    ) -> None:
        """`initial` are the snapshots of the job that this one resumes."""
        self._job = job
        self._graph = graph
        self._config = config
        self._parts = parts
        self._initial = tuple(initial)
        self._attempts = attempts
        self._checkpoints = checkpoints
        self._snapshots = snapshots
        self._ends = ends
        self._splits = splits
        self._records = records
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._writers = tuple(task for task, spec, _ in graph.tasks() if spec.must_be_shut_out(config.sink))
        """the tasks that are shut out of the external store, and their transactions settled, when the job is closed"""
        self._deployment = Deployment(job, graph, config)
        self._regional = (
            RegionalFailover(graph, config, parts, attempts, ends, self._deployment) if config.by_region else None
        )
        self._stage: Stage = Listing()
        self._restarts = 0
        self._closure: Closure | None = None
        """what a former coordinator decided"""
        self._took_over = False
        self._knows_all = True
        """every complete checkpoint is known; False if the record of one could not be read"""
        self._waiting_commands: list[Commanded] = []

    # -- the stage -----------------------------------------------------------------

    @property
    def stage(self) -> Stage:
        part = self._part
        return part if part is not None else self._stage

    @property
    def _part(self) -> PartialFailover | None:
        """The partial failover that is under way."""
        return self._regional.stage if self._regional is not None else None

    def _enter(self, stage: Stage) -> None:
        """All tasks are in this stage."""
        self._stage = stage
        if self._regional is not None:
            self._regional.drop()

    @property
    def is_running(self) -> bool:
        return isinstance(self._stage, Working) and self._part is None

    @property
    def is_working(self) -> bool:
        """All tasks run, or all but those of a partial failover."""
        return isinstance(self._stage, Working) or self._part is not None

    # -- taking over ---------------------------------------------------------------

    def on_started(self, event: CoordinatorStarted) -> list[Effect]:
        record = event.record
        if record is None:
            self._snapshots.take_over(self._initial)
            sweep: list[Effect] = [Sweep(self._snapshots.handles)] if self._initial else []
            return [*sweep, *self._start_attempt("the job was submitted")]
        self._took_over = True
        self._attempts.take_over(record.attempt)
        self._checkpoints.take_over(record.next_checkpoint)
        self._records.take_over(record)
        self._closure = closure_of(record)
        cancels = [SendToTask(task, Cancel(job=self._job, attempt=record.attempt)) for task in self._tasks]
        return [*cancels, *self._parts.cleanup.on_takeover(None), ListSnapshots()]

    def on_listed(self, event: SnapshotsListed) -> list[Effect]:
        stage = expect(self._stage, Listing)
        if self._parts.restore_choice.must_be_read(event.unreadable):
            if stage.tries == LISTING_TRIES:
                return self._give_up_reading(event)
            self._enter(Listing(stage.tries + 1))
            return [SetTimer(RetryListing(), self._config.retry_us)]
        self._snapshots.take_over(event.retained)
        if self._records.had_snapshot and not event.retained:
            return self._fail("its snapshots were in the memory of the coordinator that died (ABS-14)")
        if self._closure is not None:
            return self.close(self._closure)
        sweep = self._parts.cleanup.on_takeover(self._snapshots.handles)
        return [*sweep, *self._start_attempt("a new coordinator took over")]

    def list_again(self, timeout: RetryListing) -> list[Effect]:
        return [ListSnapshots()] if isinstance(self._stage, Listing) else []

    def _give_up_reading(self, event: SnapshotsListed) -> list[Effect]:
        """The record of a complete checkpoint cannot be read: fail the job, and leave all that it may refer to."""
        self._snapshots.take_over(event.retained)
        self._knows_all = False
        names = ", ".join(str(checkpoint) for checkpoint in event.unreadable)
        return self._fail(f"the record of checkpoint {names} cannot be read")

    # -- the job's record ------------------------------------------------------------

    def save(self, then: Then, closure: Closure | None = None) -> list[Effect]:
        """Make the job's record durable, and go on only then."""
        return self._records.save(
            then,
            attempt=self._attempts.newest,
            next_checkpoint=self._checkpoints.next_id,
            has_snapshot=bool(self._snapshots.all),
            closure=closure,
        )

    def saved(self, then: Deploy | DeployPart | Close) -> list[Effect]:
        """The record is durable: deploy the attempt, or go on closing the job."""
        if isinstance(then, Deploy):
            return self._deploy(then) if isinstance(self.stage, Saving) else []
        if isinstance(then, DeployPart):
            return self._deploy_part(then)
        answer = [Return(then.command)] if then.command is not None else []
        return [*answer, *self._go_on_closing()]

    # -- an attempt starts -----------------------------------------------------------

    def _start_attempt(self, cause: str) -> list[Effect]:
        self._attempts.begin()
        restores = self._snapshots.newest() if self._config.rewinds else None
        reason = self._parts.restore_choice.refusal(self._graph, restores) if restores is not None else None
        if reason is not None:
            return self._fail(reason)
        self._enter(Saving(restores))
        self._ends.begin(self._deployment.finished_before(restores))
        self._splits.begin(restores)
        return self.save(Deploy(restores, cause))

    def _deploy(self, then: Deploy) -> list[Effect]:
        restores, attempt = then.restores, self._attempts.deployed_as_a_whole()
        self._enter(Deploying(restores, self._tasks))
        return [
            Note("attempt-started", restores.checkpoint if restores else None, attempt, then.cause),
            *self.clear_logs(),
            *self._deployment.orders(self._tasks, attempt, restores),
            SetTimer(DeployTimeout(attempt), self._config.deploy_timeout_us),
        ]

    def clear_logs(self) -> list[Effect]:
        """Delete the logs of persistent channels that no snapshot refers to and no current attempt uses."""
        logs, channels_of = self._parts.naming.logs, self._attempts.channels_of
        living = (logs(self._job, task, channels_of(task)) for task in self._tasks)
        return self._checkpoints.clear_logs(living)

    def on_running(self, message: Running) -> list[Effect]:
        """A task is restored and runs.  Once all do, the job works."""
        if self._regional is not None and self._regional.stage is not None:
            return self._up() if self._regional.runs(message.task) else []
        if not isinstance(self._stage, Deploying):
            return []
        self._splits.take_back(message.task, message.returned)
        waiting = tuple(task for task in self._stage.waiting if task != message.task)
        restores = self._stage.restores
        self._enter(Deploying(restores, waiting))
        if waiting:
            return []
        ending = ending_of(restores) if restores is not None and restores.job == self._job else None
        if restores is not None and ending is not None:
            return [Note("attempt-running", None, self._attempts.newest), *self.terminate(restores.checkpoint, ending)]
        return self._up()

    def _up(self) -> list[Effect]:
        self._enter(Working())
        return [Note("attempt-running", None, self._attempts.newest)]

    def not_up_in_time(self, timeout: DeployTimeout) -> list[Effect]:
        """Some tasks do not run in time: the whole dataflow restarts, even if only a part was to."""
        if self._regional is not None and self._regional.stage is not None:
            waiting = self._regional.waiting
        else:
            waiting = self._stage.waiting if isinstance(self._stage, Deploying) else ()
        if not waiting or timeout.attempt != self._attempts.newest:
            return []
        return self.fail_over(f"{', '.join(waiting)} did not come up in time")

    # -- an attempt fails ------------------------------------------------------------

    def on_lost(self, event: TaskLost) -> list[Effect]:
        stage, task = self.stage, event.task
        if event.attempt != self._attempts.of(task) or not self._parts.failover.restarts(stage):
            return []
        cause, lost = f"{task}: {event.reason}", self._tasks
        if self._regional is not None:
            lost = self._regional.lost_with(task, stage, is_ending=self._checkpoints.is_ending)
            if not lost:
                return []
        return self._fail_over_in_part(lost, cause) if len(lost) < len(self._tasks) else self.fail_over(cause)

    def fail_over(self, cause: str) -> list[Effect]:
        """The attempt has failed: give up its pending checkpoints, and start another attempt after a delay.

        A partial failover that has not started is counted already: it becomes the restart of all tasks.
        """
        if self._regional is not None and self._regional.is_counted:
            self._restarts -= 1
        reason, stops = f"the attempt failed: {cause}", self._checkpoints.commands
        effects = [
            *self._checkpoints.abandon(reason),
            *self._cancel(self._tasks),
            *(Return(command, error=reason) for command in stops),
        ]
        self._restarts += 1
        if self._restarts > self._config.restart_attempts:
            return [*effects, *self._used_up(cause)]
        self._enter(Restarting(cause))
        delay = SetTimer(RestartDelay(), self._config.restart_delay_us)
        return [*effects, *self._parts.cleanup.on_failure(), delay]

    def _cancel(self, tasks: Sequence[TaskId]) -> list[Effect]:
        order = Cancel(job=self._job, attempt=self._attempts.newest)
        return [self._attempts.message_to(task, order) for task in tasks]

    def _used_up(self, cause: str) -> list[Effect]:
        return self._fail(f"{self._config.restart_attempts} restarts are used up; the last cause was {cause}")

    def restart_delay_over(self, timeout: RestartDelay) -> list[Effect]:
        """Restart, unless the record of a checkpoint is being stored: it may become the newest."""
        being_stored = [record.checkpoint for record in self._checkpoints.being_stored]
        must_wait = bool(self._parts.failover.awaited(being_stored))
        if self._regional is not None and self._regional.stage is not None:
            return self._restart_part() if self._regional.delay_over() and not must_wait else []
        if not isinstance(self._stage, Restarting):
            return []
        self._enter(Restarting(self._stage.cause, delayed=False))
        return [] if must_wait else self._start_attempt(self._stage.cause)

    def resume_restart(self) -> list[Effect]:
        """A restart that waited for a record to be stored goes on."""
        if self._checkpoints.storing:
            return []
        if self._regional is not None and self._regional.awaits_record:
            return self._restart_part()
        stage = self.stage
        return self._start_attempt(stage.cause) if isinstance(stage, Restarting) and not stage.delayed else []

    # -- a part of it fails (`RegionalFailover`) ---------------------------------------

    def _fail_over_in_part(self, lost: tuple[TaskId, ...], cause: str) -> list[Effect]:
        """Give up the pending checkpoints, since a part is missing now, and restart that part after a delay."""
        regional = expect(self._regional, RegionalFailover)
        reason, stops = f"{', '.join(lost)} restart: {cause}", self._checkpoints.commands
        pending = list(self._checkpoints.pending.values())
        effects = [
            *(effect for one in pending for effect in self._checkpoints.abort(one, reason)),
            *self._cancel(lost),
            *(Return(command, error=reason) for command in stops),
        ]
        if regional.widen(lost):
            return effects
        self._restarts += not regional.is_counted
        if self._restarts > self._config.restart_attempts:
            return [*effects, *self._used_up(cause)]
        return [*effects, *regional.begin(lost, cause)]

    def _restart_part(self) -> list[Effect]:
        regional = expect(self._regional, RegionalFailover)
        restores = self._parts.failover.restored_by_part(self._snapshots.newest())
        reason = self._parts.restore_choice.refusal(self._graph, restores) if restores is not None else None
        if reason is not None:
            return self._fail(reason)
        regional.renumber(restores)
        return self.save(DeployPart(self._attempts.newest))

    def _deploy_part(self, then: DeployPart) -> list[Effect]:
        is_due = self._regional is not None and then.attempt == self._attempts.newest
        last = CheckpointId(self._checkpoints.next_id - 1)
        return self._regional.deploy(last) if self._regional is not None and is_due else []

    # -- the job ends (FIN-3) ----------------------------------------------------------

    def terminate(self, checkpoint: CheckpointId | None, ending: JobEnd) -> list[Effect]:
        """A complete checkpoint covers all work: let all tasks commit and finish."""
        waiting = tuple(task for task in self._tasks if task not in self._ends.finished)
        self._enter(Terminating(checkpoint, ending, waiting))
        return [*self.send_terminate(RetryTerminate()), *self.end_if_settled()]

    def send_terminate(self, timeout: RetryTerminate) -> list[Effect]:
        """Send the order, and again until each task has finished: a message may be lost."""
        stage = self.stage
        if not isinstance(stage, Terminating):
            return []
        order = Terminate(job=self._job, attempt=self._attempts.newest, checkpoint=stage.checkpoint)
        orders = [self._attempts.message_to(task, order) for task in stage.waiting]
        return [*orders, *self._parts.ending.reminders(timeout, self._config.retry_us)]

    def on_finished(self, task: TaskId) -> list[Effect]:
        """A task has finished, as it was ordered to."""
        stage = self.stage
        if not isinstance(stage, Terminating):
            return []
        waiting = tuple(one for one in stage.waiting if one != task)
        self._enter(Terminating(stage.checkpoint, stage.ending, waiting))
        return self.end_if_settled()

    def end_if_settled(self) -> list[Effect]:
        """End once every task has finished and no snapshot's record is being stored."""
        stage = self.stage
        if self._checkpoints.storing:
            return []
        if isinstance(stage, Closing) and isinstance(stage.step, AwaitingRecords):
            return self._go_on_closing()
        if not isinstance(stage, Terminating) or stage.waiting:
            return []
        return self._end(Closure(STATUS[stage.ending], ""))

    def _fail(self, reason: str) -> list[Effect]:
        return self.close(Closure(Status.FAILED, reason))

    def close(self, closure: Closure, command: int | None = None) -> list[Effect]:
        """The job is cancelled or failed: fence every attempt, and abort what no complete checkpoint covers."""
        reason = f"the job is {closure.status.value}"
        effects = [
            *(Return(one, error=reason) for one in self._checkpoints.commands),
            *self._checkpoints.abandon(reason),
            *self._cancel(self._tasks),
        ]
        self._attempts.begin()
        self._enter(Closing(closure, self._attempts.newest))
        return [*effects, *self.save(Close(command), closure)]

    def _go_on_closing(self) -> list[Effect]:
        """The decision is durable.  So must be every record that was being stored before it."""
        stage = expect(self._stage, Closing)
        if self._checkpoints.storing:
            self._enter(msgspec.structs.replace(stage, step=AwaitingRecords()))
            return []
        stage = msgspec.structs.replace(stage, step=Settling(self._covered(), self._writers))
        self._enter(stage)
        return requests(stage) or self._end(stage.closure)

    def _covered(self) -> Covered:
        """The sealed transactions that must be committed."""
        newest = self._snapshots.newest()
        if newest is not None and self._knows_all:
            return CoveredUpTo(newest.checkpoint)
        return MayBeCovered() if self._records.had_snapshot or not self._knows_all else NothingCovered()

    def on_answered(self, event: Answered) -> list[Effect]:
        stage = self._stage
        if not isinstance(stage, Closing):
            return []
        stage, effects = close_step(stage, event, self._config.retry_us)
        self._enter(stage)
        return [*effects, *self._end(stage.closure)] if is_settled(stage) else effects

    def _end(self, closure: Closure) -> list[Effect]:
        newest = self._snapshots.newest()
        status = closure.status.value
        sweep: list[Effect] = [Sweep(self._snapshots.handles)] if self._took_over and self._knows_all else []
        unanswered = [*(event.command for event in self.waiting_commands()), *self._checkpoints.commands]
        self._enter(Ended())
        return [
            *self._checkpoints.abandon(f"the job is {status}"),
            *self._checkpoints.settle(),
            *sweep,
            *(self._checkpoints.clear_logs(()) if self._knows_all else ()),
            *(Return(command, error=f"the job is {status}") for command in unanswered),
            EndJob(status, newest.checkpoint if newest else None, closure.reason),
        ]

    def fence_again(self, timeout: RetryFence) -> list[Effect]:
        return requests(self._stage) if isinstance(self._stage, Closing) else []

    # -- commands ----------------------------------------------------------------------

    def keep(self, event: Commanded) -> list[Effect]:
        """A command waits until the job works."""
        self._waiting_commands.append(event)
        return []

    def waiting_commands(self) -> list[Commanded]:
        """The commands that have waited; they wait no longer."""
        commands, self._waiting_commands = self._waiting_commands, []
        return commands
