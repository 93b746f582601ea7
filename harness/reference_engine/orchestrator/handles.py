"""Handles of processes, which never come to mean another process; and the last line that a process printed."""

from __future__ import annotations

import os
import re
from pathlib import Path

LEVEL = re.compile(r"(?:^|\s)(DEBUG|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC|STATEMENT|DETAIL|HINT|CONTEXT):  ")
"""Of a line in PostgreSQL's log, which has two spaces behind it."""
ROUTINE = re.compile("terminating connection|the database system is (starting up|shutting down|not yet accepting)")
"""What PostgreSQL logs about a client that connected too early, or was refused."""


def handle_of(pid: int) -> int | None:
    """A descriptor that goes on meaning this process when its number is given to another; None where there is none
    to be had (macOS, a sandbox), or no such process."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def last_words(log: Path) -> str:
    """The last line of what a program has printed; the last complaint, where it prints much else (PostgreSQL)."""
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
