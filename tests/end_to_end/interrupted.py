"""`interrupted.py SIGNAL MODULE:FUNCTION WORDS...`: a command line that gets a signal as it calls the function."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from typing import Any


def send_at_call(number: signal.Signals, place: str) -> None:
    """Have the first call of a function, or a method, send the signal to this process before it does its work."""
    module_name, _, path = place.partition(":")
    owner: Any = importlib.import_module(module_name)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    true, sent = getattr(owner, name), []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
            time.sleep(0.1)  # in another thread: the main one takes the signal, and is to take it before this goes on
        return true(*arguments, **named)

    setattr(owner, name, interrupted)


if __name__ == "__main__":
    from cutproof.harness.cli import command

    send_at_call(signal.Signals[sys.argv[1]], sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    command()
