"""`cutproof replay`: run one scenario file again, and print its story."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ..runtime.exit_codes import ExitCode, UsageError
from ..runtime.progress import Progress
from ..subject.names import BUILT, subject_called
from ..subject.port import Continuing, Subject, closing, prepare
from .terminal.confirm import add_quick, ask, begin, exit_code, seen_by
from .terminal.keep import keep_run
from .terminal.options import add_subject, count, progress_of, refuse_for_system
from .terminal.output import Output
from .terminal.printing import print_events, print_rows, print_verdicts

if TYPE_CHECKING:
    from ..counterexamples.replay import Replayed
    from ..reference_engine.graphs.system import System
    from ..scenario.model import Scenario

FORMAT = "cutproof-replay/1"

DESCRIPTION = """\
Runs one scenario file again and prints its story: the job, the faults and what they hit,
what was planned and did not happen, the closing cut, the committed and the expected
rows, and the verdicts. In virtual time every run of a scenario is the same: `--json` has
trace_sha256, a digest of the run's events in their order. On real processes runs differ,
and a failure that depends on a race shows only in some of them: `--runs N` counts in how
many.

A scenario that was found with a planted defect names the defect, and is replayed with it.
A system of processes (a file in the format cutproof-graph/1) runs in the simulator, and its
general snapshots are judged by causality."""

EXAMPLES = """\
examples:
  cutproof replay out/latest/counterexamples/ID.json
  cutproof replay out/latest/scenarios.jsonl:20     scenario 20 of a run, as it was drawn
  cutproof replay tests/kept.cutproof.json --subject my.engine:Engine
  cutproof replay ID.json --defect none     the same scenario on the unmodified engine
  cutproof replay ID.json --subject processes --runs 10
  cutproof replay ID.json --snapshots kept  its snapshots stay in kept/
  cutproof replay ID.json --from kept --subject processes     a job on processes begins there
  cutproof replay batch-ID.json --batch     as a stream and as a batch: both commit the same rows

exit codes: 0 held, 1 violated, 2 the file is missing or cannot be read, 4 the harness failed"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario",
        metavar="SCENARIO.json",
        type=Path,
        help="a scenario file, yours or a run's; or a scenario of a run by its number, as in scenarios.jsonl:20",
    )
    add_subject(parser)
    parser.add_argument(
        "--runs", metavar="N", type=count, default=1, help="run it N times, and count the violated runs (1)"
    )
    parser.add_argument(
        "--batch",
        action="store_true",
        help="run its job as a stream to the end and as a batch, and compare the committed rows",
    )
    parser.add_argument(
        "--snapshots",
        metavar="DIR",
        type=Path,
        help="leave the snapshots of the run in a new directory, from which jobs can begin",
    )
    parser.add_argument(
        "--from",
        metavar="DIR",
        dest="begins",
        type=Path,
        help="begin from a snapshot in a directory: one that --snapshots or a fork has made, or a saved run",
    )
    parser.add_argument(
        "--snapshot", metavar="N", help="which snapshot of that directory: its number, or newest (newest)"
    )
    parser.add_argument("--story", action="store_true", help="print the story event by event, not only its main points")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write scenario, history and a report into DIR")
    add_quick(parser)


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    from ..counterexamples.replay import replay, report_of
    from ..counterexamples.store import write_report
    from ..scenario.by_number import scenario_at
    from ..scenario.files import as_written
    from ..scenario.system_files import SystemFile, is_system, read_system
    from ..workloads.user_functions import demand

    with progress_of(options) as progress:
        progress.step(f"reading {options.scenario.name}")
        scenario = read_system(options.scenario) if is_system(options.scenario) else scenario_at(options.scenario)
    if isinstance(scenario, SystemFile):
        elsewhere = {"--subject": options.subject != "simulated", "--defect": options.defect}
        of_jobs = {"--from": options.begins, "--snapshots": options.snapshots}
        refuse_for_system(
            str(options.scenario), {**elsewhere, **of_jobs, "--runs": options.runs > 1, "--out": options.out}
        )
        return _replay_system(scenario.system, options, output)
    demand(scenario.workload)
    if options.batch:
        return _both_ways(scenario, options, output)
    with closing(subject_called(options.subject, _defect(options, scenario))) as subject:
        with progress_of(options) as progress:
            prepare(subject, progress)
            scenario = _with_snapshots(subject, scenario, options, progress)
        oracle = begin(options)
        with progress_of(options) as progress, as_written(options.scenario):
            progress.step(f"replaying {options.scenario.name}", options.runs if options.runs > 1 else None)
            replayed = replay(subject, scenario, runs=options.runs, on_run=progress.advance)
    _print(replayed, output, every_event=options.story)
    with progress_of(options) as progress:
        word = ask(oracle, scenario, replayed.history, replayed.judgement, progress)
    code = exit_code(replayed.judgement, word, output)
    if options.out is not None:
        with progress_of(options) as progress:
            progress.step("writing the report")
            keep_run(options.out, replayed.scenario, replayed.history)
            write_report(options.out, report_of(replayed, subject.name, _command(options), word))
        output.say(f"kept in {options.out}, with its report.html")
    judges = {"seen_by": seen_by(replayed.judgement, word), "not_asked": word.unasked}
    run = _result(replayed, subject.name, options.scenario)
    output.result({**run, **judges, "disagreements": word.disagreements})
    return code


