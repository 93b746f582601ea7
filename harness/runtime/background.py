"""Work on background threads, for which the program need not wait while it runs.

They are daemon threads, so that none keeps the interpreter from ending.  But if the
interpreter ends while a thread is in a native call, the thread aborts the process when it
takes the interpreter's lock on its return (SIGABRT, exit code 134).  So `end` ends the
threads before.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

END_S = 2.0
"""the time in which threads whose result is no longer needed must end"""

_threads: list[threading.Thread] = []


def in_background(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Begin the work; the future has its result or its exception."""
    future: Future[T] = Future()

    def fill() -> None:
        try:
            future.set_result(work(*args, **kwargs))
        except BaseException as error:  # raised when the result is requested
            future.set_exception(error)

    thread = threading.Thread(target=fill, daemon=True, name="cutproof-background")
    _threads[:] = [one for one in _threads if one.is_alive()]
    _threads.append(thread)
    thread.start()
    return future


def end(within_s: float = END_S) -> bool:
    """End the Spark session that the work uses, and wait for the threads; whether all of them have ended."""
    deadline = time.monotonic() + within_s
    busy = any(thread.is_alive() for thread in _threads)
    ended = _end_spark(within_s, asked=busy)
    for thread in _threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return ended and not any(thread.is_alive() for thread in _threads)


def _end_spark(within_s: float, *, asked: bool) -> bool:
    import sys

    session = sys.modules.get(f"{__package__.partition('.')[0]}.properties.spark.session.session")
    return session is None or session.abandon(within_s, asked=asked)


atexit.register(end)
