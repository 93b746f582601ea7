"""A process that keeps Spark's folder, and removes it when the one who started it is gone, whatever it died of.

Run as a script, without the package: it says the folder's path on its standard
output, and waits for the end of its standard input.  Then Java, whose input ends
at the same moment, goes too; what it still writes is removed until it is quiet.
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

PATIENCE_S = 20.0
QUIET_S = 1.0
LOOK_AGAIN_S = 0.1


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the terminal's: the end of the input alone counts
    folder = tempfile.mkdtemp(prefix="cutproof-spark-")
    with contextlib.suppress(BrokenPipeError):
        print(folder, flush=True)
        sys.stdin.read()
    remove(Path(folder))
    os._exit(0)  # whoever read the output is gone: there is nothing to flush


def remove(folder: Path) -> None:
    """Remove a folder until nobody makes it again."""
    began = quiet_since = time.monotonic()
    while time.monotonic() - began < PATIENCE_S and time.monotonic() - quiet_since < QUIET_S:
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            quiet_since = time.monotonic()
        time.sleep(LOOK_AGAIN_S)


if __name__ == "__main__":
    main()
