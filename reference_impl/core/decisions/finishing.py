"""How tasks finish, and how a job comes to its end (FIN-1 to FIN-9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..job.topology import JobGraph
from ..vocabulary.effects import Effect, SetTimer
from ..vocabulary.ids import TaskId
from ..vocabulary.messages import Control, Terminate, Trigger
from ..vocabulary.timeouts import Timeout
from .part import Part

if TYPE_CHECKING:
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

    def still_expected(self, expected: Sequence[TaskId], finished: TaskId) -> tuple[TaskId, ...]:
        """The tasks whose acknowledgements a pending checkpoint awaits once one has finished: all others, since an
        older checkpoint covers all its work (FIN-8)."""
        return tuple(task for task in expected if task != finished)


class Ending(Part):
    """How a job comes to its end (FIN-3, FIN-4)."""

    def reminders(self, timeout: Timeout, retry_us: int) -> list[Effect]:
        """What follows an order to finish: it is sent again until the task has finished, since the last message must
        not be lost."""
        return [SetTimer(timeout, retry_us)]

    def ends_input(self, ending: str) -> bool:
        """Whether a source's input ends before its last barrier: in a drain alone (FIN-4, FIN-5)."""
        return ending == "drain"
