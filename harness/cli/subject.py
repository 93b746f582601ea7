"""`cutproof subject`: an adapter to begin with, the trial of one, and the list of subjects."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from ...reports.text import WIDTH
from ...reports.words import plural
from ..runtime.config import load
from ..runtime.exit_codes import ExitCode, UsageError, shortened
from ..runtime.progress import Progress
from .terminal.options import progress_of, seed
from .terminal.output import Output

if TYPE_CHECKING:
    from ..subject_kit.listing import Listed
    from ..subject_kit.trial import Trial
    from ..workloads.inputs import LoadedWorkload

PROGRESS_AFTER_S = 1.5
"""a trial that is over before this shows no progress"""
MOST_LINES = 3
PROBLEM = 200
"""how many characters of a problem are printed; --json has all"""

DESCRIPTION = """\
For whoever has an engine. `new NAME` writes the folder NAME: a toy engine, its adapter, tests
that pass, and a checklist. Change the adapter until it drives your engine. `check SUBJECT`
runs a few drawn scenarios, and says which witnesses the histories have, which invariants
these make judgeable, which of the declared faults took effect, and what is missing. It starts
no Spark. `list` names the subjects of this machine."""

EXAMPLES = """\
examples:
  cutproof subject new my_engine
  cutproof subject check my_engine.adapter:Engine
  cutproof subject check my_engine.adapter:Engine --workload mine.toml
  cutproof subject list

exit codes of check: 0 nothing is wrong, 1 a history violates an invariant or is malformed,
2 bad usage, 4 a scenario could not be run"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("new", "check", "list"), help="what to do")
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="of the new folder; or the subject to check: package.module:NAME, `simulated` or `processes`",
    )
    parser.add_argument(
        "--workload",
        metavar="NAME|FILE",
        help="check with this job alone: a named workload, or a workload file (.toml, .json)",
    )
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="draw the scenarios from this seed (0)")


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    if options.action == "list":
        return list_subjects(output, options.name)
    if options.name is None:
        what = "the folder to write" if options.action == "new" else "the subject to check"
        raise UsageError(f"name {what}: cutproof subject {options.action} NAME")
    return _new(options.name, output) if options.action == "new" else _check(options, output)


def list_subjects(output: Output, own: str | None = None) -> ExitCode:
    """Print the list of subjects, with the user's own one: the one that is named, or that of the settings."""
    from ..subject_kit.listing import FORMAT, MACHINE, subjects

    setting = load(Path.cwd()).get("subject")
    named = own or (str(setting.value) if setting is not None else "")
    found = subjects([named] if named else [])
    header = ("subject", "kind", "runs here", "a minute", "judged")
    output.table(header, [_line(one) for one in found])
    output.say()
    for one in found:
        if one.missing:
            output.say(_wrapped(f"{one.name} cannot run here: {one.missing}"))
    note = f"a minute: about how many scenarios `cutproof verify` runs and judges ({MACHINE}); -: not measured."
    output.say(_wrapped(note))
    output.say("judged: how many of the twelve invariants can be judged; --json names them.")
    output.say(
        _wrapped("Your own engine is a subject too: `cutproof subject new NAME` writes an adapter to begin with.")
    )
    output.result({"format": FORMAT, "machine": MACHINE, "subjects": found})
    return ExitCode.HELD


def _line(one: Listed) -> tuple[object, ...]:
    measured = f"{one.per_minute:,}" if one.per_minute is not None else "-"
    return one.name, one.kind, "yes" if one.can_run else "NO", measured, len(one.judged)


def _new(name: str, output: Output) -> ExitCode:
    from ..subject_kit.new import write_new

    files = [str(path) for path in write_new(name, Path.cwd())]
    relative = [str(Path(path).relative_to(Path.cwd())) for path in files]
    output.say(f"{name}/ was written: {', '.join(Path(path).name for path in relative)}")
    commands = [f"pytest {name}", f"cutproof subject check {name}.adapter:Engine"]
    output.say("Next:")
    for command in commands:
        output.say(f"  {command}")
    output.result({"format": "cutproof-subject-new/1", "files": relative, "next": commands})
    return ExitCode.HELD


