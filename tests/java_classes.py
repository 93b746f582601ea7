"""How Spark is started among several workers: with an archive of the classes that it loads, and without its compiler.

With the archive Spark starts in two thirds of the time.  Some forty tests start a Spark.  The
archive is Java's own (class data sharing).  The first process of the tests makes it, for this run
alone, in a Spark that it starts and stops.  Until the archive is there, and where a Java cannot use
it, a Spark starts without.  The user's archive (`cutproof doctor --install class-archive`) plays no part.
"""

from __future__ import annotations

import subprocess
from collections.abc import MutableMapping
from pathlib import Path

from cutproof.properties.spark import archive_making
from cutproof.properties.spark.session.class_archive import with_archive

INTERPRETED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""Spark interprets its plans: on tables of some dozens of rows, to compile a plan takes longer than to run it.  Without
workers Spark compiles them, as it does for a user."""
NAME = "spark.jsa"


def share(folder: Path, environment: MutableMapping[str, str]) -> None:
    """Have every Spark that is started with this environment use the folder's archive, once it is there."""
    environment[archive_making.LAUNCHER_OPTIONS] = f"{INTERPRETED} {with_archive(folder / NAME)}"


def make(folder: Path) -> subprocess.Popen[bytes]:
    """Begin to make the archive of a folder; whoever waits for the process knows that it is there."""
    return archive_making.begin(folder / NAME)
