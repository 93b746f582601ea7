"""The end of a job, however it came to it (FIN-3, FIN-4): nobody waits any more, and nothing is left that nobody needs.

A job ends well with a complete checkpoint that covers everything: all tasks commit what is sealed, and finish
(`finishing_tasks`).  Else it is closed (`closing`).
"""

from __future__ import annotations

from ..protocol.checkpoints import Checkpoints, UnderWay
from ..vocabulary.causes import AnyCause, JobClosed
from ..vocabulary.effects import Effect, EndJob
from ..vocabulary.ends import STATUS, Status
from ..vocabulary.stages import Closing, Ended, Settling, Terminating
from .checkpoints_cleaner import CheckpointsCleaner
from .commands import Commands
from .completed_checkpoint_store import CompletedCheckpointStore
from .job_life import JobLife


class JobEnding:
    """The end of one job."""

    def __init__(
        self,
        *,
        life: JobLife,
        under_way: UnderWay,
        checkpoints: Checkpoints,
        completed: CompletedCheckpointStore,
        cleaner: CheckpointsCleaner,
        commands: Commands,
    ) -> None:
        self._life = life
        self._under_way = under_way
        self._checkpoints = checkpoints
        self._completed = completed
        self._cleaner = cleaner
        self._commands = commands

    def end_if_settled(self) -> list[Effect]:
        """End once every task has finished, or every writer is settled, and no snapshot's record is being stored."""
        stage = self._life.stage
        if self._under_way.storing:
            return []
        if isinstance(stage, Terminating) and not stage.waiting:
            return self._end(STATUS[stage.ending])
        if isinstance(stage, Closing) and isinstance(stage.step, Settling) and not stage.step.waiting:
            return self._end(stage.closure.status, stage.closure.cause)
        return []

    def _end(self, status: Status, cause: AnyCause | None = None) -> list[Effect]:
        over, newest = JobClosed(status), self._completed.to_restore()
        unanswered = self._commands.refuse_all(over)
        self._life.enter(Ended())
        return [
            *self._checkpoints.abort_with_attempt(over),
            *self._cleaner.job_over(),
            *unanswered,
            EndJob(status, newest.checkpoint if newest else None, cause),
        ]
