"""How many jobs refer to one file of a store (SNAP-5): a file is deleted once no job refers to it."""

from __future__ import annotations

from .part import Part


class References(Part):
    """The count of the jobs that refer to one file.

    A job counts the references of its own snapshots (`Increments`), and knows nothing of other jobs.  So the store
    counts jobs, as a file system counts the names of a file.
    """

    def added(self, count: int) -> int:
        """The count once another job refers to the file, too."""
        return count + 1

    def removed(self, count: int, *, forked: bool) -> int:
        """The count once a job needs the file no more; with 0 the file is deleted.  `forked`: it is a job that was
        begun with the files of another one."""
        return count - 1
