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
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

GRACE_S = 4.0
"""within which a cancelled worker ends by itself"""
LEFTOVERS_S = 3.0
"""within which what a killed worker had started ends"""


class WorkCancelled(BaseException):
    """The work is not wanted any more; no `except Exception` of an engine stops it."""


_at_work = False
_cancelled = False


def obey() -> None:
    """In a worker process: have SIGTERM cancel its work, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _cancel)


def _cancel(number: int, frame: FrameType | None) -> None:
    """Raises once: what the work does on its way out is not cut short."""
    global _cancelled
    first, _cancelled = not _cancelled, True
    if first and _at_work:
        raise WorkCancelled


def work(task: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """In a worker process: do a task; raises WorkCancelled when it is cancelled, or was before."""
    global _at_work
    try:
        _at_work = True
        if _cancelled:
            raise WorkCancelled
        return task(*arguments, **named)
    finally:
        _at_work = False


def cancel(executor: ProcessPoolExecutor) -> list[BaseProcess]:
    """Cancel what a pool of workers that `obey` does; the workers, which end only when the pool is shut down."""
    workers: list[BaseProcess] = list((executor._processes or {}).values())  # no public name before Python 3.14
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            if worker.is_alive():
                worker.terminate()
    return workers


def shut_down(executor: ProcessPoolExecutor, workers: Sequence[BaseProcess], *, grace_s: float = GRACE_S) -> None:
    """Shut down a pool that was cancelled: its workers have ended, and what those started too, or its time is over."""
    with _watched(workers) as started:
        executor.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + grace_s
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        killed = [worker for worker in workers if worker.is_alive()]
        for worker in killed:
            worker.kill()
        executor.shutdown(wait=True)
        if killed:
            _wait_for(started, LEFTOVERS_S)


@contextlib.contextmanager
def _watched(workers: Sequence[BaseProcess]) -> Iterator[list[int]]:
    """Handles of the processes that workers have started; none where the system has no such thing."""
    handles: list[int] = []
    for pid in [child for worker in workers for child in _children(worker.pid)]:
        with contextlib.suppress(OSError):  # it has ended
            handles.append(os.pidfd_open(pid))
    try:
        yield handles
    finally:
        for handle in handles:
            os.close(handle)


def _children(pid: int | None) -> list[int]:
    try:
        told = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:  # it has ended, or there is no /proc
        return []
    return [int(child) for child in told.split()]


def _wait_for(handles: Sequence[int], within_s: float) -> None:
    deadline, left = time.monotonic() + within_s, set(handles)
    while left and (seconds := deadline - time.monotonic()) > 0:
        left -= set(select.select(list(left), [], [], seconds)[0])
