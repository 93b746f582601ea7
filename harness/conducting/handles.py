"""Processes by a handle that never comes to mean another one."""

from __future__ import annotations

import os


def handle_of(pid: int) -> int | None:
    """A descriptor that goes on meaning this process when its number is given to another; None where there is none
    to be had (macOS, a sandbox), or no such process."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
