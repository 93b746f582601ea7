"""`cutproof verify`: draw scenarios, run them, judge them, report."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...properties.model.verdict import Violated
from ..runtime.exit_codes import ExitCode, UsageError
from ..subject.names import subject_called
from ..subject.port import check, closing, prepare
from .terminal.keep import keep_run
from .terminal.options import (
    add_master,
    add_subject,
    count,
    duration,
    duration_or_none,
    printed,
    progress_of,
    refuse_for_system,
    seed,
)
from .terminal.output import Output
from .terminal.printing import print_summary, print_tampering, print_verdicts
from .vary import pipeline_called, verify_variants

if TYPE_CHECKING:
    from ..examples import AnyExample
    from ..examples.run import CompanionRun, ExampleRun
    from ..scenario.model import Scenario
    from ..search.campaign import Verified
    from ..search.verification import Request
    from ..subject.port import Subject
    from ..workloads.inputs import LoadedWorkload

PROFILES = ("smoke", "default", "nightly")
TAMPERED_IN_REAL_TIME = 30
"""how many histories are mutated, if each run costs seconds"""

DESCRIPTION = """\
Draws scenarios, runs each on the subject, and judges every recorded history against the
rows that PySpark computes. A scenario is a workload, its topology, an engine
configuration with aligned or unaligned checkpoints, and faults. A scenario that fails is
shrunk until its story is short. The same seed and version draw the same scenarios.

With the simulated engine a verification also has companion runs. For every 20 scenarios
it runs a system of processes (any graph), takes general snapshots of it, and judges them
by causality. One of every 40 jobs also runs as a batch, which must commit the same rows
as the stream.

The run folder gets summary.json, report.html, junit.xml, scenarios.jsonl and
counterexamples/. `cutproof replay` runs any one counterexample again."""

EXAMPLES = """\
examples:
  cutproof verify                                    a minute on the reference engine
  cutproof verify --subject processes --time 5m      the same engine as real processes
  cutproof verify --subject my.engine:Engine --scenarios 200 --seed 7
  cutproof verify --subject list                     what can be tested here, and how fast
  cutproof verify --workload list                    list the names
  cutproof verify --workload two-input-alignment     one of the documents' examples
  cutproof verify --workload spilling-arithmetic --out o   an example that measures; its report has curves
  cutproof verify --workload flights                 real data, in slices
  cutproof verify --workload mine.toml --input day.parquet
  cutproof verify --defect A01                       watch a planted defect fail, with its story
  cutproof verify --pipeline iceberg-spark --vary version=1.4.3,1.5.0   two versions, the same scenarios
  cutproof verify --profile nightly --master spark://host:7077   on the executors of a Spark cluster
  cutproof verify --tamper                           see that the judge notices errors

