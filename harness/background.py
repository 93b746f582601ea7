"""Work on a thread of its own that nobody has to wait for, not even at the interpreter's end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_background(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Begin the work; the future has its result, or what it raised."""
    future: Future[T] = Future()

    def fill() -> None:
        try:
            future.set_result(work(*args, **kwargs))
        except BaseException as error:  # told to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=fill, daemon=True, name="cutproof-background").start()
    return future
