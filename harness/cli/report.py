"""`cutproof report`: write a run folder's report, or the page of a bank's nights, again."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..runtime.exit_codes import ExitCode, UsageError
from .terminal.options import progress_of
from .terminal.output import Output

FORMAT = "cutproof-report/1"

DESCRIPTION = """\
Writes report.html and junit.xml of a run folder again, from the folder's other files: after
an upgrade, or if they could not be written because the disk was full. For the bank of
`cutproof chaos` it writes the page of the nights, nights.html, and the files beside it."""

EXAMPLES = """\
examples:
  cutproof report out/latest
  cutproof report cutproof-bank

exit codes: 0 written, 2 neither a run folder nor a bank, 4 it could not be written"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="RUNDIR", type=Path, help="the folder of a run, with its summary.json, or a bank"
    )


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    from ...reports.junit import render_junit
    from ..chaos.records import BANK, NIGHTS
    from ..counterexamples.store import JUNIT, REPORT, read_view, rendered
    from ..scenario.files import write_whole

    folder: Path = options.folder
    if not folder.is_dir():
        raise UsageError(f"there is no run folder {folder}")
    if (folder / BANK).exists() or (folder / NIGHTS).is_dir():
        return _of_bank(folder, options, output)
    with progress_of(options) as progress:
        progress.step("writing the report")
        view = read_view(folder)
        html, junit = rendered(view), render_junit(view.summary).encode("utf-8", "backslashreplace")
        write_whole(folder / REPORT, html)
        write_whole(folder / JUNIT, junit)
    output.say(f"written: {folder / REPORT} and {folder / JUNIT}")
    output.result({"format": FORMAT, "report": str(folder / REPORT), "junit": str(folder / JUNIT)})
    return ExitCode.HELD


def _of_bank(folder: Path, options: argparse.Namespace, output: Output) -> ExitCode:
    from ..chaos.pages import pages_of_bank

    with progress_of(options) as progress:
        progress.step("writing the page of the nights")
        page, junit, *_ = pages_of_bank(folder, output.complain)
    output.say(f"written: {page} and {junit}")
    output.result({"format": FORMAT, "report": str(page), "junit": str(junit)})
    return ExitCode.HELD
