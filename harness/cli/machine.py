"""What this machine has, what it lacks, and how to get it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..runtime.exit_codes import CutproofError, one_line

FORMAT = "cutproof-doctor/1"
OLDEST_PYTHON = (3, 11)
DISK_WANTED_BYTES = 1 << 30
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SERVICES = {
    "Toxiproxy": ("..toxiproxy.program", "only runs on real processes, and pipelines with proxies"),
    "PostgreSQL": ("..reference_engine.services.postgres", "only runs on real processes"),
    "RocksDB": ("..reference_engine.services.rocksdb", "only runs on real processes with state in an LSM store"),
    "network of a run's processes": ("..reference_engine.services.network", "only runs on real processes"),
}
"""The services that some runs need: a module each, whose `describe()` names the one that would be used, and the runs
that need it."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a run needs: whether it is there, and if not, how to get it."""

    what: str
    found: str
    """what was found, in words; empty when it is missing"""
    needed: bool = True
    """false if only some uses need it"""
    advice: str = ""

    @property
    def missing(self) -> bool:
        return not self.found


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The runs on real processes that are kept, in their place."""

    folder: str
    runs: int
    bytes: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """All findings; `ok` if nothing that is needed is missing."""

    format: str = FORMAT
    ok: bool
    findings: list[Finding]
    kept: Kept | None = None
    """None if there is no place to keep them"""


def examine(out: Path, *, start_spark: bool = True) -> Iterator[Finding]:
    """Look at everything, one finding at a time; starting Spark takes some seconds."""
    yield _python()
    yield from (_package(name) for name in ("hypothesis", "jinja2", "msgspec", "pandas", "pyarrow", "pyspark"))
    java = _java()
    yield java
    if start_spark and not java.missing:
        yield _spark()
    yield _folder(out)
    yield from (_service(what, *one) for what, one in SERVICES.items())
    yield from _pipelines()
    yield _runs_kept()
    yield _bequests()
    yield _browser()


def health(findings: list[Finding]) -> Health:
    ok = not any(finding.missing and finding.needed for finding in findings)
    try:
        return Health(ok=ok, findings=findings, kept=kept())
    except CutproofError:  # listed among the findings
        return Health(ok=ok, findings=findings)


def _python() -> Finding:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return Finding(what="Python", found="", advice=f"this is Python {version}; 3.11 or newer is needed")
    return Finding(what="Python", found=f"{version}, {sys.executable}")


def _package(name: str) -> Finding:
    try:
        return Finding(what=name, found=importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(what=name, found="", advice=f"pip install {name}, or install cutproof again")


def _java() -> Finding:
    from ...properties.spark.session.errors import SparkUnavailable
    from ...properties.spark.session.java import find_java, java_version

    try:
        java = find_java()
    except SparkUnavailable as error:
        return Finding(what="Java", found="", advice=str(error))
    return Finding(what="Java", found=f"{java_version(java)}, {java}")


def _spark() -> Finding:
    from ...properties.spark.session import class_archive
    from ...properties.spark.session.errors import SparkUnavailable
    from ...properties.spark.session.java import find_java
    from ...properties.spark.session.session import session

    began = time.monotonic()
    try:
        started = session()
        started.range(1).count()
    except SparkUnavailable as error:
        return Finding(what="Spark starts", found="", advice=str(error))
    took = f"{started.version}, in {time.monotonic() - began:.1f} s"
    faster = (
        "" if class_archive.added(find_java(), "") else "; sooner after --install class-archive, which takes 160 MB"
    )
    return Finding(what="Spark starts", found=took + faster)


def _folder(out: Path) -> Finding:
    place = next(place for place in [out, *out.absolute().parents] if place.is_dir())
    if not os.access(place, os.W_OK):
        return Finding(what="run folder", found="", advice=f"{place} cannot be written; name another with --out")
    free = shutil.disk_usage(place).free
    if free < DISK_WANTED_BYTES:
        return Finding(what="run folder", found="", advice=f"{free >> 20:,} MB are free at {place}; 1 GB is wanted")
    return Finding(what="run folder", found=f"{out}, {free / 2**30:,.0f} GB free")


def _service(what: str, module: str, needed_by: str) -> Finding:
    describe = importlib.import_module(module, __package__).describe
    try:
        return Finding(what=what, found=describe(), needed=False)
    except CutproofError as error:
        return Finding(what=what, found="", needed=False, advice=f"{needed_by}: {one_line(error)}")


def _pipelines() -> Iterator[Finding]:
    """The pipelines of the package: whether their engines are there, and what a first run fetches."""
    from ..user_pipelines.library import SHIPPED, builds_server, listed, path_of
    from ..user_pipelines.reading import read_pipeline

    for one in listed():
        try:
            builds = builds_server(read_pipeline(path_of(one.name)))
        except CutproofError as error:
            yield Finding(what=one.name, found="", needed=False, advice=f"only this pipeline: {one_line(error)}")
            continue
        there = SHIPPED[one.name].is_installed and not one.fetches
        first = [] if there else [f"fetches {', '.join(one.fetches)}"]
        first += ["builds the Toxiproxy server, which takes about a minute"] if builds else []
        found = f"its first run {' and '.join(first)}" if first else "its engine is there"
        yield Finding(what=one.name, found=found, needed=False)


def _runs_kept() -> Finding:
    try:
        there = kept()
    except CutproofError as error:
        return Finding(what="runs kept", found="", needed=False, advice=one_line(error))
    how = f"{there.runs}, {there.bytes / 2**20:.1f} MB; --prune removes them" if there.runs else "none"
    return Finding(what="runs kept", found=f"{how}, {there.folder}", needed=False)


def _bequests() -> Finding:
    what = "in PostgreSQL"
    try:
        from ..reference_engine.orchestrator import remembered

        runs = [note.run for _, note in remembered.pending_cleanups()]
    except CutproofError as error:
        return Finding(what=what, found="", needed=False, advice=one_line(error))
    if not runs:
        return Finding(what=what, found="nothing of past runs is left", needed=False)
    return Finding(what=what, found=f"left by past runs: {', '.join(runs)}; --prune removes them", needed=False)


def _browser() -> Finding:
    for name in BROWSERS:
        if path := shutil.which(name):
            return Finding(what="browser", found=path, needed=False)
    return Finding(
        what="browser",
        found="",
        needed=False,
        advice="only the tests of the report need one: Debian's package chromium",
    )


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What `--prune` removed."""

    files: int = 0
    bytes: int = 0
    runs: int = 0
    """how many kept runs on real processes were removed"""


