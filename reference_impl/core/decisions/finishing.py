"""How tasks finish, and how a job comes to its end (FIN-1 to FIN-9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..vocabulary.ids import TaskId
from ..vocabulary.messages import Control, Element, Finished, Terminate, ToCoordinator, Trigger
from .part import Part

if TYPE_CHECKING:
    from ..job.topology import JobGraph
    from ..protocol.checkpoints import Pending


class Finishing(Part):
    """How a task finishes, and how a finished task is deployed again (FIN-1, FIN-3)."""

    def ends_again(self, ends: Sequence[Element]) -> Sequence[Element]:
        """What a task that had finished before the restored snapshot sends downstream: its ends, and nothing else."""
        return ends

    def dropped(self, left_open: str | None) -> str | None:
        """The transaction that a sink aborts before it finishes: the one `left_open`; no other task would."""
        return left_open

    def answer(self, message: Control, finished: Finished) -> ToCoordinator | None:
        """The answer of a finished task to a message: the coordinator may not have received that it has finished."""
        return finished if isinstance(message, Trigger | Terminate) else None

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
