"""The phase of the job in which a fault fires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lifecycle.stages import PartialFailover, Restarting, Terminating, Working

if TYPE_CHECKING:
    from .world import World

# Asked after each step of a run with a fault that waits for a phase, so these tuples are made only once.
_RECOVERING = (Restarting, PartialFailover)
_UP = (Working, Terminating)


def phase_of(world: World) -> str:
    """One of `faults.points.PHASES`, by the coordinator's stage and what its tasks do."""
    coordinator = world.coordinator
    if coordinator is None or not coordinator.alive:
        return "recovering"
    machine = coordinator.machine
    if isinstance(machine.stage, _RECOVERING):
        return "recovering"
    if not isinstance(machine.stage, _UP):
        return "deploying" if world.attempts <= 1 and world.job_number == 1 else "recovering"
    if isinstance(machine.stage, Terminating) or machine.is_ending:
        return "finishing"
    if any(any(runner.blocked) for runner in world.live()):
        return "aligning"
    if _commits_are_due(world):
        return "committing"
    return "checkpointing" if machine.checkpoints.pending or machine.checkpoints.storing else "running"


def _commits_are_due(world: World) -> bool:
    """Whether a commit is due.

    Some sink or committer holds a sealed transaction that a complete checkpoint covers, or one is on its way from a
    committer to the next.
    """
    newest = world.newest
    if newest is None:
        return False
    return _is_handing_over(world) or any(
        transaction.checkpoint <= newest.checkpoint for runner in world.live() for transaction in runner.task.sealed
    )


def _is_handing_over(world: World) -> bool:
    published = (runner for runner in world.live() if runner.task.publishes)
    return any(channel.queue for runner in published for channel in runner.inputs)
