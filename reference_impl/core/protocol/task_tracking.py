"""The tasks as their coordinator knows them: the numbers of their attempts, and how far each has come to its end.

Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (arXiv:1506.08603), section 4.4, restarts
the whole dataflow after a failure.  Each such deployment has a number here, and so has each deployment of a part of it.
By the numbers everybody recognises what is of the past (ABS-6).  They increase over jobs and coordinators.

How tasks finish is from FLIP-147 ("Support Checkpoints After Tasks Finished"; its post, "Revise the Process of
Finishing").  A task runs until all its input has ended.  It may finish once a complete checkpoint covers all its work
(FIN-1).  Then it commits, finishes, and says so (FIN-3).  It counts as finished when every task that sends to it does
(FIN-8): the report of a sender may be late or lost, and a snapshot must not have a task as finished, and its sender as
running.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..job.topology import JobGraph
from ..vocabulary.effects import SendToTask
from ..vocabulary.ids import AttemptId, CheckpointId, TaskId
from ..vocabulary.messages import ToTask


class Attempts:
    """The numbers of one job's tasks.  Tasks that a partial failover did not restart keep an older one."""

    def __init__(self, latest: AttemptId, *, channels_stay: bool) -> None:
        """`latest` is the number of the latest attempt so far.  `channels_stay`: a task that restarts alone gets the
        channels that were there (UNA-4)."""
        self.newest = latest
        self._whole = latest
        self._channels_stay = channels_stay
        self._older: dict[TaskId, AttemptId] = {}

    def take_over(self, latest: AttemptId) -> None:
        """Another coordinator has counted so far."""
        self.newest = latest

    def begin(self, survivors: Iterable[TaskId] = ()) -> None:
        """Give a new number to all tasks but the survivors."""
        self._older = {task: self.of(task) for task in survivors}
        self.newest = AttemptId(self.newest + 1)

    def deployed_as_a_whole(self) -> AttemptId:
        """All tasks are ordered to start, with new channels."""
        self._whole = self.newest
        return self._whole

    @property
    def whole(self) -> AttemptId:
        """The newest attempt in which all tasks started."""
        return self._whole

    def of(self, task: TaskId) -> AttemptId:
        return self._older.get(task, self.newest)

    def within(self, attempt: AttemptId, task: TaskId) -> AttemptId:
        """The attempt number of a task in a checkpoint that was taken under `attempt`."""
        return self._older.get(task, attempt)

    def channels_of(self, task: TaskId) -> AttemptId:
        """The attempt to which a task's input channels belong."""
        return self._whole if self._channels_stay else self.of(task)

    def message_to(self, task: TaskId, message: ToTask) -> SendToTask:
        """A message of the newest attempt, to a task that may have an older number."""
        attempt = self._older.get(task)
        return SendToTask(task, message if attempt is None else msgspec.structs.replace(message, attempt=attempt))


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
        self.begin_part(self._tasks, finished)

    def begin_part(self, part: Sequence[TaskId], finished: Sequence[TaskId]) -> None:
        """A part begins again, from a snapshot in which `finished` tasks had finished."""
        for task in part:
            self._enter(task, InputToCome())
        for task in finished:
            if task in part:
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
        """A checkpoint is complete: of the tasks whose input had `ended` before it, which may finish now (FIN-1)."""
        going = [task for task in ended if not self.may_have_sent_its_end(task)]
        for task in going:
            self._enter(task, OrderedToFinish(checkpoint))
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
