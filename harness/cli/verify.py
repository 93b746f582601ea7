"""`cutproof verify`: draw scenarios, run them, judge them, report."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..exit_codes import ExitCode, UsageError
from .options import add_subject, count, duration, seed
from .output import Output

PROFILES = ("smoke", "default", "nightly")

DESCRIPTION = """\
Draws scenarios (a workload, its layout, an engine configuration, and what goes
wrong), runs each on the subject, and judges every recorded history against what
PySpark says the answer is. Failures are shrunk until they read as a story. The
same seed and version draw the same scenarios.

The run folder gets summary.json, report.html, junit.xml, scenarios.jsonl and
counterexamples/, each replayable alone with `cutproof replay`."""

EXAMPLES = """\
examples:
  cutproof verify                                    a minute on the reference engine
  cutproof verify --subject my.engine:Engine --scenarios 200 --seed 7
  cutproof verify --workload list                    what has a name
  cutproof verify --workload two-input-alignment     one of the documents' examples
  cutproof verify --workload flights                 real data, in slices
  cutproof verify --workload mine.toml --input day.parquet
  cutproof verify --defect A01                       see it fail, with a story
  cutproof verify --tamper                           see that the judge has teeth

exit codes: 0 held, 1 violated, 2 bad input, 3 fell short of what the profile has to
show, 4 the harness failed, 130 interrupted"""


def configure(parser: argparse.ArgumentParser) -> None:
    drawn = parser.add_argument_group("what is drawn")
    drawn.add_argument(
        "--profile",
        choices=PROFILES,
        default="default",
        help="how much, and what has to be shown: smoke (seconds), default (at most a minute on 2 cores), nightly",
    )
    drawn.add_argument("--scenarios", metavar="N", type=count, help="so many scenarios, in place of the profile's")
    drawn.add_argument("--time", metavar="TIME", type=duration, help="stop drawing after this long: 60s, 5m, 1h")
    drawn.add_argument("--seed", metavar="S", type=seed, help="draw from this seed; else one is drawn, and printed")
    drawn.add_argument(
        "--workload",
        metavar="NAME|FILE|list",
        help="a named workload, an example, or a workload file (.toml, .json); `list` shows the names",
    )
    drawn.add_argument(
        "--input",
        metavar="FILE",
        type=Path,
        help="a CSV or Parquet file in place of the one that the workload file names",
    )
    tested = parser.add_argument_group("what is tested")
    add_subject(tested)
    tested.add_argument(
        "--tamper",
        action="store_true",
        help="show that the judge has teeth on this engine: drop, repeat or alter a committed row, or move a cut, "
        "in recorded histories, and demand that the verdict turns",
    )
    kept = parser.add_argument_group("what is kept")
    kept.add_argument("--out", metavar="DIR", type=Path, help="the run folder (a new one under out/)")
    kept.add_argument("--keep-histories", action="store_true", help="keep every history, not only those of failures")
    kept.add_argument("--stop-at-first", action="store_true", help="stop at the first violated scenario")
    kept.add_argument(
        "--known-failures",
        metavar="FILE",
        type=Path,
        help="a file of failures that are expected until a day, each with its reason",
    )


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    raise UsageError("not joined")
