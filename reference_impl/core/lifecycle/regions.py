"""Partial failover: a region of the dataflow restarts while the rest goes on (FLIP-1: failover by region).

A region is a set of tasks that data channels join.  No record goes from one region to
another, so that a region can go back to the latest complete checkpoint on its own.  Its tasks
get a new attempt number, and with it a fence of their own.  The other tasks keep their
number, their state and their open transactions.  No checkpoint is taken meanwhile, since some
of its snapshots would be missing.  The end of the job concerns all tasks; a failure amid it
restarts all of them (`decisions.failover_strategy`).

With local recovery only the lost tasks restart (UNA-4; `local_recovery`).  Then each task is a region of its own here.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from ..decisions.parts import Parts
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..vocabulary.causes import AnyCause
from ..vocabulary.effects import Effect, SendToTask, SetTimer
from ..vocabulary.errors import expect
from ..vocabulary.ids import CheckpointId, TaskId, task_id
from ..vocabulary.messages import Deploy, Running
from ..vocabulary.stages import AwaitingRecord, PartialFailover, Renumbered, Stage, Starting, Working
from ..vocabulary.status_changes import AttemptRunning, AttemptStarted, RegionRestarted
from ..vocabulary.timeouts import DeployTimeout, RestartDelay
from .closing import JobClosing
from .completed_checkpoint_store import CompletedCheckpointStore
from .deployment import Deployment
from .job_life import JobLife
from .job_records import DeployRegion, JobRecords
from .task_ends import TaskEnds


def regions(graph: JobGraph) -> list[tuple[TaskId, ...]]:
    """The tasks of each region, all in topological order.  Readers of one enumerator are in one: a split
    that one of them gives back may go to another."""
    tasks = [task for task, _, _ in graph.tasks()]
    region = {task: number for number, task in enumerate(tasks)}
    joined = [(wire.sender, wire.receiver) for wire in graph.wires()]
    for spec in graph.operators:
        if spec.enumerated:
            joined += pairwise(task_id(spec.name, subtask) for subtask in range(spec.parallelism))
    for sender, receiver in joined:
        one, other = region[sender], region[receiver]
        if one != other:
            region = {task: min(one, other) if number in (one, other) else number for task, number in region.items()}
    return [tuple(task for task in tasks if region[task] == number) for number in dict.fromkeys(region.values())]


class RegionalFailover:
    """The restarts of parts of one job, one at a time."""

    def __init__(
        self,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        *,
        life: JobLife,
        attempts: Attempts,
        ends: TaskEnds,
        completed: CompletedCheckpointStore,
        deployment: Deployment,
        records: JobRecords,
        closing: JobClosing,
    ) -> None:
        self._graph = graph
        self._config = config
        self._is_local = config.failover == "local"
        self._parts = parts
        self._life = life
        self._attempts = attempts
        self._ends = ends
        self._completed = completed
        self._deployment = deployment
        self._records = records
        self._closing = closing
        self._tasks = tuple(task for task, _, _ in graph.tasks())

    @property
    def stage(self) -> PartialFailover | None:
        """The restart that is under way."""
        stage = self._life.stage
        return stage if isinstance(stage, PartialFailover) else None

    # -- lost ----------------------------------------------------------------------

    def region_of(self, task: TaskId) -> tuple[TaskId, ...]:
        """The tasks that restart with a lost task: those of its region; with local recovery only the task itself.  A
        task that may already have sent its end cannot recover locally, since its receivers may have taken the end."""
        if self._is_local:
            return self._tasks if self._ends.may_have_sent_its_end(task) else (task,)
        return next(region for region in regions(self._graph) if task in region)

    def lost_with(self, task: TaskId, stage: Stage, *, is_ending: bool) -> tuple[TaskId, ...]:
        """The tasks that restart now that this one is lost; none if it is about to restart anyhow."""
        if not self._config.by_region:
            return self._tasks
        lost = self._parts.failover_strategy.lost_with(self.region_of(task), self._tasks, stage, is_ending)
        region = self.stage
        if region is None:
            return lost
        if task in region.tasks and not region.has_begun:
            return ()
        return tuple(one for one in self._tasks if one in lost or one in region.tasks)

    @property
    def is_counted(self) -> bool:
        """A region is about to restart.  Tasks that are lost meanwhile restart with it: that is one restart, not two.

        Once tasks have been ordered to start, the next loss is another restart.  So the number of restarts equals the
        number of attempts started after the first.
        """
        region = self.stage
        return region is not None and not region.has_started

    def widen(self, lost: tuple[TaskId, ...]) -> bool:
        """Restart more tasks than planned, if their restart has not begun; whether that is so."""
        region = self.stage
        if region is None or region.has_begun:
            return False
        self._life.enter(msgspec.structs.replace(region, tasks=lost))
        return True

    def begin(self, lost: tuple[TaskId, ...], cause: AnyCause) -> list[Effect]:
        """Restart a region after a delay."""
        self._life.enter(PartialFailover(lost, cause))
        return [SetTimer(RestartDelay(), self._config.restart_delay_us)]

    # -- the restart -----------------------------------------------------------------

    def delay_over(self) -> bool:
        """The restart delay has passed; whether it is that of a region which waited for it."""
        region = self.stage
        if region is None or region.has_begun:
            return False
        self._life.enter(msgspec.structs.replace(region, step=AwaitingRecord()))
        return True

    @property
    def awaits_record(self) -> bool:
        region = self.stage
        return region is not None and isinstance(region.step, AwaitingRecord)

    def restart(self) -> list[Effect]:
        """Give the lost tasks a new number, unless the snapshot that they would restore does not fit the job."""
        stage = expect(self.stage, PartialFailover)
        restores, incompatible = self._deployment.fitted(self._completed.to_restore_in_region())
        if incompatible is not None:
            return self._closing.fail(incompatible)
        self._attempts.begin(survivors=[task for task in self._tasks if task not in stage.tasks])
        self._deployment.begin_region(stage.tasks, restores)
        self._life.enter(msgspec.structs.replace(stage, step=Renumbered(restores)))
        return self._records.save(DeployRegion(self._attempts.newest))

    def deploy(self, then: DeployRegion, last: CheckpointId | None) -> list[Effect]:
        """The new number is durable: order the tasks of the region to start.  `last` is the last checkpoint so far:
        all up to it that are not complete were aborted."""
        if then.attempt != self._attempts.newest:
            return []
        stage = self.stage
        if stage is None or not isinstance(stage.step, Renumbered):
            return []
        restores, attempt = stage.step.restores, self._attempts.newest
        self._life.enter(msgspec.structs.replace(stage, step=Starting(restores, stage.tasks)))
        checkpoint = restores.checkpoint if restores else None
        orders = self._deployment.orders(stage.tasks, attempt, restores, suspends=False)
        return [
            AttemptStarted(attempt, checkpoint, stage.cause),
            RegionRestarted(attempt, checkpoint, stage.tasks, self._is_local),
            *((self._in_place(order, last) for order in orders) if self._is_local else orders),
            SetTimer(DeployTimeout(attempt), self._config.deploy_timeout_us),
        ]

    def _in_place(self, order: Effect, last: CheckpointId | None) -> Effect:
        """The order to start in the existing channels."""
        if not isinstance(order, SendToTask) or not isinstance(order.message, Deploy):
            return order
        message = msgspec.structs.replace(order.message, channels_of=self._attempts.newest_full, aborted_up_to=last)
        return SendToTask(order.task, message)

    @property
    def waiting(self) -> tuple[TaskId, ...]:
        """The tasks of the region that have been ordered to start, and do not run yet."""
        region = self.stage
        return region.step.waiting if region is not None and isinstance(region.step, Starting) else ()

    def on_running(self, message: Running) -> list[Effect]:
        """A task is restored and runs.  Once the whole region does, the job works again."""
        region = self.stage
        if region is None or not isinstance(region.step, Starting) or not region.step.waiting:
            return []
        left = tuple(one for one in region.step.waiting if one != message.task)
        self._life.enter(msgspec.structs.replace(region, step=Starting(region.step.restores, left)))
        if left:
            return []
        self._life.enter(Working())
        return [AttemptRunning(self._attempts.newest)]
