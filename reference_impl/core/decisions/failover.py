"""What a failure of a task restarts, and what is kept of the failed attempt (ABS-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..vocabulary.events import CompletedSnapshot
from ..vocabulary.ids import TaskId
from .part import Part

if TYPE_CHECKING:
    from ..lifecycle.attempts import Attempts
    from ..lifecycle.regions import Regional
    from ..protocol.checkpoints import Checkpoints


class Failover(Part):
    """What a failure of a task restarts, and what is kept of the failed attempt."""

    def reset(self, checkpoints: Checkpoints) -> None:
        """Nothing of the failed attempt is kept but checkpoints whose records are being stored."""
        checkpoints.under_way = sum(not pending.savepoint for pending in checkpoints.storing)

    def awaits_store(self) -> bool:
        """Whether a restart waits for a checkpoint whose record is being stored: it may become the newest."""
        return True

    def lost_with(self, coordinator: Regional, task: TaskId) -> tuple[TaskId, ...]:
        """The tasks that restart when a task is lost: its region, if the job has failover by region.  All tasks once
        the job is about to end: a part that has finished would not come back (J21)."""
        return coordinator.region_of(task) if coordinator.may_fail_over_in_part else coordinator.tasks

    def restored_by_part(self, newest: CompletedSnapshot | None) -> CompletedSnapshot | None:
        """The snapshot that a partial failover restores: the newest complete checkpoint, as for the whole job."""
        return newest

    def restarts_again(self, coordinator: Attempts) -> bool:
        """Whether the failure of an attempt starts another attempt: not twice for the same one."""
        return coordinator.is_live
