"""Moments of a pipeline that can be seen from outside."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from .description import Aim, filled
from .output import NotReadable, NotThere, query


class Lookout:
    """Looks whether an aim is met, in one run; `log` is the log of the process that runs now, and `since` the place in
    it at which that process began."""

    def __init__(self, aim: Aim, places: dict[str, str]) -> None:
        self._aim = aim
        self._places = places
        self._pattern = re.compile(aim.log, re.MULTILINE) if aim.log else None

    def sees(self, log: Path, since: int) -> bool:
        """Whether the aim's predicate holds now."""
        if self._pattern is not None:
            return bool(self._pattern.search(tail(log, since)))
        if self._aim.query:
            try:
                rows = query(filled(self._aim.database, self._places), filled(self._aim.query, self._places))
            except (NotReadable, NotThere):
                return False
            first = next(iter(rows[0].values()), None) if rows else None
            return first not in (None, 0, "")
        found = sorted(glob.glob(filled(self._aim.files, self._places), recursive=True), key=_age)
        if not found or not self._aim.without:
            return bool(found)
        others = {Path(one).name for one in glob.glob(filled(self._aim.without, self._places), recursive=True)}
        return Path(found[-1]).name not in others


def _age(name: str) -> tuple[int, str]:
    """The time of a file's last change, for sorting; one that has gone comes first."""
    try:
        return Path(name).stat().st_mtime_ns, name
    except OSError:
        return 0, name


def tail(log: Path, since: int) -> str:
    """What was printed since; a line may follow a progress bar, which a carriage return has wiped out."""
    try:
        with log.open("rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace").replace("\r", "\n")
    except OSError:
        return ""
