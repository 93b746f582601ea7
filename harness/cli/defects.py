"""`cutproof defects`: the planted defects, and whether they are caught."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode, UsageError
from .options import count, seed
from .output import Output

DESCRIPTION = """\
The planted defects: deliberately wrong variants of single decisions of the reference
engine, each modelled on a real bug. `list` names them. `run` demands that they are
caught: the invariant named beforehand is violated, the wrong code itself ran, and the
same scenario holds and is exercised on the unmodified engine."""

EXAMPLES = """\
examples:
  cutproof defects list
  cutproof defects run A01 E03
  cutproof defects run --all --json

exit codes of run: 0 all were caught, 3 some were not reached or not caught, 2 no such defect"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "run"), help="list them, or run them")
    parser.add_argument("ids", metavar="ID", nargs="*", help="the defects to run")
    parser.add_argument("--all", action="store_true", help="run every one")
    parser.add_argument(
        "--scenarios", metavar="N", type=count, default=400, help="draw at most N scenarios for each (400)"
    )
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="draw from this seed (0)")


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    raise UsageError("not joined")
