"""A process that creates Spark's folder, and removes it when the process that started it has ended for any reason.

It runs as a script, without the package.  It writes the folder's path to its standard
output and waits for the end of its standard input.  Java's input ends at the same
moment, and Java exits too.  A Java that was just being started may not exit: the janitor
kills it.  The janitor removes the folder until no process writes it again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

TIMEOUT_S = 20.0
GRACE_S = 3.0
"""how long Java may take to exit by itself"""
QUIET_S = 1.0
POLL_S = 0.1
MARK = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""A variable that PySpark's launcher sets for Java, and so for all that Java starts: a path in the folder."""


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal sends them too: only the end of the input counts
    folder = tempfile.mkdtemp(prefix="cutproof-spark-")
    with contextlib.suppress(BrokenPipeError):
        print(folder, flush=True)
        sys.stdin.read()
    remove(Path(folder))
    os._exit(0)  # the reader of the output has ended: there is nothing to flush


def remove(folder: Path) -> None:
    """Remove a folder until no process remains that could create it again."""
    began = quiet_since = time.monotonic()
    while time.monotonic() - began < TIMEOUT_S and time.monotonic() - quiet_since < QUIET_S:
        users = started_with(folder)
        if time.monotonic() - began > GRACE_S:
            kill(users)
        if users or folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            quiet_since = time.monotonic()
        time.sleep(POLL_S)


def started_with(folder: Path) -> list[int]:
    """The processes of the Spark that uses this folder; none if the system has no /proc."""
    marked = os.fsencode(f"{MARK}={folder}{os.sep}")
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if marked in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found


def kill(processes: list[int]) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
