"""Groups E and J: what restarts when a part of the dataflow is lost."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.decisions.checkpointing import Triggering
from ..core.decisions.failover import Failover
from ..core.lifecycle.regions import Regional
from ..core.lifecycle.stages import PartialFailover, Terminating
from ..core.protocol.coordinator import Coordinator
from ..core.vocabulary.events import CompletedSnapshot
from ..core.vocabulary.ids import TaskId
from .registry import Defect


class LostIsFinished(Triggering):
    """E01: a lost task counts as finished, so that no checkpoint waits for it."""

    _coordinator: Coordinator | None = None

    def allowed(self, coordinator: Coordinator) -> bool:
        self._coordinator = coordinator
        return coordinator.is_working and not coordinator.is_ending and coordinator.takes_checkpoints

    def asked(self, tasks: Sequence[TaskId], finished: Sequence[TaskId]) -> tuple[TaskId, ...]:
        stage = self._coordinator.stage if self._coordinator is not None else None
        lost = stage.tasks if isinstance(stage, PartialFailover) else ()
        self.reached = self.reached or bool(lost)
        return super().asked(tasks, (*finished, *lost))


class PartFromNothing(Failover):
    """E12: a restart of the whole job restores the state; a restart of a part of the job begins without state."""

    def restored_by_part(self, newest: CompletedSnapshot | None) -> CompletedSnapshot | None:
        self.reached = self.reached or newest is not None
        return None


class PartOfTheEnd(Failover):
    """J21: the failure of a region restarts that region, even when other regions have finished already."""

    def lost_with(self, coordinator: Regional, task: TaskId) -> tuple[TaskId, ...]:
        if coordinator.config.by_region and isinstance(coordinator.stage, Terminating):
            self.reached = True
            return coordinator.region_of(task)
        return super().lost_with(coordinator, task)


DEFECTS = (
    Defect(
        id="E01",
        upstream="FLINK-40482",
        title="a lost task counts as finished in a checkpoint",
        invariant="consistent-cut",
        replacements=lambda: {"triggering": LostIsFinished()},
    ),
    Defect(
        id="E12",
        upstream="FLINK-14389 / FLINK-10712",
        title="a partial failover does not restore the state",
        invariant="restored-state",
        replacements=lambda: {"failover": PartFromNothing()},
    ),
    Defect(
        id="J21",
        upstream="FLINK-21030",
        title="after a stop with savepoint a failed region restarts alone although another has finished",
        invariant="no-data-loss",
        replacements=lambda: {"failover": PartOfTheEnd()},
    ),
)
