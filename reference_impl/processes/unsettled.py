"""Which transactions of complete checkpoints a task has yet to commit."""

from __future__ import annotations

from ..core.extensions.committing import Committing, GlobalCommitter
from ..core.protocol.input_task import InputTask
from ..core.protocol.sink import TransactionalSink
from ..core.protocol.task import Task
from ..core.vocabulary.ids import CheckpointId
from ..driver.runner import TaskRunner


def oldest_unsettled(machine: Task) -> CheckpointId | None:
    """The oldest checkpoint with a sealed transaction that the task has neither committed nor aborted."""
    work = machine.work if isinstance(machine, InputTask) else None
    sealed = work.sealed if isinstance(work, TransactionalSink | Committing) else ()
    return min((transaction.checkpoint for transaction in sealed), default=None)


def is_handed(runner: TaskRunner) -> bool:
    """Whether a part of a complete checkpoint is on its way to a task that commits; a global committer gets nothing
    else."""
    task = runner.task
    publishes = isinstance(task, InputTask) and isinstance(task.work, GlobalCommitter)
    return publishes and any(channel.queue for channel in runner.inputs)
