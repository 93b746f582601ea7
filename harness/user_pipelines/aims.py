"""Moments and values of a pipeline that can be seen from outside."""

from __future__ import annotations

import contextlib
import glob
import http.client
import json
import re
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from ..subject.port import SubjectFailed
from .description import Aim
from .entries import EntryFailed
from .output.formats import NotReadable, NotThere, query
from .places import filled, filled_pattern

ANSWERS_WITHIN_S = 1.0
Value = int | float | str
"""what a counter may have"""
LONGEST = 60
"""how many characters of a text are kept as a value"""
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
            return bool(self._query())
        if self.aim.url:
            return bool(self._answer())
        return self._files()

    def value(self, printed: Callable[[], str]) -> Value | None:
        """What is there now; None if nothing is.  It is the query's first value, the value in the answer of a URL (of a
        list, how long it is), how many files match (with `without`: those without another of the same name), or what
        the group of `log` was in the last line that matches (without a group: how many lines match)."""
        if self._pattern is not None:
            found = list(self._pattern.finditer(printed()))
            if not self._pattern.groups:
                return len(found)
            return _number(found[-1][1]) if found else None
        if self.aim.query:
            return _simple(self._query())
        if self.aim.url:
            return _simple(self._answer())
        return len(_names(self._matching(self.aim.files)) - _names(self._matching(self.aim.without)))

    def _answer(self) -> Any:
        return at_path(answer_of(filled(self.aim.url, self._places)), self.aim.json)

    def _query(self) -> Any:
        try:
            rows = query(filled(self.aim.database, self._places), filled(self.aim.query, self._places))
        except (NotReadable, NotThere):
            return None
        except SubjectFailed as error:
            raise EntryFailed("aims", f"the query {self.aim.query!r}: {error}") from None
        return next(iter(rows[0].values()), None) if rows else None

    def _files(self) -> bool:
        found = sorted(self._matching(self.aim.files), key=_age)
        if not found or not self.aim.without:
            return bool(found)
        return Path(found[-1]).name not in _names(self._matching(self.aim.without))

    def _matching(self, pattern: str) -> list[str]:
        return glob.glob(filled_pattern(pattern, self._places), recursive=True) if pattern else []


def answer_of(url: str) -> Any:
    """The JSON that a URL answers with; None if it cannot be had just now."""
    try:
        with _DIRECTLY.open(url, timeout=ANSWERS_WITHIN_S) as answer:
            return json.load(answer)
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
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


def _names(paths: Iterable[str]) -> set[str]:
    return {Path(one).name for one in paths}


def _simple(found: Any) -> Value | None:
    """A value of a database or of JSON as a number or a short text."""
    if isinstance(found, bool):
        return int(found)
    if isinstance(found, list | dict):
        return len(found)
    return None if found is None else _number(str(found))


def _number(text: str | None) -> Value | None:
    """A text as the number that it writes, if it writes one that every reader of JSON can read."""
    for convert in (int, float):
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            if isfinite(found := convert(text or "")):
                return found
    return text[:LONGEST] if text else None


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
