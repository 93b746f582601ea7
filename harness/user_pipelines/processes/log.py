"""What one process of a pipeline has printed in all its lives, as one text, though it may lie in several files."""

from __future__ import annotations

from pathlib import Path

from ..aims import tail

LAST_LINES = 3


class Log:
    """The files into which the lives of a process print, one behind the other.  Only the last one grows.

    A spare has a file of its own, so that what it prints before it takes over is not of the process that runs.
    """

    def __init__(self, path: Path) -> None:
        path.touch()
        self._files: tuple[tuple[int, Path], ...] = ((0, path),)
        """each with the place in the log at which it begins; replaced as a whole, since another thread may read"""

    @property
    def path(self) -> Path:
        """Where the present life prints."""
        return self._files[-1][1]

    def go_on_in(self, path: Path) -> None:
        """Let the next life print into another file, which begins where the log ends now."""
        self._files = (*self._files, (self.end(), path))

    def end(self) -> int:
        """The place of the next line."""
        begin, path = self._files[-1]
        return begin + path.stat().st_size

    def since(self, place: int) -> str:
        """What was printed from a place on."""
        files = self._files
        return "".join(tail(path, max(0, place - begin)) for begin, path in files)


def last_lines(text: str) -> str:
    """The last lines of what a process has printed, in one line."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return " | ".join(lines[-LAST_LINES:]) or "it has printed nothing"
