"""Cancels what worker processes do, at once and within a bound, and waits until nothing of theirs is left.

A run on processes may take minutes, and a worker that only looks between two runs
keeps whoever pressed Ctrl-C waiting for as long.  So a worker gets SIGTERM, which
ends its work wherever that stands; whatever the work has started it then ends on
its own way out.  A worker that does not end, in a native call say, is killed: what
it had started ends by itself (`reference_impl.processes.launcher`), and is waited for.
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
"""within which a cancelled worker ends by itself"""
LEFTOVERS_S = 2.0
"""within which what a killed worker had started ends, and the pool notices that no worker is left"""


class WorkCancelled(BaseException):
    """The work is not wanted any more; no `except Exception` of an engine stops it."""


_at_work = False
_cancelled = False


def obey() -> None:
    """In a worker process: have SIGTERM cancel its work, also one that came while this was started
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
    """Raises once: what the work does on its way out is not cut short."""
    global _cancelled
    first, _cancelled = not _cancelled, True
    if first and _at_work:
        raise WorkCancelled


def cancellable(task: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """In a worker process: do a task; raises WorkCancelled when it is cancelled, or was before."""
    global _at_work
    try:
        _at_work = True
        if _cancelled:
            raise WorkCancelled
        return task(*arguments, **named)
    finally:
        _at_work = False


class Cancellation:
    """The end of a pool whose workers `obey`: begun here, waited for by `wait`."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._began = time.monotonic()
        processes = executor._processes or {}  # no public name before Python 3.14
        self._workers: list[BaseProcess] = [worker for worker in processes.values() if worker.is_alive()]
        self._started = _handles_of([child for worker in self._workers for child in _children(worker.pid)])
        # the executor forgets it as it shuts down; typeshed takes it for another type
        self._manager: threading.Thread | None = getattr(executor, "_executor_manager_thread", None)
        for worker in self._workers:
            worker.terminate()
        executor.shutdown(wait=False, cancel_futures=True)

    def wait(self, grace_s: float = GRACE_S) -> None:
        """Until no worker is left, nor anything that a worker had started which had to be killed, within bounds."""
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
