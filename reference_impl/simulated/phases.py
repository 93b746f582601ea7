"""The phase of the job in which a fault fires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..core.vocabulary.events import CompletedCheckpoint
from ..core.vocabulary.ids import CheckpointId, is_newer
from ..core.vocabulary.stages import Closing, Ended, PartialFailover, Restarting, Terminating, Working
from ..driver.coordination import CoordinatorRunner
from ..driver.runner import TaskRunner

# Asked after each step of a run with a fault that waits for a phase, so these tuples are made only once.
_RECOVERING = (Restarting, PartialFailover)
_ENDING = (Terminating, Closing, Ended)


class Phased(Protocol):
    """What the phase depends on."""

    coordinator: CoordinatorRunner | None
    job_number: int
    newest: CompletedCheckpoint | None
    """the newest complete checkpoint"""

    @property
    def attempts(self) -> int:
        """How many attempts of the whole job were started."""

    def live(self) -> list[TaskRunner]:
        """The newest attempt of each task that is alive."""


def phase_of(world: Phased) -> str:
    """One of `faults.points.PHASES`, by the coordinator's stage and what its tasks do."""
    coordinator = world.coordinator
    if coordinator is None or not coordinator.alive:
        return "recovering"
    machine = coordinator.machine
    stage = machine.stage
    if isinstance(stage, _RECOVERING):
        return "recovering"
    if isinstance(stage, _ENDING) and machine.has_begun:
        return "finishing"
    if not isinstance(stage, Working):
        return "deploying" if world.attempts <= 1 and world.job_number == 1 else "recovering"
    if machine.is_ending:
        return "finishing"
    live = world.live()
    for runner in live:
        if True in runner.blocked:
            return "aligning"
    newest = world.newest
    if newest is not None and _commits_are_due(live, newest.checkpoint):
        return "committing"
    return "checkpointing" if machine.has_checkpoint_under_way else "running"


def _commits_are_due(live: Sequence[TaskRunner], newest: CheckpointId) -> bool:
    """Whether a commit is due.

    Some sink or committer holds a sealed transaction that a complete checkpoint covers, or one is on its way from a
    committer to the next.
    """
    for runner in live:
        task = runner.task
        for transaction in task.sealed:
            if not is_newer(transaction.checkpoint, newest):
                return True
        if task.publishes:
            for channel in runner.inputs:
                if channel.queue:
                    return True
    return False
