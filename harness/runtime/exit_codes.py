"""The exit codes of commands, and the errors that have one.

Every error that a user can see is one line: what is wrong, and what to do.
"""

from __future__ import annotations

import enum
import re

LINE = 280
"""the most characters of an error's line, however long the text is that it quotes"""
QUOTED = 60
"""the most characters of a quoted text"""
WORD = 120
"""the most characters of any other text without spaces, such as a path"""

_LONG_QUOTES = re.compile(rf"(?s)'[^']{{{QUOTED + 1},}}'|\"[^\"]{{{QUOTED + 1},}}\"")
_LONG_WORDS = re.compile(rf"\S{{{WORD + 1},}}")


class ExitCode(enum.IntEnum):
    """The exit codes of every verb."""

    HELD = 0
    """Everything that was judged held; for `defects run` and `--tamper`: all were caught."""
    VIOLATED = 1
    """An invariant was violated: both judges saw it, or one where PySpark is not asked about it.  A known failure that
    has not expired does not count."""
    USAGE = 2
    """Bad input or usage."""
    FELL_SHORT = 3
    """Nothing was violated, but the run did not show everything that it had to show."""
    HARNESS_FAILED = 4
    """The harness or its environment failed, so no verdict can be trusted."""
    INTERRUPTED = 130
    """The user interrupted the command; what was done so far is stored and reported."""


class CutproofError(Exception):
    """An error that is reported in one line; its class decides the exit code."""

    exit_code: ExitCode = ExitCode.HARNESS_FAILED


class UsageError(CutproofError):
    """The request or its input is wrong."""

    exit_code = ExitCode.USAGE


class HarnessFailed(CutproofError):
    """The harness or its environment failed, which says nothing about the subject."""

    exit_code = ExitCode.HARNESS_FAILED


class ServiceMissing(CutproofError):
    """A server that a run needs is not on this machine, or cannot be used; the text says how to get it."""


def one_line(error: BaseException, encoding: str = "utf-8") -> str:
    """An exception's text as one line of at most `LINE` characters, for an output with this encoding."""
    if isinstance(error, CutproofError):
        return shortened(str(error), encoding=encoding)
    text = str(error).strip()
    return shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__, encoding=encoding)


def shortened(text: str, limit: int = LINE, encoding: str = "utf-8") -> str:
    """The text as one line that an output with this encoding can show.  Quoted texts are abbreviated first, then very
    long words.  If it is still too long, its middle is cut out, because the end says what to do.

    A character that the encoding does not have becomes an escape, whose length counts.
    """
    line = " ".join(text.encode(encoding, "backslashreplace").decode(encoding).split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    if len(line) > limit:
        line = _LONG_QUOTES.sub(lambda found: _middle_out(found[0], QUOTED), line)
        line = _LONG_WORDS.sub(lambda found: _middle_out(found[0], WORD), line)
    return _middle_out(line, limit)


def _middle_out(text: str, limit: int) -> str:
    """The beginning and the end of a text that exceeds the limit."""
    if len(text) <= limit:
        return text
    last = (limit - 3) // 3
    return f"{text[: limit - 3 - last]}...{text[-last:]}"
