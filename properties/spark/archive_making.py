"""Make the archive of Spark's classes: start a Spark, ask it the oracle's questions once, and end it.

`python -m cutproof.properties.spark.archive_making FILE` does so in this process; `begin` starts such a process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .oracle import warm_up
from .session import session
from .session.class_archive import making_archive, place
from .session.errors import SparkUnavailable
from .session.java import find_java

LAUNCHER_OPTIONS = "SPARK_SUBMIT_OPTS"
"""the variable from which Spark's launcher takes options for Java; with an archive that it names, none can be made"""


def install() -> tuple[Path, bool]:
    """The archive for this machine's Java and PySpark, and whether it was there already.  Takes some 20 seconds.

    Other archives, which nothing reads any more, are removed.  Raises SparkUnavailable if it cannot be made.
    """
    archive = place(find_java())
    if archive.exists():
        return archive, True
    archive.parent.mkdir(exist_ok=True)
    making = begin(archive)
    said = making.communicate()[1].decode(errors="replace").strip()
    if not archive.exists():
        last = said.splitlines()[-1] if said else f"its process ended with exit code {making.returncode}"
        raise SparkUnavailable(f"the archive of Spark's classes was not made: {last}")
    for other in archive.parent.iterdir():
        if other.is_dir():
            shutil.rmtree(other, ignore_errors=True)
        elif other != archive:
            other.unlink(missing_ok=True)
    return archive, False


def begin(archive: Path) -> subprocess.Popen[bytes]:
    """A process that makes an archive.  The file appears under its name when it is whole: Java trusts what it finds."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(archive)],
        env={name: value for name, value in os.environ.items() if name != LAUNCHER_OPTIONS},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def main(archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="making-", dir=archive.parent) as folder:
        unfinished = Path(folder, archive.name)
        options = f"{session.SETTINGS[session.DRIVER_OPTIONS]} {making_archive(unfinished)}"
        warm_up(session.session(settings={session.DRIVER_OPTIONS: options}))
        session.stop()
        if unfinished.exists():
            unfinished.rename(archive)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except SparkUnavailable as error:
        sys.exit(str(error))
