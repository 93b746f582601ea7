"""Ctrl-C and SIGTERM, which interrupt a verification only where nothing is lost.

A verification may stop between two steps, but not within one (results counted but not yet
written, a report half written).  So a signal is noted.  It raises `KeyboardInterrupt` only
inside `open()`, while the verification waits for work or runs a subject.
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
"""from this signal on, a signal interrupts the work at any place"""
AGAIN_S = 0.02
DEAF_S = 5.0
"""for how long further signals are ignored after an interrupt, because the run is being ended"""


class SignalCount:
    """Counts signals, and decides which of them interrupts the work."""

    def __init__(self) -> None:
        self._count = 0
        self._raised_at: float | None = None

    def forget(self) -> None:
        """The raised KeyboardInterrupt was swallowed, so the next signal may raise again."""
        self._raised_at = None

    def raises(self, *, anywhere: bool) -> bool:
        """Count a signal; whether it must raise KeyboardInterrupt.  `anywhere`: the work may be interrupted here."""
        self._count += 1
        now = time.monotonic()
        if self._raised_at is not None and now - self._raised_at < DEAF_S:
            return False
        if not anywhere and self._count < SIGNALS_AT_MOST:
            return False
        self._raised_at = now
        return True


class Interruption:
    """Whether the user wants the work to end; a context manager that handles the signals meanwhile."""

    def __init__(self) -> None:
        self.came = False
        self._signals = SignalCount()
        self._open = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interruption:
        """Install the signal handlers, if this is the thread that may do so."""
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._handle) for one in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """A block that a signal may interrupt at any point; an earlier signal interrupts it at once."""
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
    """Both Ctrl-C and SIGTERM raise KeyboardInterrupt; a second signal does not interrupt the cleanup of the first."""
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
    """Call `insist` if the exception that a signal raises is swallowed, as it is in a finalizer or a callback of the
    garbage collector."""
    before = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, kind):
            insist()
        else:
            before(unraisable)

    sys.unraisablehook = hook


def send_again(number: signal.Signals) -> None:
    """Send a signal to this process again after a short time."""
    timer = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
    timer.daemon = True
    timer.start()


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """Block signals: a process that is started meanwhile does not receive them, this process receives them later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