def kept(folder: Path | None = None) -> Kept:
    """The runs kept in a folder, by default in their usual place; a CutproofError if there can be none."""
    from ..reference_engine.services import places

    folder = folder or places.runs()
    sizes = _sizes(folder)
    return Kept(folder=str(folder), runs=_subfolders(folder), bytes=sum(sizes))


def prune(out: Path, caches: list[Path], runs: Path | None = None) -> Pruned:
    """Remove kept histories of finished runs below `out`, cutproof's own caches, and the kept runs on real processes.

    Summaries, reports and counterexamples stay.  Below `out` only folders that a run wrote (with a summary.json) are
    touched; `runs` is emptied.
    """
    doomed = [folder / "histories" for folder in sorted(out.glob("*")) if (folder / "summary.json").is_file()]
    number, sizes = 0, list[int]()
    for folder in [*doomed, *caches, *([runs] if runs is not None else [])]:
        if not folder.is_dir() or folder.is_symlink():
            continue
        number += _subfolders(folder) if folder == runs else 0
        sizes += _sizes(folder)
        shutil.rmtree(folder)
    return Pruned(files=len(sizes), bytes=sum(sizes), runs=number)


def clear_database() -> tuple[int, list[str]]:
    """Remove what past runs have left in a PostgreSQL of the user's.

    Returns for how many runs that was possible, and one line for each other run.
    """
    from ..reference_engine.orchestrator import remembered

    done, failed = 0, []
    for path, note in remembered.pending_cleanups():
        reason = remembered.clear_away(path, note)
        if reason:
            failed.append(f"{note.what} cannot be removed from PostgreSQL ({note.dsn}): {reason}")
        else:
            done += 1
    return done, failed


def _subfolders(folder: Path) -> int:
    return sum(1 for path in folder.iterdir() if path.is_dir() and not path.is_symlink()) if folder.is_dir() else 0


def _sizes(folder: Path) -> list[int]:
    """The sizes of the files below a folder; a file that a run is just removing does not count."""
    sizes = []
    for path in folder.rglob("*") if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and not path.is_symlink():
                sizes.append(path.stat().st_size)
    return sizes
