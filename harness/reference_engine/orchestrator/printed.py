"""What a program printed last, as a user is told it."""

from __future__ import annotations

import re
from pathlib import Path

LEVEL = re.compile(r"(?:^|\s)(DEBUG|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC|STATEMENT|DETAIL|HINT|CONTEXT):  ")
"""The level of a line in PostgreSQL's log, which two spaces follow."""
ROUTINE = re.compile("terminating connection|the database system is (starting up|shutting down|not yet accepting)")
"""Messages in PostgreSQL's log about a client that connected too early, or was refused."""


def last_words(log: Path) -> str:
    """The last line that a program has printed; of PostgreSQL, which prints much else, the last error."""
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").split("\n") if line.strip()]
    except OSError:
        lines = []
    if not lines:
        return "it has printed nothing"
    levels = [found[1] if (found := LEVEL.search(line)) else "" for line in lines]
    complaints = [line for line, level in zip(lines, levels, strict=True) if level in ("FATAL", "PANIC")]
    relevant = [line for line in complaints if not ROUTINE.search(line)]
    if relevant:
        return relevant[-1]
    return "it has not complained" if levels[-1] else lines[-1]
