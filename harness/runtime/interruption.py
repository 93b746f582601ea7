"""Ctrl-C and SIGTERM, let in only where nothing is lost by them.

Between two of its steps a verification may stop; within one (a chunk counted up
but not yet written, a report half written) it may not.  So a signal is noted,
and becomes a `KeyboardInterrupt` only inside `open()`, where work is waited for
or handed to a subject that may take long.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SIGNALS_AT_MOST = 3
"""after so many signals one interrupts the work at any place"""
AGAIN_S = 0.02
DEAF_S = 5.0
"""for so long after an interrupt, further signals are ignored: the run is being ended"""


class SignalCount:
    """Counts signals, and says which of them ends what is being done."""

    def __init__(self) -> None:
        self._count = 0
        self._raised_at: float | None = None

    def forget(self) -> None:
        """The interrupt that was raised was swallowed."""
        self._raised_at = None

    def raises(self, *, anywhere: bool) -> bool:
        """Count a signal; whether it is to be raised as KeyboardInterrupt.  `anywhere`: the work may be interrupted
        here."""
        self._count += 1
        now = time.monotonic()
        if self._raised_at is not None and now - self._raised_at < DEAF_S:
            return False
        if not anywhere and self._count < SIGNALS_AT_MOST:
            return False
        self._raised_at = now
        return True


class Interruption:
    """Whether the user wants the work to end; a context manager that has the signals meanwhile."""

    def __init__(self) -> None:
        self.came = False
        self._signals = SignalCount()
        self._open = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interruption:
        """Take the signals, where they are this thread's to take; elsewhere they stay their owner's."""
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._handle) for one in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """A stretch that may be left at any point; a signal that came before leaves it at once."""
        before, self._open = self._open, True
        try:
            if self.came:
                raise KeyboardInterrupt
            yield
        except KeyboardInterrupt:
            self.came = True
            raise
        finally:
            self._open = before

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if self._signals.raises(anywhere=self._open):
            raise KeyboardInterrupt


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Ctrl-C and SIGTERM are both a KeyboardInterrupt, and a second one does not break off what the first one ends."""
    signals = SignalCount()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if signals.raises(anywhere=True):
            raise KeyboardInterrupt

    def insist() -> None:
        signals.forget()
        send_again(signal.SIGINT)

    before = {one: signal.signal(one, interrupt) for one in SIGNALS}
    hook = sys.unraisablehook
    not_swallowed(KeyboardInterrupt, insist)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for one, handler in before.items():
            signal.signal(one, handler)


def not_swallowed(kind: type[BaseException], insist: Callable[[], None]) -> None:
    """Call `insist` when the exception that a signal raises is swallowed, as in a finalizer or a callback of the
    garbage collector."""
    before = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, kind):
            insist()
        else:
            before(unraisable)

    sys.unraisablehook = hook


def send_again(number: signal.Signals) -> None:
    """Send a signal to this process again, after a short while."""
    timer = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
    timer.daemon = True
    timer.start()


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """Block signals: a process started meanwhile does not receive them, this process does so afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
