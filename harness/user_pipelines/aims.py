"""Moments of a pipeline that can be seen from outside."""

from __future__ import annotations

import glob
import http.client
import json
import re
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..subject.port import SubjectFailed
from .description import Aim
from .output import NotReadable, NotThere, query
from .places import filled

ANSWERS_WITHIN_S = 1.0
_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""The servers of a pipeline run on this machine: what the environment says of proxies is not for them."""


class Lookout:
    """Looks whether an aim is met, in one run."""

    def __init__(self, aim: Aim, places: Mapping[str, str]) -> None:
        self.aim = aim
        self._places = places
        self._pattern = re.compile(aim.log, re.MULTILINE) if aim.log else None

    def sees(self, printed: Callable[[], str]) -> bool:
        """Whether the aim's predicate holds now; `printed` gives the lines in which `log` is looked for."""
        if self._pattern is not None:
            return bool(self._pattern.search(printed()))
        if self.aim.query:
            return self._query()
        if self.aim.url:
            return bool(at_path(answer_of(filled(self.aim.url, self._places)), self.aim.json))
        return self._files()

    def _query(self) -> bool:
        try:
            rows = query(filled(self.aim.database, self._places), filled(self.aim.query, self._places))
        except (NotReadable, NotThere):
            return False
        except SubjectFailed as error:
            raise SubjectFailed(f"aims: the query {self.aim.query!r}: {error}") from None
        return bool(next(iter(rows[0].values()), None) if rows else None)

    def _files(self) -> bool:
        found = sorted(glob.glob(filled(self.aim.files, self._places), recursive=True), key=_age)
        if not found or not self.aim.without:
            return bool(found)
        others = {Path(one).name for one in glob.glob(filled(self.aim.without, self._places), recursive=True)}
        return Path(found[-1]).name not in others


def answer_of(url: str) -> Any:
    """The JSON that a URL answers with; None if it cannot be had just now."""
    try:
        with _DIRECTLY.open(url, timeout=ANSWERS_WITHIN_S) as answer:
            return json.load(answer)
    except (OSError, ValueError, http.client.HTTPException):
        return None


def at_path(value: Any, path: str) -> Any:
    """What lies in a JSON value at names and positions with dots between them; None if nothing does."""
    for word in path.split("."):
        if isinstance(value, dict):
            value = value.get(word)
        elif isinstance(value, list) and word.isdecimal() and int(word) < len(value):
            value = value[int(word)]
        else:
            return None
    return value


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
