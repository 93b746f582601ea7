"""Work on threads of their own, which nobody has to wait for while the program runs.

They are daemon threads, so that none keeps the interpreter from ending.  It must not
end beneath one either: a native call that takes the interpreter's lock as it comes
back aborts the process then (SIGABRT, exit code 134).  So they are ended before.
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
"""within which threads end that nobody waits for any more"""

_threads: list[threading.Thread] = []


def in_background(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Begin the work; the future has its result, or what it raised."""
    future: Future[T] = Future()

    def fill() -> None:
        try:
            future.set_result(work(*args, **kwargs))
        except BaseException as error:  # raised to whoever asks for the result
            future.set_exception(error)

    thread = threading.Thread(target=fill, daemon=True, name="cutproof-background")
    _threads[:] = [one for one in _threads if one.is_alive()]
    _threads.append(thread)
    thread.start()
    return future


def end(within_s: float = END_S) -> bool:
    """Nobody wants the work any more: end the Spark that it asks, and wait for it; whether all of it has ended."""
    deadline = time.monotonic() + within_s
    busy = any(thread.is_alive() for thread in _threads)
    ended = _end_spark(within_s, asked=busy)
    for thread in _threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return ended and not any(thread.is_alive() for thread in _threads)


def _end_spark(within_s: float, *, asked: bool) -> bool:
    import sys

    session = sys.modules.get(f"{__package__.partition('.')[0]}.properties.spark.session")
    return session is None or session.abandon(within_s, asked=asked)


atexit.register(end)
