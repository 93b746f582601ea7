"""What a run's exit code says, and the errors that carry one.

Every error that a user can meet is one line: what is wrong, and what to do.
"""

from __future__ import annotations

import enum
import re

LINE = 280
"""characters of an error's line at most, whatever it quotes of a file or a command line"""
QUOTED = 60
"""characters of what a message quotes"""
WORD = 120
"""characters of anything else that has no spaces, such as a path"""

_LONG_QUOTES = re.compile(rf"(?s)'[^']{{{QUOTED + 1},}}'|\"[^\"]{{{QUOTED + 1},}}\"")
_LONG_WORDS = re.compile(rf"\S{{{WORD + 1},}}")


class ExitCode(enum.IntEnum):
    """The exit codes of every verb."""

    HELD = 0
    """All that was judged held; for `defects run` and `--tamper`: all were caught."""
    VIOLATED = 1
    """An invariant was violated: both judges saw it, or one where PySpark is not asked about it; a known, unexpired
    failure does not count."""
    USAGE = 2
    """Bad input or usage."""
    FELL_SHORT = 3
    """Nothing was violated, but the run did not show all that it had to show."""
    HARNESS_FAILED = 4
    """The harness or its environment failed: no verdict can be trusted."""
    INTERRUPTED = 130
    """Interrupted; what was done so far is kept and reported."""


class CutproofError(Exception):
    """An error that is reported in one line; its class decides the exit code."""

    exit_code: ExitCode = ExitCode.HARNESS_FAILED


class UsageError(CutproofError):
    """What was asked for, or handed in, is wrong."""

    exit_code = ExitCode.USAGE


class HarnessFailed(CutproofError):
    """The harness or its environment failed; it says nothing about the subject."""

    exit_code = ExitCode.HARNESS_FAILED


def one_line(error: BaseException, encoding: str = "utf-8") -> str:
    """An exception's text as one line of at most `LINE` characters, for people, on an output of that encoding."""
    if isinstance(error, CutproofError):
        return shortened(str(error), encoding=encoding)
    text = str(error).strip()
    return shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__, encoding=encoding)


def shortened(text: str, limit: int = LINE, encoding: str = "utf-8") -> str:
    """The text as one line that an output of that encoding can show: what it quotes is abbreviated first, then words
    without end; of what is still too long the middle goes, since what to do stands at the end.

    A character that the encoding has not becomes an escape of it, and counts as long as that is.
    """
    line = " ".join(text.encode(encoding, "backslashreplace").decode(encoding).split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    if len(line) > limit:
        line = _LONG_QUOTES.sub(lambda found: _middle_out(found[0], QUOTED), line)
        line = _LONG_WORDS.sub(lambda found: _middle_out(found[0], WORD), line)
    return _middle_out(line, limit)


def _middle_out(text: str, limit: int) -> str:
    """The beginning and the end of a text that is longer than the limit."""
    if len(text) <= limit:
        return text
    last = (limit - 3) // 3
    return f"{text[: limit - 3 - last]}...{text[-last:]}"
