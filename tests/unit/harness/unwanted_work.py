"""Work for worker processes that is not wanted any more; a worker finds it by this module's name."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

LONG_S = 120


def sleep(sign: Path) -> None:
    """Work that takes long, and swallows every exception that an engine may swallow."""
    try:
        sign.touch()
        time.sleep(LONG_S)
    except Exception:  # as an engine's own code may: a worker has to end all the same
        time.sleep(LONG_S)
    finally:
        sign.with_suffix(".ended").touch()


class Swallowing:
    """What is raised in a finalizer is swallowed."""

    def __init__(self, sign: Path) -> None:
        self.sign = sign

    def __del__(self) -> None:
        self.sign.touch()
        time.sleep(LONG_S)


def swallow(sign: Path) -> None:
    Swallowing(sign)
    sleep(sign.with_suffix(".next"))


def deaf(sign: Path) -> None:
    """Work in a native call, as it were: no signal is heard.  What it has started ends with it, a little later."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = "import os, sys, time; sys.stdin.read(); time.sleep(0.3); os.rename(sys.argv[1], sys.argv[1] + '.gone')"
    subprocess.Popen([sys.executable, "-c", child, str(sign)], stdin=subprocess.PIPE)
    sign.touch()
    time.sleep(LONG_S)
