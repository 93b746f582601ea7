"""The coordinator of checkpoints: starts them, collects acknowledgements, notifies the tasks (ABS-1, ABS-3, ABS-4).

This is the coordinator of Carbone et al. (arXiv:1506.08603, section 4.2), with what Flink adds: acknowledgements,
several checkpoints at a time, savepoints (FLIP-47), and tasks that finish (FLIP-147).  One checkpoint goes through this
file so: the interval passes (`on_interval_over`), and the checkpoint is created (`create_checkpoint`).  Once its id
is durable, it is triggered (`trigger_checkpoint`), and the tasks acknowledge (`on_ack`).  With the last
acknowledgement its record is being stored.  Once the record is durable, the checkpoint is complete
(`on_record_stored`), and the tasks are notified (`_notify`).

It is a part of the job's coordinator (`lifecycle.coordinator`), which has attempts, commands and an end besides.  What
it needs of these are the protocols below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..decisions.checkpointing import Situation
from ..decisions.parts import Parts
from ..job.config import Config
from ..vocabulary.causes import (
    AnyCause,
    CheckpointsFailed,
    Declined,
    NotStored,
    StopFailed,
    TimedOut,
)
from ..vocabulary.effects import Effect, Return, SetTimer
from ..vocabulary.ends import JobEnd
from ..vocabulary.events import RecordStored, StoreFailed
from ..vocabulary.ids import CheckpointId, TaskId
from ..vocabulary.messages import Ack, Complete, Decline
from ..vocabulary.stages import Stage
from ..vocabulary.timeouts import CheckpointInterval, CheckpointTimeout, MinimumPause
from .attempts import Attempts
from .checkpoints import Checkpoints, CompletedCheckpoints, FinishedTasks, PendingCheckpoint, UnderWay


class Life(Protocol):
    """How far the job has come in its life."""

    @property
    def stage(self) -> Stage: ...

    @property
    def all_tasks_run(self) -> bool: ...

    @property
    def runs_at_least_in_part(self) -> bool:
        """All tasks run, or all but those of a partial failover."""
        ...


class DurableRecord(Protocol):
    """The job's record, which is durable before what it says is acted on (ABS-6)."""

    def save_then_trigger(self, checkpoint: CheckpointId) -> list[Effect]:
        """Save the job's record, with the ids given so far, and trigger the checkpoint once it is durable."""
        ...

    def save_had_snapshot_before(self, effects: list[Effect]) -> list[Effect]:
        """Save in the job's record that the job has had a snapshot, and carry out these effects once that is durable.
        This is done only before the first checkpoint is complete, and only if snapshots are kept in the coordinator's
        memory: a later coordinator must know that a snapshot is lost (ABS-14).  Otherwise the effects are returned as
        they are."""
        ...


class Failures(Protocol):
    """How many checkpoints have failed in a row (ABS-3)."""

    def completed(self) -> None: ...

    def failed(self, checkpoint: CheckpointId, cause: AnyCause) -> bool:
        """Whether more have failed now than the job tolerates."""
        ...


class InputEnds(FinishedTasks, Protocol):
    """Which tasks have come to the end of their input (FIN-1)."""

    @property
    def all_input_has_ended(self) -> bool: ...

    @property
    def some_input_has_ended(self) -> bool: ...


class FinishingTasks(Protocol):
    """The tasks that finish while others go on (FIN-1)."""

    def order(self, completed: PendingCheckpoint) -> list[Effect]:
        """Order the tasks to finish whose whole work a complete checkpoint covers."""
        ...

    @property
    def ordered_or_finished(self) -> tuple[TaskId, ...]:
        """The tasks that were ordered to finish, or have finished."""
        ...

    def terminate(self, checkpoint: CheckpointId | None, ending: JobEnd) -> list[Effect]:
        """A complete checkpoint covers all work: let all tasks commit and finish (FIN-3)."""
        ...


