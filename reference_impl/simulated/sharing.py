"""Files of snapshots to which several jobs refer: a job that is forked by reference, and its origin.

Each job has its own list of names, and knows of no other.  Behind equal names that a fork was begun with is one file.
The store deletes it once no job refers to it, or once the count of its references says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.decisions.snapshots.references import References
from ..core.vocabulary.ids import Handle

ORIGIN = 0
"""the number of the first job"""
Names = dict[Handle, bytes]
"""the files of one job"""


class Sharing:
    """The references of several jobs to files of one store."""

    def __init__(self, references: References, origin: Names) -> None:
        self._references = references
        self._jobs: list[Names] = [origin]
        self._referring: dict[Handle, tuple[int, ...]] = {}
        """by file to which another job than the origin refers, or did: the jobs that refer to it"""
        self._left: Names = {}

    def begin(self, needed: Iterable[Handle]) -> Names:
        """The files of another job, which begins with references to some files of the origin."""
        origin = self._jobs[0]
        names = {name: origin[name] for name in dict.fromkeys(needed) if name in origin}
        for name in names:
            before = self._referring.get(name, (ORIGIN,))
            self._referring[name] = self._references.added(before, len(self._jobs))
        self._jobs.append(names)
        return names

    def let_go(self, names: Names, name: Handle) -> None:
        """A job does not refer to a file any more."""
        data = names.pop(name)
        if name not in self._referring:
            return
        job = next(number for number, one in enumerate(self._jobs) if one is names)
        referring = self._references.removed(self._referring[name], job)
        if referring:
            self._referring[name] = referring
            if not any(name in job for job in self._jobs):
                self._left[name] = data
            return
        del self._referring[name]
        for one in self._jobs:
            one.pop(name, None)

    @property
    def left(self) -> Names:
        """The files that are still there, though no job refers to them."""
        return self._left
