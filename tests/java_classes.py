"""How Spark is started among several workers: with an archive of the classes that it loads, and without its compiler.

With the archive Spark starts in two thirds of the time.  Some forty tests start a Spark.  The
archive is Java's own (class data sharing).  The first process of the tests makes it, for this run
alone, in a Spark that it starts and stops.  Until the archive is there, and where a Java cannot use
it, a Spark starts as a user's does.  What a user runs has no such archive.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import MutableMapping
from pathlib import Path

OPTIONS = "SPARK_SUBMIT_OPTS"
"""the variable from which Spark's launcher takes options for Java"""
INTERPRETED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""Spark interprets its plans: on tables of some dozens of rows, to compile a plan takes longer than to run it.  Without
workers Spark compiles them, as it does for a user."""
SILENT = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:disable -Xlog:all=error:stderr"
NAME = "spark.jsa"

MAKING = """
import os, sys
from pathlib import Path
from cutproof.properties.spark.session import session
from cutproof.properties.spark.oracle import warm_up

made, wanted = map(Path, sys.argv[1:])
warm_up(session.session())
session.stop()
if made.exists():
    made.rename(wanted)
"""
"""The archive appears under its name when it is whole: Java trusts what it finds there."""


def share(folder: Path, environment: MutableMapping[str, str]) -> None:
    """Have every Spark that is started with this environment use the folder's archive, once it is there."""
    environment[OPTIONS] = f"{INTERPRETED} {SILENT} -XX:SharedArchiveFile={folder / NAME}"


def make(folder: Path) -> subprocess.Popen[bytes]:
    """Begin to make the archive of a folder; whoever waits for the process knows that it is there."""
    unfinished = folder / f"unfinished-{NAME}"
    return subprocess.Popen(
        [sys.executable, "-c", MAKING, str(unfinished), str(folder / NAME)],
        env={**os.environ, OPTIONS: f"{SILENT} -XX:ArchiveClassesAtExit={unfinished}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
