"""Known failures: a file that keeps a nightly job green for a bug one knows, until a date.

    [[failure]]
    invariant = "exactly-once"
    difference = "repeated row"       # optional: the kind of difference
    point = "commit-requested"        # optional: the point or fault it happens at
    subject = "my.engine:Engine"      # optional
    expires = 2026-12-31              # after this day it is red again
    reason = "ENGINE-123, fixed in 2.4"

A failure that the file does not know is red, and so is one whose day has passed.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec

from ..runtime.exit_codes import UsageError
from ..scenario.reading import toml_of

FILE = "known-failures.toml"
WHAT = "a file of known failures"
FORM = "it has a table [[failure]] for each, with invariant, expires and reason"


class KnownFailure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One failure that is expected until a day; a field that is left empty matches any failure."""

    invariant: str
    expires: datetime.date
    reason: str
    difference: str = ""
    point: str = ""
    subject: str = ""

    def matches(self, cause: Cause) -> bool:
        return (
            self.invariant == cause.invariant
            and self.difference in ("", cause.difference)
            and self.point in ("", cause.point)
            and self.subject in ("", cause.subject)
        )


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """What failures are grouped by: one bug is one cause."""

    invariant: str
    difference: str = ""
    """the kind of difference, as in `Violated`"""
    point: str = ""
    """the protocol point, or the fault, that the failure needs"""
    subject: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    failure: list[KnownFailure] = []


class KnownFailures:
    """The known failures of a file, as they apply on one day."""

    def __init__(self, failures: list[KnownFailure], today: datetime.date) -> None:
        self._failures = failures
        self._today = today

    def match(self, cause: Cause) -> KnownFailure | None:
        """The known failure that matches and has not expired."""
        return next((known for known in self._failures if known.matches(cause) and self._today <= known.expires), None)

    def reason(self, cause: Cause) -> str:
        """Why the failure is expected; empty if it is not known, or has expired."""
        known = self.match(cause)
        return f"{known.reason} (known until {known.expires})" if known is not None else ""

    def expired(self, cause: Cause) -> str:
        """Why the failure was expected, if it is known and its day has passed; else empty."""
        for known in self._failures:
            if known.matches(cause) and self._today > known.expires:
                return f"{known.reason} (expired on {known.expires})"
        return ""


def default() -> Path | None:
    """The file in the working folder, if there is one."""
    path = Path(FILE)
    return path if path.is_file() else None


def read(path: Path | None, today: datetime.date | None = None) -> KnownFailures:
    """The file's failures; none without a path.  Raises UsageError in one line."""
    today = today or datetime.datetime.now(tz=datetime.UTC).date()
    if path is None:
        return KnownFailures([], today)
    if not path.exists():
        raise UsageError(f"there is no file of known failures {path}")
    table = toml_of(path, WHAT)
    try:
        decoded = msgspec.convert(table, _File)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} is not {WHAT}: {error}; {FORM}") from error
    for number, known in enumerate(decoded.failure, start=1):
        if not known.reason.strip():
            raise UsageError(f"{path}, failure {number}: it needs a reason")
    return KnownFailures(decoded.failure, today)
