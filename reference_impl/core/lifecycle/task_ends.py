"""How far each task has come to its end (FIN-1, FIN-8).

This is from FLIP-147 ("Support Checkpoints After Tasks Finished"; its post, "Revise the Process of Finishing").  A task
runs until all its input has ended.  It may finish once a complete checkpoint covers all its work (FIN-1).  Then it
commits, finishes, and says so (FIN-3).  It counts as finished when every task that sends to it does (FIN-8): the report
of a sender may be late or lost, and a snapshot must not have a task as finished, and its sender as running.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..job.topology import JobGraph
from ..vocabulary.ids import CheckpointId, TaskId


class InputToCome(msgspec.Struct, frozen=True):
    """Some of its input may be still to come."""


class InputProcessed(msgspec.Struct, frozen=True):
    """All its input has ended and is processed."""


class OrderedToFinish(msgspec.Struct, frozen=True):
    """It was ordered to finish, since this complete checkpoint covers all its work."""

    checkpoint: CheckpointId


class ReportedFinished(msgspec.Struct, frozen=True):
    """It has finished; a task that sends to it has not said so yet."""

    rests_on: CheckpointId | None
    """the checkpoint that covers all its work; None: it was never ordered to finish"""


class CountsAsFinished(msgspec.Struct, frozen=True):
    """It counts as finished, with all tasks that send to it."""


TaskEnd = InputToCome | InputProcessed | OrderedToFinish | ReportedFinished | CountsAsFinished


class TaskEnds:
    """One `TaskEnd` for each task of the present attempt, in the order in which the tasks came to it."""

    def __init__(self, graph: JobGraph) -> None:
        self._graph = graph
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._ends: dict[TaskId, TaskEnd] = dict.fromkeys(self._tasks, InputToCome())
        self.finished: tuple[TaskId, ...] = ()
        """the tasks that count as finished"""

    def begin(self, finished: Sequence[TaskId]) -> None:
        """An attempt begins; `finished` are those that had finished in the snapshot that it restores."""
        self.begin_region(self._tasks, finished)

    def begin_region(self, region: Sequence[TaskId], finished: Sequence[TaskId]) -> None:
        """A region begins again, from a snapshot in which `finished` tasks had finished."""
        for task in region:
            self._enter(task, InputToCome())
        for task in finished:
            if task in region:
                self._enter(task, CountsAsFinished())

    def _enter(self, task: TaskId, end: TaskEnd) -> None:
        before = self._ends.pop(task)
        self._ends[task] = end
        if isinstance(before, CountsAsFinished) or isinstance(end, CountsAsFinished):
            self.finished = tuple(one for one, its in self._ends.items() if isinstance(its, CountsAsFinished))

    # -- what is known ---------------------------------------------------------------

    @property
    def all_input_has_ended(self) -> bool:
        return InputToCome not in map(type, self._ends.values())

    @property
    def some_input_has_ended(self) -> bool:
        return not all(isinstance(end, InputToCome) for end in self._ends.values())

    @property
    def unfinished(self) -> tuple[TaskId, ...]:
        """The other tasks, in topological order."""
        return tuple(task for task in self._tasks if task not in self.finished)

    @property
    def ordered_to_finish(self) -> dict[TaskId, CheckpointId]:
        """The tasks that were ordered to finish and have not reported, each with the checkpoint it rests on."""
        return {task: end.checkpoint for task, end in self._ends.items() if isinstance(end, OrderedToFinish)}

    def awaits_input(self, task: TaskId) -> bool:
        return isinstance(self._ends[task], InputToCome)

    def may_have_sent_its_end(self, task: TaskId) -> bool:
        return not isinstance(self._ends[task], InputToCome | InputProcessed)

    # -- steps towards the end ---------------------------------------------------------

    def end_input(self, task: TaskId) -> None:
        """All input of a task has ended."""
        if self.awaits_input(task):
            self._enter(task, InputProcessed())

    def order_to_finish(self, ended: Sequence[TaskId], checkpoint: CheckpointId) -> list[TaskId]:
        """A checkpoint is complete: of the tasks whose input had `ended` before it, which may finish now (FIN-1).

        Without alignment the end of a sender may overtake its barrier, so that a task had all its input before a
        checkpoint, and its sender had not.  Such a task stays: it could not take part in the checkpoint that covers its
        sender's end, and no sender finishes without that one.
        """
        going = []
        for task in self._tasks:
            if task not in ended or self.may_have_sent_its_end(task):
                continue
            if all(self.may_have_sent_its_end(sender) for sender in self._graph.senders(task)):
                self._enter(task, OrderedToFinish(checkpoint))
                going.append(task)
        return going

    def reported(self, task: TaskId) -> None:
        """A task has reported that it has finished."""
        end = self._ends[task]
        if not isinstance(end, ReportedFinished | CountsAsFinished):
            self._enter(task, ReportedFinished(end.checkpoint if isinstance(end, OrderedToFinish) else None))

    def count_next_finished(self) -> tuple[TaskId, CheckpointId | None] | None:
        """The next task that counts as finished from now on, and the checkpoint that covers its work."""
        for task in self._tasks:
            end = self._ends[task]
            if isinstance(end, ReportedFinished) and set(self._graph.senders(task)).issubset(self.finished):
                self._enter(task, CountsAsFinished())
                return task, end.rests_on
        return None