exit codes: 0 held; 1 violated: both judges saw it, or one where PySpark is not asked
about it; 2 bad input; 3 fell short of what the profile has to show; 4 the harness
failed, or the two judges disagree; 130 interrupted"""


def configure(parser: argparse.ArgumentParser) -> None:
    drawn = parser.add_argument_group("what is drawn")
    drawn.add_argument(
        "--profile",
        choices=PROFILES,
        default="default",
        help="how many scenarios are drawn, and what the run has to show: smoke (seconds), default (at most a minute "
        "on 2 cores; some minutes on processes), nightly",
    )
    drawn.add_argument("--scenarios", metavar="N", type=count, help="run N scenarios instead of the profile's number")
    drawn.add_argument("--time", metavar="TIME", type=duration, help="stop drawing after this long: 60s, 5m, 1h")
    drawn.add_argument(
        "--seed", metavar="S", type=seed, help="draw from this seed; without it a seed is drawn, and printed"
    )
    drawn.add_argument(
        "--workload",
        metavar="NAME|FILE|list",
        help="a named workload, an example, or a workload file (.toml, .json); `list` shows the names",
    )
    drawn.add_argument(
        "--input",
        metavar="FILE",
        type=Path,
        help="a CSV or Parquet file that replaces the one in the workload file",
    )
    tested = parser.add_argument_group("what is tested")
    add_subject(tested)
    tested.add_argument(
        "--pipeline",
        metavar="FILE|NAME|list",
        help="a pipeline, run from outside: one that `list` names, or a file "
        "(cutproof-pipeline/1) that says how it is started, fed, "
        "read and killed",
    )
    tested.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="another value for a parameter of the pipeline's file; may be repeated",
    )
    tested.add_argument(
        "--vary",
        metavar="NAME=A,B",
        help="run the same scenarios with each of these values of a parameter of the pipeline's file, and set the "
        "runs side by side: what one violates and the other does not",
    )
    tested.add_argument(
        "--tamper",
        action="store_true",
        help="show that the judge notices errors: mutate recorded histories of this engine (drop, repeat or alter a "
        "committed row, or move a cut), and require that each verdict changes",
    )
    tested.add_argument(
        "--workers",
        metavar="N",
        type=count,
        help="scenarios that run at the same time (default: as many as suit machine and subject)",
    )
    add_master(tested, "run the scenarios on a Spark cluster instead of this machine's cores")
    kept = parser.add_argument_group("what is kept")
    kept.add_argument("--out", metavar="DIR", type=Path, help="the run folder (a new one under out/)")
    kept.add_argument("--keep-histories", action="store_true", help="keep every history, not only those of failures")
    kept.add_argument(
        "--stop-at-first", action="store_true", help="stop at the first violated scenario, in the order of drawing"
    )
    kept.add_argument(
        "--shrink-time",
        metavar="TIME",
        type=duration_or_none,
        help="if a run costs seconds, as those of a pipeline: how long the scenarios of one cause are run again, to "
        "shrink and to repeat them (2m); 0 keeps them as they were found",
    )
    kept.add_argument(
        "--known-failures",
        metavar="FILE",
        type=Path,
        help="a file of failures that are expected until a given day, each with its reason",
    )
    printed(parser).add_argument(
        "--verbose",
        action="store_true",
        help="more than one screen: also the ways to end, the coverage, what never fired, why PySpark was not asked, "
        "and each counterexample's story, as in the report; with --tamper a line for each mutation",
    )


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    if options.workload == "list":
        return _list(output)
    if options.subject == "list":
        from .subject import list_subjects

        return list_subjects(output)
    if options.pipeline == "list":
        from .pipeline import list_pipelines

        return list_pipelines(output)
    if options.pipeline is None and (options.vary or options.set):
        raise UsageError("--set and --vary give values to the parameters of a pipeline's file; name it with --pipeline")
    _refuse_with_master(options)
    if options.vary is not None:
        return verify_variants(options, output, lambda names: _prepare(names, options), _verify_one)
    if options.pipeline is not None:
        options.subject = pipeline_called(options)
    with _subject(options) as subject:
        return _run(subject, options, output)


@contextlib.contextmanager
def _subject(options: argparse.Namespace) -> Iterator[Subject]:
    """The subject that the options name, with all that it needs; it is closed at the end."""
    with closing(subject_called(options.subject, options.defect)) as subject:
        check(subject)
        with progress_of(options) as progress:
            prepare(subject, progress)
        yield subject


def _prepare(names: Iterable[str], options: argparse.Namespace) -> None:
    """Check all subjects, and fetch what they need, before any of them is verified."""
    for name in names:
        with closing(subject_called(name, options.defect)) as subject, progress_of(options) as progress:
            check(subject)
            prepare(subject, progress)


def _verify_one(options: argparse.Namespace, output: Output) -> Verified:
    with _subject(options) as subject:
        return _verified(_request(options, None, subject), subject, options, output)


def _run(subject: Subject, options: argparse.Namespace, output: Output) -> ExitCode:
    from ..examples import Example
    from ..examples.pipelines.claims import PipelineExample
    from ..examples.systems.claims import SystemExample
    from ..workloads import library as workloads

    if options.workload is None and options.input is None:
        chosen = None
    else:
        with progress_of(options) as progress:
            progress.step("reading the workload")
            chosen = workloads.find(options.workload or workloads.BY_COLUMNS, options.input)
    if isinstance(chosen, Example | SystemExample | PipelineExample):
        if options.master is not None:
            raise UsageError(f"{options.workload} is one example, to which --master does not apply; leave it out")
        return _example(chosen, subject, options, output)
    if options.master is not None:
        from ..spread.pool import demand_spreadable

        demand_spreadable(subject, options.subject)
    request = _request(options, chosen, subject)
    if options.tamper:
        return _tamper(request, subject, options, output)
    return _verify(request, subject, options, output)


def _list(output: Output) -> ExitCode:
    from ..workloads.library import listing

    listed = listing()
    output.table(("name", "kind", "about"), [(one.name, one.kind, one.about) for one in listed])
    output.result({"format": "cutproof-workloads/1", "workloads": listed})
    return ExitCode.HELD


def _request(options: argparse.Namespace, chosen: LoadedWorkload | None, subject: Subject) -> Request:
    from ..search.verification import Request, drawn_seed
    from ..shrink.on_subject import REAL_TIME_S

    return Request(
        subject=options.subject,
        defect=options.defect,
        profile=options.profile,
        scenarios=options.scenarios,
        seconds=options.time,
        seed=drawn_seed() if options.seed is None else options.seed,
        workload=chosen,
        stop_at_first=options.stop_at_first,
        keep_histories=options.keep_histories,
        real_time=subject.capabilities.real_time,
        workers=options.workers,
        functions=tuple(options.functions),
        shrink_s=REAL_TIME_S if options.shrink_time is None else options.shrink_time,
        master=options.master,
    )


def _verify(request: Request, subject: Subject, options: argparse.Namespace, output: Output) -> ExitCode:
    verified = _verified(request, subject, options, output)
    output.result(verified.summary)
    return verified.exit_code


def _verified(request: Request, subject: Subject, options: argparse.Namespace, output: Output) -> Verified:
    """Run the campaign, and print its summary."""
    from ..counterexamples.store import RunFolder
    from ..search import known_failures
    from ..search.campaign import verify_campaign
    from ..search.verification import campaign_of, new_folder, point_latest

    known = known_failures.read(options.known_failures or known_failures.default())
    out = options.out or new_folder(request.seed)
    where = f", on {request.master}" if request.master is not None else ""
    output.say(f"seed {request.seed}, {subject.name}, profile {request.profile}{where}")
    with progress_of(options) as progress, RunFolder(out) as folder:
        verified = verify_campaign(campaign_of(request), folder=folder, known=known, progress=progress)
    if options.out is None:
        point_latest(out)
    print_summary(verified.summary, out, output, verbose=options.verbose)
    return verified


def _example(example: AnyExample, subject: Subject, options: argparse.Namespace, output: Output) -> ExitCode:
    """The page of a scenario is always kept.  The page of another kind is kept only in a folder that the user names,
    since to measure its figures takes longer than to run the example."""
    from ..examples.example_report import REPORT
    from ..examples.report import keep_report
    from ..examples.run import run_any
    from ..examples.trials import Trials
    from ..search.oracle import PySpark
    from ..search.verification import new_folder

    _refuse_options_of_subjects(example, options)
    out = options.out
    with progress_of(options) as progress:
        trials = Trials(subject, progress.step)
        progress.step(f"running {example.name}")
        done = run_any(example, trials, PySpark())
        if done.result is not None:
            out = out or new_folder(example.name)
            keep_run(out, done.result.scenario, done.result.history)
        if out is not None:
            progress.step("measuring its figures")
            keep_report(out, done, trials, progress=progress.step, replay=_again(options))
    _print_example(done.run, output)
    for words in done.run.disagreements:
        output.say(f"the two judges disagree: {words}")
    if out is not None:
        output.say(f"report: {out / REPORT}")
    output.result(done.run)
    return done.run.exit_code


def _refuse_with_master(options: argparse.Namespace) -> None:
    """Raise UsageError for what a cluster's executors cannot do."""
    if options.master is None:
        return
    if options.pipeline is not None:
        raise UsageError("--master does not go with --pipeline: a pipeline's processes run on this machine")
    if options.tamper:
        raise UsageError("--master does not go with --tamper: histories are mutated in this process")
    if options.workers is not None:
        raise UsageError("--master does not go with --workers: as many scenarios run as the cluster has cores")


