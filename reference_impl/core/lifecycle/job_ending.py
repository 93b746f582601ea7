"""How a job ends: its tasks finish, or it is closed since it was cancelled or has failed (FIN-3, FIN-4).

A job ends well with a complete checkpoint that covers everything: all tasks commit what is sealed, and finish.  Else
the decision to close it is made durable, so that a coordinator that takes over goes on with it; then the writers are
fenced (`closing`).
"""

from __future__ import annotations

import msgspec

from ..decisions.parts import Parts
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..protocol.checkpoints import Checkpoints, UnderWay
from ..vocabulary.causes import AnyCause, JobClosed
from ..vocabulary.effects import Effect, EndJob, Return, Sweep
from ..vocabulary.ends import STATUS, JobEnd, Status
from ..vocabulary.errors import expect
from ..vocabulary.events import Answered, Closure, Commanded
from ..vocabulary.ids import CheckpointId, TaskId
from ..vocabulary.messages import Cancel, Terminate
from ..vocabulary.stages import (
    AwaitingRecords,
    Closing,
    Covered,
    CoveredUpTo,
    Ended,
    MayBeCovered,
    NothingCovered,
    Settling,
    Terminating,
)
from ..vocabulary.timeouts import RetryFence, RetryTerminate
from .checkpoints_cleaner import CheckpointsCleaner
from .closing import close_step, is_settled, requests
from .completed_checkpoint_store import CompletedCheckpointStore
from .job_life import JobLife
from .job_records import Close, JobRecords
from .task_ends import TaskEnds


class JobEnding:
    """The end of one job; it leads the job through the stages of the end."""

    def __init__(
        self,
        job: int,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        *,
        life: JobLife,
        attempts: Attempts,
        checkpoints: Checkpoints,
        under_way: UnderWay,
        completed: CompletedCheckpointStore,
        cleaner: CheckpointsCleaner,
        ends: TaskEnds,
        records: JobRecords,
    ) -> None:
        self._job = job
        self._config = config
        self._parts = parts
        self._life = life
        self._attempts = attempts
        self._checkpoints = checkpoints
        self._under_way = under_way
        self._completed = completed
        self._cleaner = cleaner
        self._ends = ends
        self._records = records
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._writers = tuple(task for task, spec, _ in graph.tasks() if spec.must_be_shut_out(config.sink))
        """the tasks that are shut out of the external store, and their transactions settled, when the job is closed"""
        self._waiting_commands: list[Commanded] = []

    # -- its tasks finish ----------------------------------------------------------------

    def terminate(self, checkpoint: CheckpointId | None, ending: JobEnd) -> list[Effect]:
        """A complete checkpoint covers all work: let all tasks commit and finish."""
        waiting = tuple(task for task in self._tasks if task not in self._ends.finished)
        self._life.enter(Terminating(checkpoint, ending, waiting))
        return [*self.send_terminate(RetryTerminate()), *self.end_if_settled()]

    def send_terminate(self, timeout: RetryTerminate) -> list[Effect]:
        """Send the order, and again until each task has finished: a message may be lost."""
        stage = self._life.stage
        if not isinstance(stage, Terminating):
            return []
        order = Terminate(job=self._job, attempt=self._attempts.newest, checkpoint=stage.checkpoint)
        orders = [self._attempts.message_to(task, order) for task in stage.waiting]
        return [*orders, *self._parts.ending.reminders(timeout, self._config.retry_us)]

    def on_finished(self, task: TaskId) -> list[Effect]:
        """A task has finished, as it was ordered to."""
        stage = self._life.stage
        if not isinstance(stage, Terminating):
            return []
        waiting = tuple(one for one in stage.waiting if one != task)
        self._life.enter(Terminating(stage.checkpoint, stage.ending, waiting))
        return self.end_if_settled()

    def end_if_settled(self) -> list[Effect]:
        """End once every task has finished and no snapshot's record is being stored."""
        stage = self._life.stage
        if self._under_way.storing:
            return []
        if isinstance(stage, Closing) and isinstance(stage.step, AwaitingRecords):
            return self._go_on_closing()
        if not isinstance(stage, Terminating) or stage.waiting:
            return []
        return self._end(STATUS[stage.ending])

    # -- it is cancelled or fails --------------------------------------------------------

    def close(self, closure: Closure, command: int | None = None) -> list[Effect]:
        """The job is cancelled or failed: fence every attempt, and abort what no complete checkpoint covers."""
        closed = JobClosed(closure.status)
        cancel = Cancel(job=self._job, attempt=self._attempts.newest)
        effects = [
            *(Return(one, cause=closed) for one in self._under_way.commands),
            *self._checkpoints.abandon(closed),
            *(self._attempts.message_to(task, cancel) for task in self._tasks),
        ]
        self._attempts.begin()
        self._life.enter(Closing(closure, self._attempts.newest))
        return [*effects, *self._records.save(Close(command), closure)]

    def decided(self, then: Close) -> list[Effect]:
        """The decision to close is durable."""
        answer = [Return(then.command)] if then.command is not None else []
        return [*answer, *self._go_on_closing()]

    def _go_on_closing(self) -> list[Effect]:
        """The decision is durable.  So must be every record that was being stored before it."""
        stage = expect(self._life.stage, Closing)
        if self._under_way.storing:
            self._life.enter(msgspec.structs.replace(stage, step=AwaitingRecords()))
            return []
        stage = msgspec.structs.replace(stage, step=Settling(self._covered(), self._writers))
        self._life.enter(stage)
        return requests(stage) or self._end(stage.closure.status, stage.closure.cause)

    def _covered(self) -> Covered:
        """The sealed transactions that must be committed."""
        newest = self._completed.to_restore()
        if newest is not None and self._completed.knows_all:
            return CoveredUpTo(newest.checkpoint)
        return MayBeCovered() if self._records.had_snapshot or not self._completed.knows_all else NothingCovered()

    def on_answered(self, event: Answered) -> list[Effect]:
        stage = self._life.stage
        if not isinstance(stage, Closing):
            return []
        stage, effects = close_step(stage, event, self._config.retry_us)
        self._life.enter(stage)
        if not is_settled(stage):
            return effects
        return [*effects, *self._end(stage.closure.status, stage.closure.cause)]

    def _end(self, status: Status, cause: AnyCause | None = None) -> list[Effect]:
        newest, knows_all = self._completed.to_restore(), self._completed.knows_all
        over = JobClosed(status)
        sweep: list[Effect] = [Sweep(self._completed.files)] if self._records.took_over and knows_all else []
        unanswered = [*(event.command for event in self.waiting_commands()), *self._under_way.commands]
        self._life.enter(Ended())
        return [
            *self._checkpoints.abandon(over),
            *self._cleaner.discard_leftovers(),
            *sweep,
            *(self._cleaner.clear_logs(()) if knows_all else ()),
            *(Return(command, cause=over) for command in unanswered),
            EndJob(status, newest.checkpoint if newest else None, cause),
        ]

    def fence_again(self, timeout: RetryFence) -> list[Effect]:
        return requests(self._life.stage) if isinstance(self._life.stage, Closing) else []

    # -- commands that wait ------------------------------------------------------------

    def keep(self, event: Commanded) -> list[Effect]:
        """A command waits until the job works; at the latest it is answered when the job ends."""
        self._waiting_commands.append(event)
        return []

    def waiting_commands(self) -> list[Commanded]:
        """The commands that have waited; they wait no longer."""
        commands, self._waiting_commands = self._waiting_commands, []
        return commands