class CheckpointCoordinator:
    """When checkpoints of one job are taken, and what follows from each."""

    def __init__(
        self,
        job: int,
        tasks: Sequence[TaskId],
        config: Config,
        parts: Parts,
        *,
        attempts: Attempts,
        checkpoints: Checkpoints,
        under_way: UnderWay,
        completed: CompletedCheckpoints,
        failures: Failures,
        ends: InputEnds,
        finishing: FinishingTasks,
        life: Life,
        records: DurableRecord,
        fail_over: Callable[[AnyCause], list[Effect]],
        go_on_after_storing: Callable[[], list[Effect]],
        put_off: Callable[[CheckpointId], None] | None,
    ) -> None:
        """`fail_over`: the attempt has failed, and another one starts (ABS-6).  `go_on_after_storing`: no
        record is being stored any more; carries out the restart, or the job's end, that has waited for this.
        `put_off`: is given each checkpoint, and triggers it once the enumerators of the sources are ready for it
        (OPS-3).  None: each checkpoint is triggered at once."""
        self._job = job
        self._tasks = tuple(tasks)
        self._config = config
        self._parts = parts
        self._attempts = attempts
        self._checkpoints = checkpoints
        self._under_way = under_way
        self._completed = completed
        self._failures = failures
        self._ends = ends
        self._finishing = finishing
        self._life = life
        self._records = records
        self._fail_over = fail_over
        self._go_on_after_storing = go_on_after_storing
        self._put_off = put_off
        self._paused = False

    # -- a checkpoint is created and triggered (ABS-1, ABS-3) --------------------------------------------

    def on_all_running(self) -> list[Effect]:
        """All tasks run now: take checkpoints.  With at-most-once there are none (ABS-7)."""
        finishing = self._finish() if self._ends.all_input_has_ended else []
        if not self._config.takes_checkpoints:
            return finishing
        return [*finishing, SetTimer(CheckpointInterval(), self._config.checkpoint_interval_us)]

    def on_interval_over(self, timeout: CheckpointInterval) -> list[Effect]:
        """The interval has passed: create a checkpoint if one may be triggered."""
        if not self._life.runs_at_least_in_part:
            return []
        again = SetTimer(timeout, self._config.checkpoint_interval_us)
        if self._life.all_tasks_run and self._ends.all_input_has_ended:
            return [*self._finish(), again]
        if self._paused or not self._parts.triggering.allowed(self._situation()):
            return [again]
        return [*self.create_checkpoint(), again]

    def _situation(self) -> Situation:
        return Situation(
            stage=self._life.stage,
            attempt=self._attempts.newest_full,
            under_way=self._under_way.counted,
            concurrent=self._config.concurrent_checkpoints,
            is_ending=self._under_way.is_ending,
            is_open=self.may_trigger_before_final,
            latest=self._completed.latest,
            finished=self._ends.finished,
        )

    @property
    def may_trigger_before_final(self) -> bool:
        """Whether a checkpoint other than the final one may be triggered (FIN-7)."""
        return self._config.triggers_after_finish or not self._ends.some_input_has_ended

    def on_pause_over(self, timeout: MinimumPause) -> list[Effect]:
        self._paused = False
        return []

    def create_checkpoint(
        self, *, ending: JobEnd | None = None, command: int | None = None, format_name: str | None = None
    ) -> list[Effect]:
        """Give an id to a new checkpoint, and make durable that it is given.  What a `command` asks for is a savepoint;
        `format_name`: None for the job's own."""
        savepoint = command is not None
        pending = self._checkpoints.create(savepoint=savepoint, ending=ending, command=command, format_name=format_name)
        return self._records.save_then_trigger(pending.checkpoint)

    def trigger_checkpoint(self, checkpoint: CheckpointId) -> list[Effect]:
        """A checkpoint's id is durable: trigger it."""
        pending = self._under_way.pending.get(checkpoint)
        if pending is None or pending.attempt != self._attempts.newest:
            return []
        if self._put_off is None:
            return self._checkpoints.trigger(pending)
        self._put_off(checkpoint)
        return []

    def on_ack(self, message: Ack) -> list[Effect]:
        """A task's snapshot is durable.  With the last one the checkpoint's record is being stored."""
        return self._records.save_had_snapshot_before(self._checkpoints.acknowledge(message))

    # -- a checkpoint is complete (ABS-4) ------------------------------------------------

    def on_record_stored(self, event: RecordStored) -> list[Effect]:
        """The record is durable: the checkpoint is complete."""
        complete, effects = self._checkpoints.complete(event.checkpoint)
        self._failures.completed()
        if complete.command is not None:
            effects.append(Return(complete.command, event.checkpoint))
        if complete.attempt == self._attempts.newest and self._life.runs_at_least_in_part:
            if complete.ending is not None:
                return [*effects, *self._finishing.terminate(event.checkpoint, complete.ending)]
            if not complete.is_separate:
                effects.extend(self._notify(complete))
        if self._config.minimum_pause_us:
            self._paused = True
            effects.append(SetTimer(MinimumPause(), self._config.minimum_pause_us))
        return [*effects, *self._go_on_after_storing()]

    def _notify(self, completed: PendingCheckpoint) -> list[Effect]:
        """Notify the tasks, and let those finish whose whole work the checkpoint covers (FIN-1)."""
        orders = self._finishing.order(completed)
        notification = Complete(
            job=self._job,
            attempt=self._attempts.newest,
            checkpoint=completed.checkpoint,
            oldest=self._completed.oldest,
            logs_from=self._completed.logs_from,
        )
        not_notified = self._finishing.ordered_or_finished
        going_on = [task for task in self._tasks if task not in not_notified]
        return [*(self._attempts.message_to(task, notification) for task in going_on), *orders]

    # -- a checkpoint is aborted (ABS-4) --------------------------------------------------

    def on_decline(self, message: Decline) -> list[Effect]:
        """A task cannot take part.  A task that has finished since is not needed, as with an acknowledgement."""
        pending = self._under_way.pending.get(message.checkpoint)
        if pending is None or message.task not in pending.expected:
            return []
        return self._abort(pending, Declined(message.task, message.cause))

    def on_checkpoint_timeout(self, timeout: CheckpointTimeout) -> list[Effect]:
        pending = self._under_way.pending.get(timeout.checkpoint)
        return self._abort(pending, TimedOut()) if pending else []

    def on_record_not_stored(self, event: StoreFailed) -> list[Effect]:
        """The record could not be stored: the checkpoint is aborted."""
        cause = NotStored(event.reason)
        pending, effects = self._checkpoints.abort_not_stored(event.checkpoint, cause)
        return [*effects, *self._after_abort(pending, cause), *self._go_on_after_storing()]

    def _abort(self, pending: PendingCheckpoint, cause: AnyCause) -> list[Effect]:
        return [*self._checkpoints.abort(pending, cause), *self._after_abort(pending, cause)]

    def _after_abort(self, pending: PendingCheckpoint, cause: AnyCause) -> list[Effect]:
        effects: list[Effect] = []
        if pending.command is not None:
            effects.append(Return(pending.command, cause=cause))
        if not self._life.all_tasks_run or pending.attempt != self._attempts.newest:
            return effects
        too_many = self._failures.failed(pending.checkpoint, cause)
        if pending.ending is not None and pending.ending.by_command:
            return [*effects, *self._fail_over(StopFailed(cause))]
        if too_many:
            return [*effects, *self._fail_over(CheckpointsFailed(cause))]
        return effects

    # -- the final checkpoint (FIN-3) ----------------------------------------------------

    def finish_if_all_ended(self) -> list[Effect]:
        return self._finish() if self._ends.all_input_has_ended and self._life.all_tasks_run else []

    def _finish(self) -> list[Effect]:
        """All input is processed: take the final checkpoint."""
        if self._under_way.is_ending:
            return []
        if not self._config.has_final_checkpoint:
            return self._finishing.terminate(None, JobEnd.FINISH)
        return self.create_checkpoint(ending=JobEnd.FINISH)
