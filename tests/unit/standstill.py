"""A process that a test stops has stopped, and one that it kills has ended: a signal is delivered later than sent."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

WITHIN_S = 8.0


def stop(pid: int) -> None:
    """Send SIGSTOP and wait until every thread has stopped; until then one of them may answer."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + WITHIN_S
    while any(_state(thread) != "T" for thread in Path(f"/proc/{pid}/task").iterdir()):
        assert time.monotonic() < deadline, "it does not stop"
        time.sleep(0.002)


def kill(pid: int) -> None:
    """Send SIGKILL and wait until the process has ended, whether its parent has asked for its status or not."""
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + WITHIN_S
    while _lives(pid):
        assert time.monotonic() < deadline, "it does not end"
        time.sleep(0.002)


def _lives(pid: int) -> bool:
    try:
        return _state(Path(f"/proc/{pid}")) != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _state(thread: Path) -> str:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]
