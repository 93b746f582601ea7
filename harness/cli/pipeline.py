"""`cutproof pipeline`: pipelines of users, run from outside."""

from __future__ import annotations

import argparse

from ..runtime.exit_codes import ExitCode, UsageError
from .terminal.options import progress_of
from .terminal.output import Output

DESCRIPTION = """\
Pipelines that are run from outside. A file (cutproof-pipeline/1, TOML) says how a pipeline is
started, fed, read and killed, and what it computes. `list` names the pipelines of the package.
`try` starts one without any fault, gives it ten records, reads their rows, and says of each
entry of the file whether it works. If all do, it kills the pipeline once, to see whether a
restore shows, and requests each command that stops its job, and the one that resumes it.
`cutproof verify --pipeline FILE` kills it in many scenarios."""

EXAMPLES = """\
examples:
  cutproof pipeline list
  cutproof pipeline try pipeline.toml
  cutproof verify --pipeline pipeline.toml

exit codes of try: 0 every entry works, 3 some do not, 2 the file cannot be used"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "try"), help="list the pipelines of the package, or try one")
    parser.add_argument("pipeline", metavar="FILE|NAME", nargs="?", help="the pipeline to try")


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    if options.action == "list":
        return list_pipelines(output)
    if options.pipeline is None:
        raise UsageError("name the pipeline to try: a file, or a name that `cutproof pipeline list` shows")
    return _try(options, output)


def list_pipelines(output: Output) -> ExitCode:
    """Print the pipelines of the package, and what each needs."""
    from ..user_pipelines.library import listed

    found = listed()
    rows = [(one.name, "yes" if one.installed else "no", one.about) for one in found]
    output.table(("name", "installed", "about"), rows)
    for one in found:
        if one.installed and one.fetches:
            output.say(f"The first run of {one.name} fetches {', '.join(one.fetches)}.")
    output.result({"format": "cutproof-pipelines/1", "pipelines": found})
    return ExitCode.HELD


def _try(options: argparse.Namespace, output: Output) -> ExitCode:
    from ..user_pipelines.library import path_of
    from ..user_pipelines.subject import PipelineSubject
    from ..user_pipelines.trial import tried

    subject = PipelineSubject(path_of(options.pipeline))
    subject.check()
    with progress_of(options) as progress:
        subject.prepare(progress)
        checks = tried(subject, progress.step)
    output.table(("entry", "works", "seen"), [(one.entry, "yes" if one.ok else "NO", one.seen) for one in checks])
    output.result({"format": "cutproof-pipeline-trial/1", "pipeline": str(subject.pipeline.path), "checks": checks})
    return ExitCode.HELD if all(one.ok for one in checks) else ExitCode.FELL_SHORT
