"""How many jobs refer to one file of a store (SNAP-5): a file is deleted once no job refers to it."""

from __future__ import annotations

from ..part import Part


class References(Part):
    """The jobs that refer to one file, each by its number in the store; 0 is the job from which all others were forked.

    A job counts the references of its own snapshots (`Increments`), and knows nothing of other jobs.  So the store
    knows the jobs, as a file system knows the names of a file.
    """

    def added(self, jobs: tuple[int, ...], job: int) -> tuple[int, ...]:
        """Who refers to the file once another job does, too."""
        return (*jobs, job)

    def removed(self, jobs: tuple[int, ...], job: int) -> tuple[int, ...]:
        """Who refers to the file once a job needs it no more; if nobody does, the file is deleted."""
        return tuple(other for other in jobs if other != job)
