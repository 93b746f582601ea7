"""What of complete checkpoints a task has yet to commit."""

from __future__ import annotations

from ..core.committing import CommittingTask, GlobalCommitter
from ..core.ids import CheckpointId
from ..core.sink import TransactionalSink
from ..core.task import Task
from ..driver.runner import TaskRunner


def oldest_unsettled(machine: Task) -> CheckpointId | None:
    """The oldest checkpoint with a sealed transaction that a task has not settled."""
    sealed = machine.sealed if isinstance(machine, TransactionalSink | CommittingTask) else ()
    return min((transaction.checkpoint for transaction in sealed), default=None)


def is_handed(runner: TaskRunner) -> bool:
    """Whether something of a complete checkpoint is on its way to a task that commits: to a global committer
    nothing else comes."""
    return isinstance(runner.task, GlobalCommitter) and any(channel.queue for channel in runner.inputs)
