"""Whom a control message is for: nothing of a former job reaches the one that follows (ABS-6).

A job that is resumed is another job than the one before.  Its tasks mostly have the same names, and
what was under way when the former ended arrives as if nothing had happened.  Two numbers keep it out.
The attempt does within a job: attempts are counted on over jobs, and a message that names one that is
gone finds nobody.  But a deployment finds nobody by its nature, for it brings its attempt up; so every
message names its job too, and is nobody's once that is over.
"""

from __future__ import annotations

from .ids import AttemptId
from .messages import ToTask
from .part import Part


class Fencing(Part):
    """The attempt of a task that receives a message."""

    def addressed(self, message: ToTask, job: int, newest: AttemptId) -> AttemptId | None:
        """The attempt that a message is for while `job` runs, the newest of the task being `newest` (0: none lives);
        None: nobody, for it is of another job."""
        return message.attempt if message.job == job else None
