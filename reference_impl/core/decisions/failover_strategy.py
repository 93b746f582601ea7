"""What a failure of a task restarts, and whether the restart waits (ABS-6)."""

from __future__ import annotations

from collections.abc import Sequence

from ..vocabulary.ids import CheckpointId, TaskId
from ..vocabulary.stages import Deploying, PartialFailover, Stage, Terminating, Working
from .part import Part


class FailoverStrategy(Part):
    """What a failure of a task restarts, and whether the restart waits."""

    def restarts(self, stage: Stage) -> bool:
        """Whether the loss of a task starts another attempt: not if a restart is on its way already."""
        return isinstance(stage, Deploying | Working | PartialFailover | Terminating)

    def must_wait(self, being_stored: Sequence[CheckpointId]) -> bool:
        """Whether a restart waits: while the record of any checkpoint is being stored, since it may become the
        newest."""
        return bool(being_stored)

    def lost_with(
        self, region: tuple[TaskId, ...], tasks: tuple[TaskId, ...], stage: Stage, is_ending: bool
    ) -> tuple[TaskId, ...]:
        """The tasks that restart when a task of a region is lost: the region, while the job works and is not about to
        end.  Otherwise all `tasks`: while they are being deployed, and once the job is about to end, since a task that
        has finished would not come back (J21)."""
        return region if isinstance(stage, Working | PartialFailover) and not is_ending else tasks
