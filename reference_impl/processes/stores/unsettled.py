"""Which transactions of complete checkpoints a task has yet to commit."""

from __future__ import annotations

from ...core.protocol.task import Task
from ...core.vocabulary.ids import CheckpointId, following
from ...driver.runner import TaskRunner


def oldest_unsettled(machine: Task) -> CheckpointId | None:
    """The oldest checkpoint with a sealed transaction that the task has neither committed nor aborted: the first, if it
    was sealed before any."""
    sealed_for = (transaction.checkpoint for transaction in machine.sealed)
    return min((one if one is not None else following(None) for one in sealed_for), default=None)


def is_handed(runner: TaskRunner) -> bool:
    """Whether a part of a complete checkpoint is on its way to a task that commits; a global committer gets nothing
    else."""
    return runner.task.publishes and any(channel.queue for channel in runner.inputs)
