"""How tasks finish, and how a job comes to its end (FIN-1 to FIN-9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..vocabulary.effects import Effect
from ..vocabulary.ids import TaskId
from ..vocabulary.messages import Control, Terminate, Trigger
from .part import Part

if TYPE_CHECKING:
    from ..job.topology import JobGraph
    from ..protocol.checkpoints import Pending
    from ..protocol.sink import TransactionalSink
    from ..protocol.task import Task


class Finishing(Part):
    """How a task finishes, and how a finished task is deployed again (FIN-1, FIN-3)."""

    def on_deploy(self, task: Task) -> list[Effect]:
        """The task had finished before the snapshot that is restored: send the ends again, and nothing else."""
        return task.stay_finished()

    def begins_another(self, sink: TransactionalSink) -> bool:
        """Whether a sink opens one more transaction: not once it is terminating."""
        return not sink.terminating

    def drops_open(self, sink: TransactionalSink) -> bool:
        """Whether a sink that finishes aborts its open transaction; no other task would."""
        return True

    def after_finish(self, task: Task, message: Control) -> list[Effect]:
        """The answer of a finished task to a message: the coordinator may not have received that it has finished."""
        return task.finish() if isinstance(message, Trigger | Terminate) else []

    def kept(self, graph: JobGraph, finished: Sequence[TaskId]) -> list[TaskId]:
        """The finished tasks whose last state later snapshots hold: those of operators that have unfinished tasks."""
        whole = graph.whole(finished)
        return [task for task, spec, _ in graph.tasks() if task in finished and spec.name not in whole]

    def may_finish(self, ended: Sequence[TaskId], finished: Sequence[TaskId]) -> list[TaskId]:
        """The tasks that may finish: they acknowledged a complete checkpoint after all their input."""
        return [task for task in ended if task not in finished]

    def excuses(self, pending: Pending, task: TaskId) -> bool:
        """Whether a pending checkpoint goes on without a task that has finished: an older one covers all its work
        (FIN-8)."""
        return True


class Ending(Part):
    """How a job comes to its end (FIN-3, FIN-4)."""

    def sends_again(self) -> bool:
        """Whether the order to finish is sent again until the task has finished: the last message must not be lost."""
        return True

    def ends_input(self, ending: str) -> bool:
        """Whether a source's input ends before its last barrier: in a drain alone (FIN-4, FIN-5)."""
        return ending == "drain"
