"""When everything that nobody needs is deleted.

When a checkpoint completes, the coordinator deletes what it has left of aborted ones.  It does so again with each later
checkpoint, since a task that was unreachable may write late, and its acknowledgement may be lost.  In a job without an
end that would go on for ever.  If a run of such a job is cut off after a late write, or after a checkpoint was
aborted, and before the next completion, files remain that are only still to be deleted.
"""

from __future__ import annotations

from .loop import Loop
from .storage import SnapshotFiles


class Clearing:
    """What has happened since the newest checkpoint completed, and has to be deleted after the next one."""

    def __init__(self, loop: Loop, files: SnapshotFiles) -> None:
        self._loop = loop
        self._files = files
        self._completed = 0
        """the step in which it completed; what the coordinator aborted because of it was deleted in the same step"""
        self._aborted = 0
        """the step in which a checkpoint was last aborted"""
        self._written = 0
        """how many files had been written when it completed"""

    def completed(self) -> None:
        self._completed = self._loop.steps
        self._written = self._files.written

    def aborted(self) -> None:
        self._aborted = self._loop.steps

    @property
    def is_done(self) -> bool:
        """Nothing was written or aborted since."""
        return self._aborted <= self._completed and self._files.written == self._written
