"""The numbers of attempts, by which everybody recognises what is of the past (ABS-6).

Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (arXiv:1506.08603), section 4.4, restarts
the whole dataflow after a failure.  Each such deployment has a number here, and so has each deployment of a part of it.
The numbers increase over jobs and coordinators.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..vocabulary.effects import SendToTask
from ..vocabulary.ids import AttemptId, TaskId
from ..vocabulary.messages import ToTask


class Attempts:
    """The attempt numbers of one job's tasks.  Tasks that a partial failover did not restart keep an older one.

    If attempt 3 starts all tasks and task B is then restarted alone, B has number 4.  It runs in attempt 4 with the
    others, which keep number 3: `newest` is 4, and `newest_full` is 3.
    """

    def __init__(self, latest: AttemptId, *, channels_stay: bool) -> None:
        """`latest` is the number of the latest attempt so far.  `channels_stay`: a task that restarts alone gets the
        channels that were there (UNA-4)."""
        self.newest = latest
        self._newest_full = latest
        self._channels_stay = channels_stay
        self._older: dict[TaskId, AttemptId] = {}

    def take_over(self, latest: AttemptId) -> None:
        """Another coordinator has counted so far."""
        self.newest = latest

    def begin(self, survivors: Iterable[TaskId] = ()) -> None:
        """Give a new number to all tasks but the survivors."""
        self._older = {task: self.number_of(task) for task in survivors}
        self.newest = AttemptId(self.newest + 1)

    def all_deployed(self) -> AttemptId:
        """All tasks are ordered to start, with new channels."""
        self._newest_full = self.newest
        return self._newest_full

    @property
    def newest_full(self) -> AttemptId:
        """The newest attempt in which all tasks started."""
        return self._newest_full

    def number_of(self, task: TaskId) -> AttemptId:
        """The attempt number of a task at present."""
        return self._older.get(task, self.newest)

    def number_in(self, attempt: AttemptId, task: TaskId) -> AttemptId:
        """The number of a task in a pending checkpoint that was triggered when `attempt` was the newest.  A partial
        failover aborts all pending checkpoints, so the numbers are those of that moment."""
        return self._older.get(task, attempt)

    def channels_of(self, task: TaskId) -> AttemptId:
        """The attempt to which a task's input channels belong."""
        return self._newest_full if self._channels_stay else self.number_of(task)

    def message_to(self, task: TaskId, message: ToTask) -> SendToTask:
        """A message of the newest attempt, to a task that may have an older number."""
        attempt = self._older.get(task)
        return SendToTask(task, message if attempt is None else msgspec.structs.replace(message, attempt=attempt))
