"""Progress of long work: one line on a terminal, redrawn in place; nothing in a pipe.

The line appears once a step has taken some time.  A ticker updates its clock, so that the
user sees progress even while a step blocks (the start of Spark).
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Protocol, Self, TextIO

APPEARS_AFTER_S = 0.5
TICK_S = 0.2
BAR_WIDTH = 24


class Progress(Protocol):
    """The interface to which long work reports its progress, shown or not."""

    def step(self, what: str, total: int | None = None) -> None:
        """A step begins; `total` is its amount of work, if known."""

    def advance(self, done: int, note: str = "") -> None:
        """`done` of the step's work is done; `note` is shown beside the bar."""


class Silent:
    """Shows nothing."""

    def step(self, what: str, total: int | None = None) -> None:
        pass

    def advance(self, done: int, note: str = "") -> None:
        pass


class TerminalProgress:
    """One line at the bottom of a terminal; a context manager that removes the line at its end."""

    def __init__(self, stream: TextIO, *, columns: int = 100) -> None:
        self._stream = stream
        self._columns = columns
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._what = ""
        self._total: int | None = None
        self._done = 0
        self._note = ""
        self._since = time.monotonic()
        self._drawn = False
        self._ticker = threading.Thread(target=self._tick, name="cutproof-progress", daemon=True)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._ticker.join()
        self._wipe()

    def step(self, what: str, total: int | None = None) -> None:
        with self._lock:
            self._what, self._total, self._done, self._note = what, total, 0, ""
            self._since = time.monotonic()

    def advance(self, done: int, note: str = "") -> None:
        with self._lock:
            self._done, self._note = done, note

    def _tick(self) -> None:
        while not self._stopped.wait(TICK_S):
            with self._lock:
                seconds = time.monotonic() - self._since
                line = render(self._what, self._done, self._total, self._note, seconds) if self._what else ""
            if line and seconds >= APPEARS_AFTER_S:
                self._draw(line[: self._columns - 1])

    def _draw(self, line: str) -> None:
        self._stream.write(f"\r\x1b[2K{line}")
        self._stream.flush()
        self._drawn = True

    def _wipe(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


def render(what: str, done: int, total: int | None, note: str, seconds: float) -> str:
    """The line: the step, its progress, and its duration."""
    parts = [what]
    if total:
        filled = min(BAR_WIDTH, BAR_WIDTH * done // total)
        parts.append(f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done:,} of {total:,}")
    elif done:
        parts.append(f"{done:,}")
    if note:
        parts.append(note)
    parts.append(f"{seconds:.0f} s")
    return "  ".join(parts)


def for_stream(stream: TextIO | None = None, *, quiet: bool = False) -> TerminalProgress | None:
    """A progress line for a terminal; None in a pipe, or if `quiet`."""
    stream = stream or sys.stderr
    if quiet or not stream.isatty():
        return None
    import shutil

    return TerminalProgress(stream, columns=shutil.get_terminal_size().columns)