def _check(options: argparse.Namespace, output: Output) -> ExitCode:
    from ..subject.names import subject_called
    from ..subject.port import check, closing
    from ..subject_kit.trial import tried
    from ..user_pipelines.library import SHIPPED

    if options.name in SHIPPED:
        raise UsageError(f"{options.name} is a pipeline, run from outside: cutproof pipeline try {options.name}")
    with closing(subject_called(options.name)) as subject, progress_of(options) as progress:
        check(subject)
        late = _late(progress, options.name)
        trial = tried(subject, options.name, options.seed, late, workload=_workload(options.workload))
    _print(trial, output, f" --workload {options.workload}" if options.workload is not None else "")
    output.result(trial)
    if trial.is_wrong:
        return ExitCode.VIOLATED
    return ExitCode.HARNESS_FAILED if trial.not_run else ExitCode.HELD


def _workload(name: str | None) -> LoadedWorkload | None:
    """The workload of a name or a file; raises UsageError for an example, which is a scenario of its own."""
    from ..workloads.inputs import LoadedWorkload
    from ..workloads.library import find

    found = find(name) if name is not None else None
    if found is None or isinstance(found, LoadedWorkload):
        return found
    raise UsageError(f"{name} is an example, which `cutproof verify --workload {name}` runs; check takes a workload")


def _late(progress: Progress, name: str) -> Callable[[int, int], None]:
    """Progress that begins once the trial has taken some time."""
    began, shown = time.monotonic(), False

    def report(done: int, total: int) -> None:
        nonlocal shown
        if not shown and time.monotonic() - began >= PROGRESS_AFTER_S:
            progress.step(f"trying {name}", total)
            shown = True
        if shown:
            progress.advance(done)

    return report


def _print(trial: Trial, output: Output, job: str) -> None:
    from ...properties.model.history import WITNESSES

    output.say(f"{trial.subject}: {plural(trial.scenarios, 'scenario')} of seed {trial.seed}, {trial.seconds:.1f} s")
    output.say(trial.pyspark)
    output.say()
    there = [(name, "yes" if has else "NO", ", ".join(WITNESSES[name])) for name, has in trial.witnesses.items()]
    output.table(("witness", "there", "its fields"), there)
    output.say()
    output.table(
        ("invariant", "judgeable", "held", "violated", "unknown"),
        [(one.invariant, one.how, one.held, one.violated, _reasons(one.unknown)) for one in trial.invariants],
    )
    output.say()
    output.table(
        ("fault", "planned", "fired", "then an attempt", "that restored"),
        [(one.kind, one.planned, one.fired, one.restarted, one.restored) for one in trial.faults],
    )
    output.say()
    declared = len(trial.used) + len(trial.unused)
    output.say(f"The trial used {len(trial.used)} of {plural(declared, 'declared capability')}.")
    if trial.unused:
        output.say(_wrapped(f"Not used: {', '.join(trial.unused)}."))
    if trial.to_do:
        output.say("What is missing:")
    for line in trial.to_do:
        output.say(_wrapped(f"- {line}"))
    output.say()
    for what, problems in (
        ("violated", trial.violated),
        ("malformed history", trial.malformed),
        ("could not be run", trial.not_run),
    ):
        for one in problems[:MOST_LINES]:
            output.say(_wrapped(f"{what}: scenario {one.index}: {shortened(one.problem, PROBLEM)}"))
        if len(problems) > MOST_LINES:
            output.say(f"  and {len(problems) - MOST_LINES} more")
    if trial.violated:
        last = min(one.index for one in trial.violated) + 1
        output.say("Shrunk, with its story:")
        output.say(
            f"  cutproof verify --subject {trial.subject} --seed {trial.seed} --scenarios {last} --stop-at-first{job}"
        )
    elif not trial.malformed and not trial.not_run:
        output.say("Nothing is wrong in this trial.")


def _reasons(unknown: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in unknown.items()) or "0"


def _wrapped(text: str) -> str:
    return "\n".join(wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))
