"""Partial failover: a part of the dataflow restarts while the rest goes on (FLIP-1: failover by region).

A region is a set of tasks that data channels join.  No record goes from one region to
another, so that a region can go back to the latest complete checkpoint on its own.  Its tasks
get a new attempt number, and with it a fence of their own.  The other tasks keep their
number, their state and their open transactions.  No checkpoint is taken meanwhile, since a
part of it would be missing.  The end of the job concerns all tasks; a failure amid it
restarts all of them (`parts.Failover.lost_with`).

With local recovery only the lost tasks restart (UNA-4; `local_recovery`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from ..job.topology import JobGraph
from ..vocabulary.causes import AnyCause, NotUpInTime, RestartsUsedUp, TaskFailed
from ..vocabulary.effects import Effect, Note, Return, SendToTask, SetTimer
from ..vocabulary.errors import expect
from ..vocabulary.events import CompletedSnapshot, TaskLost
from ..vocabulary.ids import AttemptId, CheckpointId, TaskId, task_id
from ..vocabulary.messages import Cancel, Deploy, Running
from ..vocabulary.timeouts import DeployTimeout, RestartDelay
from .attempts import Attempts, refusal
from .stages import Deploying, PartialFailover, Working


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


class Regional(Attempts):
    """An attempt of which a part may be lost and restart under an attempt number of its own."""

    @property
    def may_fail_over_in_part(self) -> bool:
        """A part may restart alone: the other tasks run, and the job is not about to end."""
        return self.config.by_region and isinstance(self.stage, Working | PartialFailover) and not self.is_ending

    _whole = AttemptId(0)
    """the newest attempt of all tasks, to which the channels belong"""

    def channels_of(self, task: TaskId) -> AttemptId:
        return self._whole if self.config.failover == "local" else super().channels_of(task)

    def region_of(self, task: TaskId) -> tuple[TaskId, ...]:
        """The tasks that restart with a lost task: those of its region; with local recovery only the task itself.  A
        task that may already have sent its end cannot recover locally, since its receivers may have taken the end."""
        if self.config.failover == "local":
            goes = (*self._terminating, *self.checkpoints.reported_finished, *self.checkpoints.finished_tasks)
            return self.tasks if task in goes else (task,)
        return next(region for region in regions(self.graph) if task in region)

    # -- lost ----------------------------------------------------------------------

    def _on_lost(self, event: TaskLost) -> list[Effect]:
        if event.attempt != self.attempt_of(event.task) or not self.parts.failover.restarts_again(self):
            return []
        cause = TaskFailed(event.task, event.cause)
        lost = self.parts.failover.lost_with(self, event.task)
        if isinstance(self.stage, PartialFailover):
            if event.task in self.stage.tasks and not self.stage.has_begun:
                return []
            lost = tuple(task for task in self.tasks if task in lost or task in self.stage.tasks)
        return self._fail_over_in_part(lost, cause) if len(lost) < len(self.tasks) else self._fail_over(cause)

    def _fail_over(self, cause: AnyCause) -> list[Effect]:
        """A partial failover that has not started is counted already: it becomes the restart of all tasks."""
        if self._is_counted:
            self._restarts -= 1
        return super()._fail_over(cause)

    @property
    def _is_counted(self) -> bool:
        """A part is about to restart.  Tasks that are lost meanwhile restart with it: that is one restart, not two.

        Once tasks have been ordered to start, the next loss is another restart.  So the number of restarts equals the
        number of attempts started after the first.
        """
        return isinstance(self.stage, PartialFailover) and not self.stage.has_started

    def _fail_over_in_part(self, lost: tuple[TaskId, ...], cause: AnyCause) -> list[Effect]:
        """Give up the pending checkpoints, since a part is missing now, and restart that part after a delay."""
        reason = f"{', '.join(lost)} restart: {cause}"
        pending = list(self.checkpoints.pending.values())
        effects = [
            *(effect for one in pending for effect in self.checkpoints.abort(one, reason)),
            *(self.checkpoints.message_to(task, Cancel(job=self.job, attempt=self.attempt)) for task in lost),
            *(Return(one.command, error=reason) for one in pending if one.command is not None),
        ]
        if isinstance(self.stage, PartialFailover) and not self.stage.has_begun:
            self.stage = msgspec.structs.replace(self.stage, tasks=lost)
            return effects
        self._restarts += not self._is_counted
        if self._restarts > self.config.restart_attempts:
            return [*effects, *self._close("failed", RestartsUsedUp(self.config.restart_attempts, cause))]
        self.stage = PartialFailover(lost, str(cause))
        return [*effects, SetTimer(RestartDelay(), self.config.restart_delay_us)]

    # -- the restart -----------------------------------------------------------------

    def _restart(self) -> list[Effect]:
        if not isinstance(self.stage, PartialFailover):
            return super()._restart()
        if self.stage.has_begun:
            return []
        self.stage = msgspec.structs.replace(self.stage, step="storing")
        return [] if self.checkpoints.storing and self.parts.failover.awaits_store() else self._begin_partial_failover()

    def _resume_restart(self) -> list[Effect]:
        stage = self.stage
        if isinstance(stage, PartialFailover) and stage.step == "storing" and not self.checkpoints.storing:
            return self._begin_partial_failover()
        return super()._resume_restart()

    def _begin_partial_failover(self) -> list[Effect]:
        """Give the lost tasks a new number.  What the coordinator knows of their state follows from the checkpoint
        that they restore."""
        stage = expect(self.stage, PartialFailover)
        restores = self.parts.failover.restored_by_part(self.checkpoints.newest())
        if restores is not None and (reason := refusal(self.graph, restores)):
            return self._close("failed", reason)
        survivors = {task: self.attempt_of(task) for task in self.tasks if task not in stage.tasks}
        self._renumber(survivors)
        finished = self._finished_before(restores)
        self._ended_inputs = _for_part(self._ended_inputs, stage.tasks, finished)
        self.checkpoints.finished_tasks = _for_part(self.checkpoints.finished_tasks, stage.tasks, finished)
        for task in stage.tasks:
            self.checkpoints.reported_finished.pop(task, None)
            self._terminating.pop(task, None)
        self.stage = msgspec.structs.replace(stage, step="saving", restores=restores)
        attempt = self.attempt

        def when_saved() -> list[Effect]:
            now = self.stage
            is_due = isinstance(now, PartialFailover) and now.step == "saving" and attempt == self.attempt
            return self._deploy_part() if is_due else []

        return self._save(when_saved)

    def _deploy(self, restores: CompletedSnapshot | None, cause: str) -> list[Effect]:
        self._whole = self.attempt
        return super()._deploy(restores, cause)

    def _deploy_part(self) -> list[Effect]:
        stage = expect(self.stage, PartialFailover)
        self.stage = msgspec.structs.replace(stage, step="deploying", waiting=stage.tasks)
        restores, attempt = stage.restores, self.attempt
        checkpoint = restores.checkpoint if restores else None
        orders = self._orders(stage.tasks, restores, suspends=False)
        is_local = self.config.failover == "local"
        return [
            Note("attempt-started", checkpoint, attempt, stage.cause),
            Note("tasks-recovered" if is_local else "tasks-restarted", checkpoint, attempt, tasks=tuple(stage.tasks)),
            *((self._in_place(order) for order in orders) if is_local else orders),
            SetTimer(DeployTimeout(attempt), self.config.deploy_timeout_us),
        ]

    def _in_place(self, order: Effect) -> Effect:
        """The order to start in the existing channels."""
        if not isinstance(order, SendToTask) or not isinstance(order.message, Deploy):
            return order
        last = CheckpointId(self.checkpoints.next_id - 1)
        return SendToTask(order.task, msgspec.structs.replace(order.message, channels_of=self._whole, given_up=last))

    def _not_up_in_time(self, timeout: DeployTimeout) -> list[Effect]:
        """Some tasks do not run in time: the whole dataflow restarts, even if only a part was to."""
        stage = self.stage
        if not isinstance(stage, Deploying | PartialFailover) or not stage.waiting or timeout.attempt != self.attempt:
            return []
        return self._fail_over(NotUpInTime(stage.waiting))

    def _on_running(self, message: Running) -> list[Effect]:
        stage = self.stage
        if not isinstance(stage, PartialFailover):
            return super()._on_running(message)
        waiting = tuple(task for task in stage.waiting if task != message.task)
        self.stage = msgspec.structs.replace(stage, waiting=waiting)
        return self._up() if stage.waiting and not waiting else []


def _for_part(known: Sequence[TaskId], part: Sequence[TaskId], finished: Sequence[TaskId]) -> tuple[TaskId, ...]:
    """The tasks outside of `part` that are in `known`, and the tasks of `part` that are in `finished`."""
    return (*(task for task in known if task not in part), *(task for task in finished if task in part))
