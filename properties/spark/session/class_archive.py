"""An archive of the classes that Spark loads, so that a Spark starts in two thirds of the time.

The archive is Java's own (class data sharing, JEP 350).  It is good for one build of Java and one installed PySpark.
Java checks this when it starts, and loads its classes one by one if the archive is not good.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path

from .java import cache_folder

FOLDER = "class-archive"
SILENT = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:disable -Xlog:all=error:stderr"
"""Java says nothing of an archive that it does not use, and nothing while it makes one."""
ARCHIVE_AT_EXIT = "-XX:ArchiveClassesAtExit"


def place(java: Path) -> Path:
    """Where the archive for this Java and the installed PySpark is, or would be."""
    pyspark = importlib.util.find_spec("pyspark")
    parts = [str(java.absolute())]
    for path in (java.resolve(), Path(pyspark.origin if pyspark is not None and pyspark.origin else "")):
        found = path.stat()
        parts.append(f"{path} {found.st_size} {found.st_mtime_ns}")
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_folder() / FOLDER / f"{key}.jsa"


def with_archive(archive: Path) -> str:
    """Java's options to load classes from an archive."""
    return f"{SILENT} -XX:SharedArchiveFile={archive}"


def making_archive(archive: Path) -> str:
    """Java's options to write, when it ends, an archive of all classes that it has loaded."""
    return f"{SILENT} {ARCHIVE_AT_EXIT}={archive}"


def added(java: Path, given: str) -> str:
    """Java's options for the archive that is there, beside those given; empty if there is none, or one is made."""
    if ARCHIVE_AT_EXIT in given:
        return ""
    try:
        archive = place(java)
    except OSError:
        return ""
    return with_archive(archive) if os.access(archive, os.R_OK) else ""