def _with_snapshots(subject: Subject, scenario: Scenario, options: argparse.Namespace, progress: Progress) -> Scenario:
    """Have the run begin from a snapshot, or leave its snapshots; the scenario by which it is judged.  Raises
    UsageError."""
    if options.snapshot is not None and options.begins is None:
        raise UsageError("--snapshot names a snapshot of a directory; name the directory with --from")
    if options.begins is None and options.snapshots is None:
        return scenario
    if not isinstance(subject, Continuing):
        raise UsageError(
            "--from and --snapshots go with the subjects simulated and processes, which have such snapshots"
        )
    if options.snapshots is not None:
        if options.runs > 1:
            raise UsageError("--snapshots leaves the snapshots of one run; leave out --runs")
        subject.leave_in(options.snapshots)
    if options.begins is None:
        return scenario
    progress.step(f"reading {options.begins.name}")
    return subject.begin_from(options.begins, options.snapshot or "newest", scenario)


def _replay_system(system: System, options: argparse.Namespace, output: Output) -> ExitCode:
    """Replay a system of processes and channels, in its own world; causality judges it."""
    from ..counterexamples.system_story import sentences
    from ..reference_engine.graphs.run import run_and_judge

    with progress_of(options) as progress:
        progress.step(f"replaying {options.scenario.name}")
        run = run_and_judge(system)
    for sentence in sentences(run.history):
        output.say(sentence)
    output.say()
    print_verdicts({"consistent-cut": run.verdict}, output)
    output.say(f"trace sha256 {run.trace_sha256}")
    output.result({"format": FORMAT, "scenario": str(options.scenario), "outcome": run.outcome,
                   "verdicts": {"consistent-cut": run.verdict}, "trace_sha256": run.trace_sha256})  # fmt: skip
    return ExitCode.VIOLATED if run.outcome == "violated" else ExitCode.HELD


def _both_ways(scenario: Scenario, options: argparse.Namespace, output: Output) -> ExitCode:
    """Run the scenario's job, with inputs that end, as a stream and as a batch of the reference engine (FIN-6)."""
    from ...properties.model.verdict import Violated
    from ..reference_engine.streaming_batch import as_bounded
    from ..scenario.files import as_written
    from ..search.batches import both_ways
    from ..search.outcome import BatchOutcome

    elsewhere = {"--subject": options.subject != "simulated", "--defect": options.defect, "--runs": options.runs > 1,
                 "--out": options.out, "--story": options.story, "--from": options.begins,
                 "--snapshots": options.snapshots}  # fmt: skip
    if unused := [name for name, given in elsewhere.items() if given]:
        raise UsageError(f"--batch compares two executions of the reference engine; leave out {', '.join(unused)}")
    with progress_of(options) as progress, as_written(options.scenario):
        progress.step(f"replaying {options.scenario.name} as a stream and as a batch")
        verdict = both_ways(as_bounded(scenario))
    print_verdicts({BatchOutcome.invariant: verdict}, output)
    output.result({"format": FORMAT, "scenario": str(options.scenario), "batch": verdict})
    return ExitCode.VIOLATED if isinstance(verdict, Violated) else ExitCode.HELD


def _command(options: argparse.Namespace) -> str:
    """The command line that runs the same again."""
    words = ["cutproof", "replay", str(options.scenario)]
    for name, default in (("subject", "simulated"), ("defect", None), ("runs", 1)):
        value = getattr(options, name)
        words += [f"--{name}", str(value)] if value != default else []
    for name, given in (("from", options.begins), ("snapshot", options.snapshot)):
        words += [f"--{name}", str(given)] if given is not None else []
    for function in options.functions:
        words += ["--function", function]
    return shlex.join(words)


def _defect(options: argparse.Namespace, scenario: Scenario) -> str | None:
    """The defect to plant: the one that was requested, else the one with which the file was found, if the subject
    has defects."""
    if options.defect is not None:
        return None if options.defect == "none" else str(options.defect)
    return scenario.defect or None if options.subject in BUILT else None


def _print(replayed: Replayed, output: Output, *, every_event: bool) -> None:
    from ...properties.model.words import columns_of
    from ...properties.quick_checker.case import Case
    from ...reports.words import foreign_in_words
    from ..counterexamples.story import rows_side_by_side

    scenario, history = replayed.scenario, replayed.history
    for paragraph in (replayed.story.sentence, *replayed.story.paragraphs):
        output.say(paragraph)
        output.say()
    if every_event:
        print_events(history, output)
    print_verdicts(replayed.judgement.verdicts, output)
    if history.sink != "plain":
        case = Case(scenario.workload, scenario.topology, history)
        print_rows(rows_side_by_side(case, prepared=False), columns_of(history), output)
    output.say()
    if replayed.rate.runs > 1:
        output.say(replayed.rate_in_words)
    if history.foreign_connections:
        output.say(foreign_in_words(history.foreign_connections))
    output.say(f"trace sha256 {replayed.trace_sha256}")


def _result(replayed: Replayed, subject: str, path: Path) -> dict[str, object]:
    return {
        "format": FORMAT,
        "scenario": str(path),
        "subject": subject,
        "defect": replayed.scenario.defect,
        "defect_reached": replayed.history.defect_reached,
        "outcome": replayed.judgement.outcome,
        "verdicts": replayed.judgement.verdicts,
        "story": {"sentence": replayed.story.sentence, "paragraphs": replayed.story.paragraphs},
        "trace_sha256": replayed.trace_sha256,
        "runs": replayed.rate.runs,
        "reproduced": replayed.rate.reproduced,
    }