def _refuse_options_of_subjects(example: AnyExample, options: argparse.Namespace) -> None:
    """Raise UsageError for options about an engine, if no engine runs the example."""
    from ..examples.pipelines.claims import PipelineExample
    from ..examples.systems.claims import SystemExample

    elsewhere = {"--subject": options.subject != "simulated", "--defect": options.defect, "--tamper": options.tamper}
    match example:
        case SystemExample():
            refuse_for_system(example.name, elsewhere)
        case PipelineExample():
            refuse_for_system(example.name, elsewhere, "a pipeline of bytes")


def _again(options: argparse.Namespace) -> str:
    """The command line that runs the same example again."""
    words = ["cutproof", "verify", "--workload", options.workload]
    words += ["--subject", options.subject] if options.subject != "simulated" else []
    words += ["--defect", options.defect] if options.defect is not None else []
    return shlex.join(words)


def _print_example(run: ExampleRun, output: Output) -> None:
    output.say(f"{run.name}: {run.about}")
    output.say(f"from {run.document}")
    output.say()
    for claim in run.claims:
        word = "assumed" if claim.assumed else "shown" if claim.shown else "NOT SHOWN"
        output.say(f'{word:9}  "{claim.text}"')
        output.say(f"           {claim.evidence}")
    output.say()
    print_verdicts(run.verdicts, output)
    if run.companions:
        output.say()
        output.table(("compared with", "outcome", ""), [(one.name, one.outcome, _why(one)) for one in run.companions])
    for one in run.companions:
        for name, verdict in one.against.items():
            output.say(f"{one.name}: {name} is violated: {verdict.difference} ({verdict.message})")


