"""The signals that the harness sends to the processes under test: SIGKILL, SIGSTOP and SIGCONT."""

from __future__ import annotations

import contextlib
import os
import signal

from ....reference_impl.processes.launching.cluster import Launcher, ProcessTerminated

KILLED_BY: int = signal.SIGKILL
KILLED_HOW: str = signal.SIGKILL.name
"""how the launcher reports an end by SIGKILL, as a number and as a word"""


def handle_of(pid: int) -> int | None:
    """A descriptor of a process, which stays valid when its pid is reused.  None if there is no such process, or the
    system has no such descriptors (macOS, a sandbox)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def kill_by_handle(handle: int | None) -> None:
    """Send SIGKILL without the launcher, which takes longer; nothing happens if the process has ended."""
    if handle is not None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)


def kill(launcher: Launcher, pid: int) -> bool:
    """Send SIGKILL to a process that the launcher started; False if the process has ended already."""
    return _sent(launcher, pid, signal.SIGKILL)


def stop(launcher: Launcher, pid: int) -> bool:
    """Send SIGSTOP to a process that the launcher started; False if the process has ended already."""
    return _sent(launcher, pid, signal.SIGSTOP)


def resume(launcher: Launcher, pid: int) -> bool:
    """Send SIGCONT to a process that the launcher started; False if the process has ended already."""
    return _sent(launcher, pid, signal.SIGCONT)


def _sent(launcher: Launcher, pid: int, number: int) -> bool:
    try:
        launcher.signal(pid, number)
    except ProcessTerminated:
        return False  # the pid may belong to another process by now
    return True
