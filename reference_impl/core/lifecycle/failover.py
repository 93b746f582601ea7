"""How an attempt fails, and what restarts after it: the whole dataflow, or a region of it (ABS-6, FLIP-1).

A restart waits for its delay, and for the record of a checkpoint that is being stored: it may become the newest.  The
restart of all tasks is in `execution`, that of a region in `regions`.
"""

from __future__ import annotations

from ..decisions.parts import Parts
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..protocol.checkpoints import UnderWay
from ..vocabulary.causes import (
    AnyCause,
    AttemptFailed,
    NotUpInTime,
    RegionRestarts,
    RestartsUsedUp,
    TaskFailed,
)
from ..vocabulary.effects import Effect, SetTimer
from ..vocabulary.events import TaskLost
from ..vocabulary.ids import TaskId
from ..vocabulary.stages import Deploying, Restarting
from ..vocabulary.timeouts import DeployTimeout, RestartDelay
from .cancellation import Cancellation
from .closing import JobClosing
from .execution import Execution
from .job_life import JobLife
from .regions import RegionalFailover


class Failover:
    """The failures of one job, and its restarts: as many as are allowed, then the job fails."""

    def __init__(
        self,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        *,
        life: JobLife,
        attempts: Attempts,
        under_way: UnderWay,
        cancellation: Cancellation,
        regional: RegionalFailover,
        execution: Execution,
        closing: JobClosing,
    ) -> None:
        self._config = config
        self._decision = parts.failover_strategy
        self._life = life
        self._attempts = attempts
        self._under_way = under_way
        self._cancellation = cancellation
        self._regional = regional
        self._execution = execution
        self._closing = closing
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._restarts = 0

    # -- a failure -------------------------------------------------------------------

    def on_lost(self, event: TaskLost) -> list[Effect]:
        stage, task = self._life.stage, event.task
        if event.attempt != self._attempts.number_of(task) or not self._decision.restarts(stage):
            return []
        lost = self._regional.lost_with(task, stage, is_ending=self._under_way.is_ending)
        if not lost:
            return []
        cause = TaskFailed(task, event.cause)
        return self._fail_over_region(lost, cause) if len(lost) < len(self._tasks) else self.fail_over(cause)

    def not_up_in_time(self, timeout: DeployTimeout) -> list[Effect]:
        """Some tasks do not run in time: the whole dataflow restarts, even if only a region was to."""
        stage = self._life.stage
        waiting = stage.waiting if isinstance(stage, Deploying) else self._regional.waiting
        if not waiting or timeout.attempt != self._attempts.newest:
            return []
        return self.fail_over(NotUpInTime(waiting))

    def fail_over(self, cause: AnyCause) -> list[Effect]:
        """The attempt has failed: give it up, and start another attempt after a delay.

        A partial failover that has not started is counted already: it becomes the restart of all tasks.
        """
        self._restarts += not self._regional.is_counted
        effects = self._cancellation.end_attempt(AttemptFailed(cause))
        if self._are_used_up:
            return [*effects, *self._used_up(cause)]
        self._life.enter(Restarting(cause))
        return [*effects, SetTimer(RestartDelay(), self._config.restart_delay_us)]

    def _fail_over_region(self, lost: tuple[TaskId, ...], cause: AnyCause) -> list[Effect]:
        """A region is lost: abort what needs it, and restart it after a delay."""
        effects = self._cancellation.end_region(lost, RegionRestarts(lost, cause))
        if self._regional.widen(lost):
            return effects
        self._restarts += not self._regional.is_counted
        if self._are_used_up:
            return [*effects, *self._used_up(cause)]
        return [*effects, *self._regional.begin(lost, cause)]

    @property
    def _are_used_up(self) -> bool:
        return self._restarts > self._config.restart_attempts

    def _used_up(self, cause: AnyCause) -> list[Effect]:
        return self._closing.fail(RestartsUsedUp(self._config.restart_attempts, cause))

    # -- the restart -------------------------------------------------------------------

    def restart_delay_over(self, timeout: RestartDelay) -> list[Effect]:
        """Restart, unless the record of a checkpoint is being stored: it may become the newest."""
        being_stored = [record.checkpoint for record in self._under_way.records_being_stored]
        must_wait = self._decision.must_wait(being_stored)
        if self._regional.delay_over():
            return [] if must_wait else self._regional.restart()
        stage = self._life.stage
        if not isinstance(stage, Restarting):
            return []
        self._life.enter(Restarting(stage.cause, delayed=False))
        return [] if must_wait else self._execution.start(stage.cause)

    def resume(self) -> list[Effect]:
        """A restart that waited for a record to be stored goes on."""
        stage = self._life.stage
        if self._under_way.storing:
            return []
        if self._regional.awaits_record:
            return self._regional.restart()
        return self._execution.start(stage.cause) if isinstance(stage, Restarting) and not stage.delayed else []
