"""Cancels the work of worker processes at once, and waits for a bounded time until all their processes have ended.

A run on processes may take minutes.  If a worker checked for Ctrl-C only between two runs,
the user would wait as long.  So a worker receives SIGTERM, which raises an exception in its
work at any place.  The work then ends the processes that it has started.  A worker that
does not end, because it is in a native call, say, is killed.  The processes that it had
started then end by themselves (`reference_impl.processes.launching.launcher`), and are waited for.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

from .interruption import not_swallowed, send_again

P = ParamSpec("P")
T = TypeVar("T")

GRACE_S = 3.0
"""the time in which a cancelled worker must end by itself"""
LEFTOVERS_S = 2.0
"""the time in which the processes of a killed worker must end, and the pool must notice that no worker is left"""


class WorkCancelled(BaseException):
    """The work is cancelled.  No `except Exception` in an engine catches this."""


_at_work = False
_cancelled = False


def obey() -> None:
    """In a worker process: let SIGTERM cancel its work, also a SIGTERM that arrived while the process was starting
    (`signals_blocked`), and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _cancel)
    not_swallowed(WorkCancelled, _insist)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _insist() -> None:
    global _cancelled
    _cancelled = False
    send_again(signal.SIGTERM)


def _cancel(number: int, frame: FrameType | None) -> None:
    """Raise WorkCancelled only once, so that the cleanup of the work is not interrupted."""
    global _cancelled
    first, _cancelled = not _cancelled, True
    if first and _at_work:
        raise WorkCancelled


def cancellable(task: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """In a worker process: run a task; raises WorkCancelled if the worker is or was cancelled."""
    global _at_work
    try:
        _at_work = True
        if _cancelled:
            raise WorkCancelled
        return task(*arguments, **named)
    finally:
        _at_work = False


class Cancellation:
    """Cancels a pool whose workers have called `obey`; `wait` waits until they have ended."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._began = time.monotonic()
        processes = executor._processes or {}  # no public name before Python 3.14
        self._workers: list[BaseProcess] = [worker for worker in processes.values() if worker.is_alive()]
        self._started = _handles_of([child for worker in self._workers for child in _children(worker.pid)])
        # the executor drops its reference at shutdown; typeshed declares another type
        self._manager: threading.Thread | None = getattr(executor, "_executor_manager_thread", None)
        for worker in self._workers:
            worker.terminate()
        executor.shutdown(wait=False, cancel_futures=True)

    def wait(self, grace_s: float = GRACE_S) -> None:
        """Wait, for a bounded time, until all workers and the processes of killed workers have ended."""
        for worker in self._workers:
            worker.join(max(0.0, self._began + grace_s - time.monotonic()))
        killed = [worker for worker in self._workers if worker.is_alive()]
        for worker in killed:
            worker.kill()
        if self._manager is not None:
            self._manager.join(LEFTOVERS_S)
        if killed:
            _wait_for(self._started, LEFTOVERS_S)
        while self._started:
            os.close(self._started.pop())


def _handles_of(pids: Sequence[int]) -> list[int]:
    handles: list[int] = []
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            handles.append(os.pidfd_open(pid))
    return handles


def _children(pid: int | None) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:  # it has ended, or there is no /proc
        return []
    return [int(child) for child in children.split()]


def _wait_for(handles: Sequence[int], within_s: float) -> None:
    deadline, remaining = time.monotonic() + within_s, set(handles)
    while remaining and (seconds := deadline - time.monotonic()) > 0:
        remaining -= set(select.select(list(remaining), [], [], seconds)[0])
