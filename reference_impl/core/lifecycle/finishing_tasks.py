"""The orders to finish: to single tasks while the others go on (FIN-1), and to all of them when the job ends (FIN-3).

A task that is ordered to finish commits what the checkpoint covers, finishes, and says so.  Orders are repeated until
it has, since a message may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..decisions.finishing import Ending, OrderStep
from ..job.config import Config
from ..protocol.attempts import Attempts
from ..protocol.checkpoints import PendingCheckpoint, UnderWay
from ..vocabulary.effects import Effect, SetTimer
from ..vocabulary.ends import JobEnd
from ..vocabulary.ids import CheckpointId, TaskId
from ..vocabulary.messages import Terminate
from ..vocabulary.stages import Terminating
from ..vocabulary.timeouts import RetryTerminate, RetryTerminateTasks
from .job_ending import JobEnding
from .job_life import JobLife
from .task_ends import TaskEnds


class FinishingTasks:
    """The tasks of one job that were ordered to finish."""

    def __init__(
        self,
        job: int,
        config: Config,
        decision: Ending,
        *,
        attempts: Attempts,
        under_way: UnderWay,
        ends: TaskEnds,
        life: JobLife,
        ending: JobEnding,
    ) -> None:
        self._job = job
        self._retry_us = config.retry_us
        self._decision = decision
        self._attempts = attempts
        self._under_way = under_way
        self._ends = ends
        self._life = life
        self._ending = ending

    @property
    def ordered_or_finished(self) -> tuple[TaskId, ...]:
        return (*self._ends.ordered_to_finish, *self._ends.finished)

    def _order(self, task: TaskId, checkpoint: CheckpointId | None) -> Effect:
        order = Terminate(job=self._job, attempt=self._attempts.newest, checkpoint=checkpoint)
        return self._attempts.message_to(task, order)

    # -- one by one ----------------------------------------------------------------------

    def order(self, completed: PendingCheckpoint) -> list[Effect]:
        """A checkpoint is complete: order those tasks to finish whose whole work it covers.  If the job is about to
        end, all tasks are soon ordered to."""
        if self._under_way.is_ending:
            return []
        some_before = bool(self._ends.ordered_to_finish)
        orders = self._orders(self._ends.order_to_finish(completed.ended, completed.checkpoint))
        return orders if some_before else self._give(orders, RetryTerminateTasks())

    def _orders(self, tasks: Sequence[TaskId]) -> list[Effect]:
        covered_by = self._ends.ordered_to_finish
        return [self._order(task, covered_by[task]) for task in tasks]

    def order_again(self, timeout: RetryTerminateTasks) -> list[Effect]:
        ordered = self._ends.ordered_to_finish
        if not ordered or not self._life.runs_at_least_in_part:
            return []
        return self._give(self._orders(tuple(ordered)), timeout)

    def _give(self, orders: list[Effect], timeout: RetryTerminate | RetryTerminateTasks) -> list[Effect]:
        """Send these orders, if there are any, and send them again after a while."""
        effects: list[Effect] = []
        for step in self._decision.steps() if orders else ():  # send, repeat later
            effects += orders if step is OrderStep.send else [SetTimer(timeout, self._retry_us)]
        return effects

    # -- all tasks, and with them the job ------------------------------------------------

    def terminate(self, checkpoint: CheckpointId | None, ending: JobEnd) -> list[Effect]:
        """A complete checkpoint covers all work: let all tasks commit and finish."""
        self._life.enter(Terminating(checkpoint, ending, self._ends.unfinished))
        return [*self.order_all(RetryTerminate()), *self._ending.end_if_settled()]

    def order_all(self, timeout: RetryTerminate) -> list[Effect]:
        stage = self._life.stage
        if not isinstance(stage, Terminating):
            return []
        return self._give([self._order(task, stage.checkpoint) for task in stage.waiting], timeout)

    def finished_with_all(self, task: TaskId) -> list[Effect]:
        """A task has finished since the job ends."""
        stage = self._life.stage
        if not isinstance(stage, Terminating):
            return []
        waiting = tuple(one for one in stage.waiting if one != task)
        self._life.enter(Terminating(stage.checkpoint, stage.ending, waiting))
        return self._ending.end_if_settled()
