"""Which attempt a control message is for: nothing of a former job reaches the job that resumes it (ABS-6).

A resumed job mostly has tasks of the same names, and messages of the former job may
arrive after its end.  Two numbers keep them out.  Attempts are counted on over jobs, so a
message for a past attempt finds no receiver.  A deployment, however, creates its attempt.
So every message also names its job, and is dropped once that job is over.  Of the same job, a late deployment
is ignored by the node that has a newer attempt of the task (`come_up`).
"""

from __future__ import annotations

from ..vocabulary.ids import AttemptId
from ..vocabulary.messages import ToTask
from .part import Part


class Fencing(Part):
    """Which attempt a message is for; the driver finds out whether that attempt lives."""

    def addressed(self, message: ToTask, job: int, newest: AttemptId | None) -> AttemptId | None:
        """The attempt that a message is for, while `job` runs; None if it is of another job.  `newest` is the newest
        attempt of the receiving task (None: none lives)."""
        return message.attempt if message.job == job else None
