"""What must not be left of a pipeline that is at rest: temporary files, open transactions, whatever its file can list.

It is looked for while the pipeline stands still and can still be asked, before its processes are ended.  What a live
process has for a moment is no leak: only what every look shows counts.
"""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..subject.port import SubjectFailed
from .description import Leaks
from .entries import EntryFailed
from .output.formats import NotReadable, query
from .places import filled, filled_pattern

GONE_WITHIN_S = 2.0
"""what a pipeline at rest still has after so long stays"""
ANSWERS_WITHIN_S = 30.0
"""how long the database may be out of reach"""
NAMED = 200
"""how many characters of a name are kept"""


class Listing:
    """What must not be left, in one run."""

    def __init__(self, leaks: Leaks, places: Mapping[str, str], folder: Path) -> None:
        """Files in `folder`, the run's own, are named as they are in it."""
        self._leaks = leaks
        self._places = places
        self._folder = folder
        self.left: list[str] = []
        """the names of what was left, once the run is over"""

    def look(self, wait: Callable[[], None]) -> None:
        """Look until nothing is left, for a while; raises SubjectFailed if the query cannot be asked."""
        began = time.monotonic()
        self.left = self._now(wait)
        while self.left and time.monotonic() < began + GONE_WITHIN_S:
            wait()
            now = self._now(wait)
            self.left = [name for name in self.left if name in now]

    def _now(self, wait: Callable[[], None]) -> list[str]:
        found = [one for pattern in self._leaks.files for one in glob.glob(self._filled(pattern), recursive=True)]
        return [*sorted(map(self._named, found)), *(self._asked(wait) if self._leaks.query else ())]

    def _filled(self, pattern: str) -> str:
        return filled_pattern(pattern, self._places)

    def _named(self, file: str) -> str:
        return file.removeprefix(f"{self._folder}/")

    def _asked(self, wait: Callable[[], None]) -> list[str]:
        """Each row of the query's answer."""
        database, text = filled(self._leaks.database, self._places), filled(self._leaks.query, self._places)
        deadline = time.monotonic() + ANSWERS_WITHIN_S
        while True:
            try:
                return [", ".join(map(str, row.values()))[:NAMED] for row in query(database, text)]
            except NotReadable as error:
                if time.monotonic() > deadline:
                    raise EntryFailed("leaks.query", error) from None
            except SubjectFailed as error:
                raise EntryFailed("leaks.query", error) from None
            wait()
