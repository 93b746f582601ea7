"""`cutproof doctor`: what this machine has and lacks."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..runtime.exit_codes import ExitCode, HarnessFailed
from . import machine as doctor
from .terminal.options import progress_of
from .terminal.output import Output

DESCRIPTION = """\
Reports what this machine has, what it lacks and how to get it: Python, the packages,
Java, whether Spark starts, room on the disk, the servers that runs on real
processes need, what such runs have saved, and a browser (for one test only)."""

EXAMPLES = """\
examples:
  cutproof doctor
  cutproof doctor --json
  cutproof doctor --install toxiproxy   find or build the Toxiproxy server, once for each user
  cutproof doctor --install class-archive   once: every Spark starts in two thirds of the time
  cutproof doctor --prune               remove the files that past runs have kept, and the caches

exit codes: 0 all that is needed is there, 4 something is missing or cannot be installed"""

INSTALLABLE = ("toxiproxy", "class-archive")
"""Each keeps its files in a folder of this name in the cache."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("out"), help="where runs are kept (out)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--install",
        metavar="WHAT",
        choices=INSTALLABLE,
        help="`toxiproxy`: the server that runs on real processes need, found on this machine or built; "
        "`class-archive`: an archive of the classes that Spark loads (160 MB), with which it starts sooner",
    )
    instead.add_argument(
        "--prune",
        action="store_true",
        help="remove kept histories, kept runs on real processes, tables that such runs have left in your PostgreSQL, "
        "and caches; reports and what was installed stay",
    )


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    if options.prune:
        return _prune(options.out, output)
    if options.install:
        return _install(options, output)
    findings: list[doctor.Finding] = []
    with progress_of(options) as progress:
        progress.step("examining the machine, and starting Spark")
        for finding in doctor.examine(options.out):
            findings.append(finding)
            progress.step("starting Spark" if finding.what == "Java" else "examining the machine")
    health = doctor.health(findings)
    for finding in findings:
        sign = "ok     " if finding.found else "MISSING" if finding.needed else "-      "
        output.say(f"{sign}  {finding.what:<14} {finding.found or finding.advice}")
    output.say("all that is needed is there" if health.ok else "something that is needed is missing")
    output.result(health)
    return ExitCode.HELD if health.ok else ExitCode.HARNESS_FAILED


def _install(options: argparse.Namespace, output: Output) -> ExitCode:
    if options.install == "class-archive":
        return _install_archive(options, output)
    from ..toxiproxy import program as toxiproxy

    with progress_of(options) as progress:
        progress.step("looking for Toxiproxy")
        server = toxiproxy.install(progress)
    version = toxiproxy.version(server)
    output.say(f"Toxiproxy {version} is there: {server}")
    output.result({"format": "cutproof-install/1", "server": options.install, "version": version, "path": str(server)})
    return ExitCode.HELD


def _install_archive(options: argparse.Namespace, output: Output) -> ExitCode:
    from ...properties.spark import archive_making
    from ...properties.spark.session.errors import SparkUnavailable

    with progress_of(options) as progress:
        progress.step("starting Spark, and archiving the classes that it loads")
        try:
            path, was_there = archive_making.install()
        except SparkUnavailable as error:
            raise HarnessFailed(str(error)) from None
    size = path.stat().st_size
    output.say(
        f"the archive of Spark's classes {'was there already' if was_there else 'is there'}: {path}, {size >> 20} MB"
    )
    output.result({"format": "cutproof-install/1", "installed": options.install, "path": str(path), "bytes": size})
    return ExitCode.HELD


def _prune(out: Path, output: Output) -> ExitCode:
    from ...properties.spark.session.java import cache_folder
    from ..reference_engine.services import places

    caches = [folder for folder in sorted(cache_folder().iterdir()) if folder.name not in INSTALLABLE]
    pruned = doctor.prune(out, caches, places.runs())
    cleared, failed = doctor.clear_database()
    output.say(f"removed {pruned.files} files, {pruned.bytes / 2**20:.1f} MB; {pruned.runs} kept runs among them")
    if cleared:
        output.say(f"removed what {cleared} runs had left in PostgreSQL")
    for line in failed:
        output.say(line)
    output.result(
        {
            "format": "cutproof-prune/1",
            "files": pruned.files,
            "bytes": pruned.bytes,
            "runs": pruned.runs,
            "databases": cleared,
            "failed": failed,
        }
    )
    return ExitCode.HARNESS_FAILED if failed else ExitCode.HELD
