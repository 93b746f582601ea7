"""Groups E and J: what restarts when a part of the dataflow is lost."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.decisions.checkpointing import CheckpointPlan, RestoreChoice, Situation, Triggering
from ..core.decisions.failover_strategy import FailoverStrategy
from ..core.job.topology import JobGraph
from ..core.vocabulary.events import CompletedCheckpoint
from ..core.vocabulary.ids import TaskId
from ..core.vocabulary.stages import PartialFailover, Stage, Terminating, Working
from .registry import Defect


class LostIsFinished(Triggering):
    """E01: a lost task counts as finished, so that no checkpoint waits for it."""

    _lost: tuple[TaskId, ...] = ()
    """of the checkpoint that is about to be triggered"""

    def allowed(self, now: Situation) -> bool:
        runs = isinstance(now.stage, Working | PartialFailover) and not now.is_ending and now.is_open
        is_allowed = runs and now.under_way < now.concurrent
        self._lost = now.stage.tasks if is_allowed and isinstance(now.stage, PartialFailover) else ()
        return is_allowed

    def plan(self, graph: JobGraph, finished: Sequence[TaskId]) -> CheckpointPlan:
        lost, self._lost = self._lost, ()
        self.reached = self.reached or bool(lost)
        return super().plan(graph, (*finished, *lost))


class PartFromNothing(RestoreChoice):
    """E12: a restart of the whole job restores the state; a restart of a part of the job begins without state."""

    def choose_for_region(self, retained: Sequence[CompletedCheckpoint]) -> CompletedCheckpoint | None:
        self.reached = self.reached or bool(retained)
        return None


class PartOfTheEnd(FailoverStrategy):
    """J21: the failure of a region restarts that region, even when other regions have finished already."""

    def lost_with(
        self, region: tuple[TaskId, ...], tasks: tuple[TaskId, ...], stage: Stage, is_ending: bool
    ) -> tuple[TaskId, ...]:
        if isinstance(stage, Terminating):
            self.reached = True
            return region
        return super().lost_with(region, tasks, stage, is_ending)


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
        replacements=lambda: {"restore_choice": PartFromNothing()},
    ),
    Defect(
        id="J21",
        upstream="FLINK-21030",
        title="after a stop with savepoint a failed region restarts alone although another has finished",
        invariant="no-data-loss",
        replacements=lambda: {"failover_strategy": PartOfTheEnd()},
    ),
)
