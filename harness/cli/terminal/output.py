"""Where a verb's output goes.

Text for people goes to standard output.  With `--json` standard output has exactly one JSON object, and text for people
goes to standard error.  Errors always go to standard error.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

import msgspec

from ...runtime.exit_codes import CutproofError, ExitCode, one_line, shortened
from ...runtime.interruption import SIGNALS

ERROR_FORMAT = "cutproof-error/1"


def show_what_can_be_shown() -> None:
    """Let this process write to any terminal: a character that the terminal cannot show becomes an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def printable(text: str) -> str:
    """A text of one line in which each character that is not printable, such as one that steers a terminal, is its
    escape."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def debugging() -> bool:
    """Whether tracebacks are wanted: CUTPROOF_DEBUG is set, and not 0."""
    return os.environ.get("CUTPROOF_DEBUG", "") not in ("", "0")


class Output:
    """What a verb prints, for a person or for a program."""

    def __init__(
        self, *, json: bool = False, quiet: bool = False, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self.json = json
        self.quiet = quiet
        self._stdout = stdout or sys.stdout
        self._stderr = stderr or sys.stderr
        self._has_result = False

    def say(self, text: str = "") -> None:
        """Print a line for people."""
        if not self.quiet:
            print(text, file=self._stderr if self.json else self._stdout)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table for people, its columns as wide as their content.  Characters that are not printable are
        escapes."""
        cells = [list(header), *[[printable(str(cell)) for cell in row] for row in rows]]
        widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
        for row in cells:
            self.say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def result(self, value: object) -> None:
        """Print the one JSON object, if JSON was requested, whole: signals wait until it is written.

        What comes later, such as an interrupt that arrives then, prints no second one.
        """
        if self.json and not self._has_result:
            self._has_result = True
            with _signals_wait():
                print(_json(value), file=self._stdout, flush=True)

    def complain(self, text: str) -> None:
        """Print a line about an error in the harness after which the run went on; also with --quiet."""
        print(f"cutproof: {shortened(text, encoding=_encoding(self._stderr))}", file=self._stderr)

    def trace(self, text: str) -> None:
        """Print a traceback, for a developer of the harness (`debugging`)."""
        print(text.rstrip(), file=self._stderr)

    def error(self, error: CutproofError) -> ExitCode:
        """Print an error in one line; also as the JSON object, if JSON was requested."""
        print(f"cutproof: {one_line(error, _encoding(self._stderr))}", file=self._stderr)
        self.result({"format": ERROR_FORMAT, "error": one_line(error), "exit_code": int(error.exit_code)})
        return error.exit_code


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """A block at whose end the signals that would interrupt it arrive; a pipe takes a large text in several parts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _encoding(stream: TextIO) -> str:
    """The encoding that a stream can show; a stream in memory has none, and shows everything."""
    return getattr(stream, "encoding", None) or "utf-8"


def _json(value: object) -> str:
    """The value as JSON in ASCII, whose escapes are the same in every encoding."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a file's name may be bytes that are no text
        encoded = msgspec.json.encode(_as_text(msgspec.to_builtins(value)))
    text = msgspec.json.format(encoded, indent=2).decode()
    return text if text.isascii() else "".join(map(_escaped, text))


def _escaped(letter: str) -> str:
    if letter.isascii():
        return letter
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _as_text(value: object) -> object:
    """Builtins whose texts can be encoded; other characters become escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_as_text(key): _as_text(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_text(inner) for inner in value]
    return value
