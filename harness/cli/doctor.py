"""`cutproof doctor`: what this machine has and lacks."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import doctor
from ..exit_codes import ExitCode
from .options import progress_of
from .output import Output

DESCRIPTION = """\
Says what this machine has, what it lacks and how to get it: Python, the packages,
Java, whether Spark starts, room on the disk, and a browser (for one test only)."""

EXAMPLES = """\
examples:
  cutproof doctor
  cutproof doctor --json
  cutproof doctor --prune          remove the kept histories of past runs, and the caches

exit codes: 0 all that is needed is there, 4 something is missing"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("out"), help="where runs are kept (out)")
    parser.add_argument("--prune", action="store_true", help="remove kept histories and caches; reports stay")


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    if options.prune:
        return _prune(options.out, output)
    findings: list[doctor.Finding] = []
    with progress_of(options) as progress:
        progress.step("looking around, and starting Spark")
        for finding in doctor.examine(options.out):
            findings.append(finding)
            progress.step("starting Spark" if finding.what == "Java" else "looking around")
    health = doctor.health(findings)
    for finding in findings:
        sign = "ok     " if finding.found else "MISSING" if finding.needed else "-      "
        output.say(f"{sign}  {finding.what:<14} {finding.found or finding.advice}")
    output.say("all that is needed is there" if health.ok else "something that is needed is missing")
    output.result(health)
    return ExitCode.HELD if health.ok else ExitCode.HARNESS_FAILED


def _prune(out: Path, output: Output) -> ExitCode:
    from ...properties.spark.java import cache_folder

    pruned = doctor.prune(out, [cache_folder()])
    output.say(f"removed {pruned.files} files, {pruned.bytes / 2**20:.1f} MB")
    output.result({"format": "cutproof-prune/1", "files": pruned.files, "bytes": pruned.bytes})
    return ExitCode.HELD
