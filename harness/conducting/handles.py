"""Processes by a handle that never comes to mean another one, and what they said last."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def handle_of(pid: int) -> int | None:
    """A descriptor that goes on meaning this process when its number is given to another; None where there is none
    to be had (macOS, a sandbox), or no such process."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def last_words(log: Path) -> str:
    """The last line of what a program has printed."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it has said nothing")
    return "it has said nothing"
