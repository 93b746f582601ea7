"""What is cancelled when tasks are lost or the job is closed: the tasks, and all that needs them."""

from __future__ import annotations

from collections.abc import Sequence

from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..protocol.checkpoints import Checkpoints
from ..vocabulary.causes import AnyCause
from ..vocabulary.effects import Effect
from ..vocabulary.ids import TaskId
from ..vocabulary.messages import Cancel
from .checkpoint_failure_manager import CheckpointFailureManager
from .commands import Commands


class Cancellation:
    """Cancels tasks of one job, with the pending checkpoints and the commands behind these."""

    def __init__(
        self,
        job: int,
        graph: JobGraph,
        *,
        attempts: Attempts,
        checkpoints: Checkpoints,
        failures: CheckpointFailureManager,
        commands: Commands,
    ) -> None:
        self._job = job
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._attempts = attempts
        self._checkpoints = checkpoints
        self._failures = failures
        self._commands = commands

    def cancel_all(self) -> list[Effect]:
        """Order all tasks to stop, if any were ordered to start, and nothing else."""
        return self._cancel(self._tasks) if self._attempts.has_begun else []

    def _cancel(self, tasks: Sequence[TaskId]) -> list[Effect]:
        order = Cancel(job=self._job, attempt=self._attempts.newest)
        return [self._attempts.message_to(task, order) for task in tasks]

    def end_attempt(self, cause: AnyCause) -> list[Effect]:
        """The attempt has failed, and another one may follow."""
        answers = self._commands.refuse_pending(cause)
        return [*self._end(cause), *answers]

    def end_last_attempt(self, cause: AnyCause) -> list[Effect]:
        """The job is being closed: users hear of that before the tasks do."""
        return [*self._commands.refuse_pending(cause), *self._end(cause)]

    def _end(self, cause: AnyCause) -> list[Effect]:
        """None of the attempt's checkpoints can complete, and the next attempt counts failures anew."""
        self._failures.attempt_over()
        return [*self._checkpoints.abort_with_attempt(cause), *self.cancel_all()]

    def end_region(self, lost: Sequence[TaskId], cause: AnyCause) -> list[Effect]:
        """Some tasks are lost while the others go on.  Their snapshots are missing, so pending checkpoints are aborted
        at all tasks."""
        answers = self._commands.refuse_pending(cause)
        return [*self._checkpoints.abort_all(cause), *self._cancel(lost), *answers]
