"""What a run's exit code says, and the errors that carry one.

Every error that a user can meet is one line: what is wrong, and what to do.
"""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """The exit codes of every verb."""

    HELD = 0
    """All that was judged held; for `defects run` and `--tamper`: all were caught."""
    VIOLATED = 1
    """An invariant was violated, and PySpark, where it could be asked, agrees; a known, unexpired failure does not
    count."""
    USAGE = 2
    """Bad input or usage."""
    FELL_SHORT = 3
    """Nothing was violated, but the run did not show all that it had to show."""
    HARNESS_FAILED = 4
    """The harness or its environment failed: no verdict can be trusted."""
    INTERRUPTED = 130
    """Interrupted; what was done so far is kept and reported."""


class CutproofError(Exception):
    """An error told in one line; its class decides the exit code."""

    exit_code: ExitCode = ExitCode.HARNESS_FAILED


class UsageError(CutproofError):
    """What was asked for, or handed in, is wrong."""

    exit_code = ExitCode.USAGE


class HarnessFailed(CutproofError):
    """The harness or its environment failed; it says nothing about the subject."""

    exit_code = ExitCode.HARNESS_FAILED


def one_line(error: BaseException) -> str:
    """An exception's text as one line, for people."""
    text = " ".join(str(error).split())
    if isinstance(error, CutproofError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
