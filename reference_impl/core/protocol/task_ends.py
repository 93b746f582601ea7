"""How far the tasks of an attempt have come towards their end (FIN-1, FIN-3, FIN-8).

A task runs until all its input has ended.  It may leave once a complete checkpoint covers all its work.  Then it
commits, finishes, and says so.  It counts as finished when every task that sends to it does: the report of a
sender may be late or lost, and a snapshot must not have a task as finished, and its sender as running.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..job.topology import JobGraph
from ..vocabulary.ids import CheckpointId, TaskId


class Running(msgspec.Struct, frozen=True):
    """Some of its input may be still to come."""


class InputEnded(msgspec.Struct, frozen=True):
    """All its input has ended and is processed."""


class MayLeave(msgspec.Struct, frozen=True):
    """It was ordered to finish, since this complete checkpoint covers all its work."""

    checkpoint: CheckpointId


class Reported(msgspec.Struct, frozen=True):
    """It has finished; a task that sends to it has not said so yet."""

    rests_on: CheckpointId | None
    """the checkpoint that covers all its work; None: it was never ordered to finish"""


class Finished(msgspec.Struct, frozen=True):
    """It counts as finished, with all tasks that send to it."""


TaskLife = Running | InputEnded | MayLeave | Reported | Finished


class TaskEnds:
    """One `TaskLife` for each task of the present attempt, in the order in which the tasks came to it."""

    def __init__(self, graph: JobGraph) -> None:
        self._graph = graph
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._lives: dict[TaskId, TaskLife] = dict.fromkeys(self._tasks, Running())
        self.finished: tuple[TaskId, ...] = ()
        """the tasks that count as finished"""

    def begin(self, finished: Sequence[TaskId]) -> None:
        """An attempt begins; `finished` are those that had finished in the snapshot that it restores."""
        self.begin_part(self._tasks, finished)

    def begin_part(self, part: Sequence[TaskId], finished: Sequence[TaskId]) -> None:
        """A part begins again, from a snapshot in which `finished` tasks had finished."""
        for task in part:
            self._enter(task, Running())
        for task in finished:
            if task in part:
                self._enter(task, Finished())

    def _enter(self, task: TaskId, life: TaskLife) -> None:
        before = self._lives.pop(task)
        self._lives[task] = life
        if isinstance(before, Finished) or isinstance(life, Finished):
            self.finished = tuple(one for one, its in self._lives.items() if isinstance(its, Finished))

    # -- what is known ---------------------------------------------------------------

    @property
    def all_input_has_ended(self) -> bool:
        return not any(isinstance(life, Running) for life in self._lives.values())

    @property
    def some_input_has_ended(self) -> bool:
        return not all(isinstance(life, Running) for life in self._lives.values())

    @property
    def leaving(self) -> dict[TaskId, CheckpointId]:
        """The tasks that were ordered to finish and have not reported, each with the checkpoint it rests on."""
        return {task: life.checkpoint for task, life in self._lives.items() if isinstance(life, MayLeave)}

    def may_have_sent_its_end(self, task: TaskId) -> bool:
        return not isinstance(self._lives[task], Running | InputEnded)

    # -- steps towards the end ---------------------------------------------------------

    def input_ended(self, task: TaskId) -> bool:
        """All input of a task has ended; whether that is news."""
        if not isinstance(self._lives[task], Running):
            return False
        self._enter(task, InputEnded())
        return True

    def let_leave(self, ended: Sequence[TaskId], checkpoint: CheckpointId) -> list[TaskId]:
        """A checkpoint is complete; those of the tasks that ended before it which are to finish now (FIN-1)."""
        going = [task for task in ended if not self.may_have_sent_its_end(task)]
        for task in going:
            self._enter(task, MayLeave(checkpoint))
        return going

    def reported(self, task: TaskId) -> None:
        """A task has reported that it has finished."""
        life = self._lives[task]
        if not isinstance(life, Reported | Finished):
            self._enter(task, Reported(life.checkpoint if isinstance(life, MayLeave) else None))

    def count_next(self) -> tuple[TaskId, CheckpointId | None] | None:
        """The next task that counts as finished from now on, and the checkpoint that covers its work."""
        for task in self._tasks:
            life = self._lives[task]
            if isinstance(life, Reported) and set(self._graph.senders(task)).issubset(self.finished):
                self._enter(task, Finished())
                return task, life.rests_on
        return None
