"""What this machine has, what it lacks, and how to get it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

FORMAT = "cutproof-doctor/1"
OLDEST_PYTHON = (3, 11)
DISK_WANTED_BYTES = 1 << 30
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked for: whether it is there, and how to get it where it is not."""

    what: str
    found: str
    """what was found, in words; empty when it is missing"""
    needed: bool = True
    """false for what only some uses need"""
    advice: str = ""

    @property
    def missing(self) -> bool:
        return not self.found


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """All findings; `ok` when nothing that is needed is missing."""

    format: str = FORMAT
    ok: bool
    findings: list[Finding]


def examine(out: Path, *, start_spark: bool = True) -> Iterator[Finding]:
    """Look at everything, one finding at a time; starting Spark takes some seconds."""
    yield _python()
    yield from (_package(name) for name in ("hypothesis", "jinja2", "msgspec", "pandas", "pyarrow", "pyspark"))
    java = _java()
    yield java
    if start_spark and not java.missing:
        yield _spark()
    yield _folder(out)
    yield _browser()


def health(findings: list[Finding]) -> Health:
    return Health(ok=not any(finding.missing and finding.needed for finding in findings), findings=findings)


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
    from ..properties.spark.errors import SparkUnavailable
    from ..properties.spark.java import find_java, java_version

    try:
        java = find_java()
    except SparkUnavailable as error:
        return Finding(what="Java", found="", advice=str(error))
    return Finding(what="Java", found=f"{java_version(java)}, {java}")


def _spark() -> Finding:
    from ..properties.spark.errors import SparkUnavailable
    from ..properties.spark.session import session

    began = time.monotonic()
    try:
        started = session()
        started.range(1).count()
    except SparkUnavailable as error:
        return Finding(what="Spark starts", found="", advice=str(error))
    return Finding(what="Spark starts", found=f"{started.version}, in {time.monotonic() - began:.1f} s")


def _folder(out: Path) -> Finding:
    place = next(place for place in [out, *out.absolute().parents] if place.is_dir())
    if not os.access(place, os.W_OK):
        return Finding(what="run folder", found="", advice=f"{place} cannot be written; name another with --out")
    free = shutil.disk_usage(place).free
    if free < DISK_WANTED_BYTES:
        return Finding(what="run folder", found="", advice=f"{free >> 20:,} MB are free at {place}; 1 GB is wanted")
    return Finding(what="run folder", found=f"{out}, {free / 2**30:,.0f} GB free")


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


def prune(out: Path, caches: list[Path]) -> Pruned:
    """Remove kept histories of finished runs below `out`, and cutproof's own caches.

    Summaries, reports and counterexamples stay.  Only folders that a run wrote
    (they have a summary.json) are touched.
    """
    doomed = [folder / "histories" for folder in sorted(out.glob("*")) if (folder / "summary.json").is_file()]
    files, size = 0, 0
    for folder in [*doomed, *caches]:
        if not folder.is_dir() or folder.is_symlink():
            continue
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                files, size = files + 1, size + path.stat().st_size
        shutil.rmtree(folder)
    return Pruned(files=files, bytes=size)
