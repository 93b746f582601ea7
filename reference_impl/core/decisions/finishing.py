"""How tasks finish, and how a job comes to its end (FIN-1 to FIN-9)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ..job.topology import JobGraph
from ..vocabulary.ends import JobEnd
from ..vocabulary.ids import TaskId
from ..vocabulary.messages import (
    Control,
    Element,
    EndOfData,
    EndOfPartition,
    Finished,
    Terminate,
    ToCoordinator,
    Trigger,
)
from .part import Part

ENDS: tuple[Element, ...] = (EndOfData(), EndOfPartition())
"""The ends of a channel, in order."""


class Finishing(Part):
    """How a task finishes, and how a finished task is deployed again (FIN-1, FIN-3)."""

    def unsent_ends(self, sent: Sequence[Element]) -> tuple[Element, ...]:
        """The ends that a task still sends downstream when it finishes: those that its attempt has not `sent`.  A task
        that had finished before the restored snapshot has sent none, and sends nothing else."""
        return tuple(end for end in ENDS if end not in sent)

    def may_finish(self, unanswered: int, *, is_open: bool) -> bool:
        """Whether a sink may finish: once the store has answered all its requests, and no transaction of it is open.
        It first asks the store to abort an open one, since no other task would."""
        return not unanswered and not is_open

    def answer(self, message: Control, finished: Finished) -> ToCoordinator | None:
        """The answer of a finished task to a message: the coordinator may not have received that it has finished."""
        return finished if isinstance(message, Trigger | Terminate) else None

    def kept(self, graph: JobGraph, finished: Sequence[TaskId]) -> list[TaskId]:
        """The finished tasks whose last state later snapshots hold: those of operators that have unfinished tasks."""
        whole = graph.whole(finished)
        return [task for task, spec, _ in graph.tasks() if task in finished and spec.name not in whole]

    def still_expected(self, expected: Sequence[TaskId], finished: TaskId) -> tuple[TaskId, ...]:
        """The tasks whose acknowledgements a pending checkpoint awaits once one has finished: all others, since an
        older checkpoint covers all its work (FIN-8)."""
        return tuple(task for task in expected if task != finished)


class OrderStep(Enum):
    """One of the two steps in which tasks are ordered to finish."""

    send = "send"
    repeat_later = "repeat-later"
    """set the timer after which those that have not finished are ordered again"""


class Ending(Part):
    """How a job comes to its end (FIN-3, FIN-4)."""

    def steps(self) -> tuple[OrderStep, ...]:
        """The steps in order, both at once: no later message would make up for an order that is lost, so it is sent
        again until the task has finished."""
        return (OrderStep.send, OrderStep.repeat_later)

    def ends_input(self, ending: JobEnd) -> bool:
        """Whether a source's input ends before its last barrier: in a drain alone (FIN-4, FIN-5)."""
        return ending is JobEnd.DRAIN
