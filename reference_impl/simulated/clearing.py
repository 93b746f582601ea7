"""When all that nobody needs is deleted.

A coordinator deletes what it has given up when the next checkpoint completes, and again each
time, since a task that was out of reach may write late and its acknowledgement may be lost.
A job that nothing ends would go on with that for ever.  A run of it that is cut off between a
late write, or a checkpoint given up, and the next completion would show as left over what is
only still to be deleted.
"""

from __future__ import annotations

from .loop import Loop
from .storage import SnapshotFiles


class Clearing:
    """What happened since the newest checkpoint completed that another has to clear up behind."""

    def __init__(self, loop: Loop, files: SnapshotFiles) -> None:
        self._loop = loop
        self._files = files
        self._completed = 0
        """the step in which it completed; what that made the coordinator give up it has discarded in the same step"""
        self._given_up = 0
        """the step in which a checkpoint was given up last"""
        self._written = 0
        """the files that had been written when it completed"""

    def completed(self) -> None:
        self._completed = self._loop.steps
        self._written = self._files.written

    def given_up(self) -> None:
        self._given_up = self._loop.steps

    @property
    def is_done(self) -> bool:
        """Nothing was written or given up since."""
        return self._given_up <= self._completed and self._files.written == self._written
