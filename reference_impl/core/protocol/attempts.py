"""The numbers of attempts, by which everybody recognises what is of the past (ABS-6).

Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (arXiv:1506.08603), section 4.4, restarts
the whole dataflow after a failure.  Each such deployment has a number here, and so has each deployment of a part of it.
The numbers increase over jobs and coordinators.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..vocabulary.effects import SendToTask
from ..vocabulary.errors import ProtocolViolated
from ..vocabulary.ids import AttemptId, TaskId
from ..vocabulary.messages import ToTask


class Attempts:
    """The attempt numbers of one job's tasks.  Tasks that a partial failover did not restart keep an older one.

    If attempt 3 starts all tasks and task B is then restarted alone, B has number 4.  It runs in attempt 4 with the
    others, which keep number 3: `newest` is 4, and `newest_full` is 3.
    """

    def __init__(self, first: AttemptId, *, channels_stay: bool) -> None:
        """`first` is the number of the first attempt.  `channels_stay`: a task that restarts alone gets the channels
        that were there (UNA-4)."""
        self._next = first
        self._newest: AttemptId | None = None
        self._newest_full: AttemptId | None = None
        self._channels_stay = channels_stay
        self._older: dict[TaskId, AttemptId] = {}

    def take_over(self, latest: AttemptId) -> None:
        """Another coordinator has counted so far."""
        self._newest, self._next = latest, AttemptId(latest + 1)

    @property
    def has_begun(self) -> bool:
        """Whether there is an attempt, of this coordinator or of the one from which it took over."""
        return self._newest is not None

    @property
    def newest(self) -> AttemptId:
        """Raises ProtocolViolated before the first attempt has begun, as all that is asked of it does."""
        return _begun(self._newest)

    def begin(self, survivors: Iterable[TaskId] = ()) -> None:
        """Give a new number to all tasks but the survivors."""
        self._older = {task: self.number_of(task) for task in survivors}
        self._newest, self._next = self._next, AttemptId(self._next + 1)

    def all_deployed(self) -> AttemptId:
        """All tasks are ordered to start, with new channels."""
        self._newest_full = newest = self.newest
        return newest

    @property
    def newest_full(self) -> AttemptId:
        """The newest attempt in which all tasks started."""
        return _begun(self._newest_full)

    def number_of(self, task: TaskId) -> AttemptId:
        """The attempt number of a task at present."""
        return self._older.get(task, self.newest)

    def number_in(self, attempt: AttemptId, task: TaskId) -> AttemptId:
        """The number of a task in a pending checkpoint that was triggered when `attempt` was the newest.  A partial
        failover aborts all pending checkpoints, so the numbers are those of that moment."""
        return self._older.get(task, attempt)

    def channels_of(self, task: TaskId) -> AttemptId | None:
        """The attempt to which a task's input channels belong; None after a takeover, until this coordinator has
        deployed all tasks: the former one alone knew it."""
        return self._newest_full if self._channels_stay else self.number_of(task)

    def message_to(self, task: TaskId, message: ToTask) -> SendToTask:
        """A message of the newest attempt, to a task that may have an older number."""
        attempt = self._older.get(task)
        return SendToTask(task, message if attempt is None else msgspec.structs.replace(message, attempt=attempt))


def _begun(attempt: AttemptId | None) -> AttemptId:
    if attempt is None:
        raise ProtocolViolated("no attempt of the job has begun")
    return attempt