def _why(one: CompanionRun) -> str:
    """The violated invariants of a companion run, or why it could not be run."""
    if one.problem:
        return one.problem
    violated = [name for name, verdict in one.verdicts.items() if isinstance(verdict, Violated)]
    return f"{', '.join(violated)} violated" if violated else ""


def _tamper(request: Request, subject: Subject, options: argparse.Namespace, output: Output) -> ExitCode:
    from ...reports.model import NotRun
    from ..counterexamples.store import COUNTEREXAMPLES
    from ..scenario.files import text_of, write_whole
    from ..search.campaign import replay_command
    from ..search.verification import new_folder, plan_of
    from ..search.worker import check_given, drawer
    from ..self_check.tamper import SCENARIOS, tamper

    plan = plan_of(request)
    check_given(plan, subject.capabilities)
    draw = drawer(plan, subject)
    out = options.out or new_folder(request.seed)
    output.say(f"seed {request.seed}, {subject.name}")

    def keep(number: int, scenario: Scenario) -> NotRun:
        path = out / COUNTEREXAMPLES / f"undriven-{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text_of(scenario).encode())
        relative = str(path.relative_to(out))
        return NotRun(number=number, reason="", scenario=relative, replay=replay_command(plan, out, relative))

    with progress_of(options) as progress:
        report = tamper(
            subject,
            draw,
            seed=request.seed,
            scenarios=request.scenarios or (TAMPERED_IN_REAL_TIME if request.real_time else SCENARIOS),
            time_s=request.seconds,
            progress=progress,
            keep=keep,
        )
    print_tampering(report, output, verbose=options.verbose)
    output.result(report)
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.not_run:
        return ExitCode.HARNESS_FAILED
    return ExitCode.HELD if report.has_teeth else ExitCode.FELL_SHORT
