"""`cutproof chaos`: the nightly job over a bank of counterexamples."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...reports.words import plural
from ..runtime.exit_codes import ExitCode, UsageError
from .terminal.options import add_functions, add_master, count, duration, printed, progress_of, seed
from .terminal.output import Output
from .terminal.printing import print_summary

if TYPE_CHECKING:
    from ..chaos.job import ChaosRequest, NightDone, NightSummary

PROFILES = ("smoke", "default", "nightly")
MERGE, INIT = "merge", "init"

DESCRIPTION = """\
The nightly job. It keeps a bank: a folder with every counterexample that its nights found.

A night first replays the bank. Each failure is still failing, flaky, fixed, or no longer
reached; one that is no longer reached is looked for again from its seed. Then the night
explores: it draws scenarios from a seed of the day, in batches that each leave some
features out, and aims at the coverage targets that all nights have hit least and at the
points where failures were found. Last it shrinks what is new. No failure is reported as
new twice.

A night that is killed at any moment loses only the scenarios under way. Only one job can
have a bank open. `chaos merge A B` makes the bank A hold what both hold; B is only read.

With --master a Spark cluster runs the scenarios of all subjects. A night is refused if one of
its subjects cannot run there: `processes`, a pipeline, or any other subject in real time.

A night ends with the page of the nights, nights.html: what to do first, each failure's life
over the nights, trends. Beside it are junit.xml, summary.md for a CI job's page, and new.md,
which is empty unless the night saw something that no night has seen before it. While a night
goes on, the page says that it has not ended.
`chaos init github|gitlab|cron|systemd` writes the file with which a scheduler runs the job."""

EXAMPLES = """\
examples:
  cutproof chaos --bank bank --time 2h
  cutproof chaos --bank bank --time 1h --subject simulated --subject processes
  cutproof chaos --bank bank --time 8h --pipeline kafka --known-failures known.toml
  cutproof chaos --bank bank --time 2h --master spark://host:7077
  cutproof chaos --bank bank --time 30s --defect A01     a planted defect, found and kept
  cutproof chaos merge bank other-machine/bank
  cutproof chaos init github --time 2h --subject processes

exit codes: 0 nothing failed, or only known failures; 1 a failure is new, still failing or
flaky, and not known; 2 bad input, or the bank is in use; 3 nothing failed, but the night
fell short of its profile; 4 the harness failed, or the two judges disagree; 130 interrupted"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        metavar="merge A B | init SCHEDULER",
        nargs="*",
        help="no night, but make the bank A hold what the banks A and B hold; or write the files of a scheduler: "
        "github, gitlab, cron or systemd",
    )
    night = parser.add_argument_group("the night")
    night.add_argument("--bank", metavar="DIR", type=Path, help="the bank; a new one is begun in an empty folder")
    night.add_argument("--out", metavar="DIR", type=Path, help="the folder of the page of the nights (the bank)")
    night.add_argument("--time", metavar="TIME", type=duration, help="how long the night is: 90s, 30m, 2h")
    night.add_argument(
        "--seed", metavar="S", type=seed, help="the seed of the day; without it one is drawn, and printed"
    )
    night.add_argument(
        "--profile",
        choices=PROFILES,
        default="nightly",
        help="the size of the scenarios, and what a night of the profile's length has to show (nightly)",
    )
    night.add_argument("--workload", metavar="NAME|FILE", help="a named workload or a workload file, for all scenarios")
    night.add_argument(
        "--workers", metavar="N", type=count, help="scenarios that run at the same time (as suits the subject)"
    )
    add_master(night, "run and shrink the scenarios on a Spark cluster instead of this machine's cores")
    tested = parser.add_argument_group("what is tested")
    tested.add_argument(
        "--subject",
        metavar="NAME",
        dest="subjects",
        action="append",
        default=[],
        help="an engine, as in `cutproof verify --subject`; may be repeated: the time is divided (simulated)",
    )
    tested.add_argument(
        "--pipeline",
        metavar="FILE|NAME",
        dest="pipelines",
        action="append",
        default=[],
        help="a pipeline that is run from outside, as in `cutproof verify --pipeline`; may be repeated",
    )
    tested.add_argument("--defect", metavar="ID", help="plant a known defect in the engine first")
    add_functions(tested)
    tested.add_argument(
        "--known-failures",
        metavar="FILE",
        type=Path,
        help="a TOML file of failures that are expected until a given day: a table [[failure]] for each, with "
        "invariant, expires and reason",
    )
    printed(parser).add_argument("--verbose", action="store_true", help="more than one screen")


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    _refuse_with_master(options)
    if options.words:
        return _without_a_night(options, output)
    from ..chaos.job import run_night
    from ..chaos.plan import in_words

    request = _request(options)
    where = f", on {request.master}" if request.master is not None else ""
    output.say(f"seed {request.seed}, profile {request.profile}, bank {request.bank}{where}")
    for line in in_words(request.seconds, request.subjects):
        output.say(line)
    with progress_of(options) as progress:
        done = run_night(request, progress=progress, say=output.say)
    _print(done, request.bank, options, output)
    output.result(done.summary)
    return done.exit_code


def _without_a_night(options: argparse.Namespace, output: Output) -> ExitCode:
    action, *words = options.words
    if action == MERGE:
        if options.bank is not None:
            raise UsageError("chaos merge takes no --bank: `cutproof chaos merge A B` makes A hold what both hold")
        return _merge(words, output)
    if action == INIT:
        from .schedules import init

        return init(words, options, output)
    raise UsageError(f"chaos does not know {action!r}; it knows `chaos merge A B` and `chaos init SCHEDULER`")


def _request(options: argparse.Namespace) -> ChaosRequest:
    from ..chaos.job import ChaosRequest
    from ..search import known_failures
    from ..search.verification import drawn_seed, loaded_workload

    for name, value in (("--bank DIR", options.bank), ("--time TIME", options.time)):
        if value is None:
            raise UsageError(f"a night needs {name}; see `cutproof chaos --help`")
    subjects = [*options.subjects, *map(_pipeline, options.pipelines)] or ["simulated"]
    twice = next((one for one in subjects if subjects.count(one) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice; a night has one part for each subject")
    if options.pipelines and options.workload is not None:
        raise UsageError("--workload does not go with --pipeline: the pipeline's file names the job")
    return ChaosRequest(
        bank=options.bank,
        out=options.out,
        seconds=options.time,
        subjects=tuple(subjects),
        seed=drawn_seed() if options.seed is None else options.seed,
        profile=options.profile,
        defect=options.defect,
        workload=loaded_workload(options.workload),
        functions=tuple(options.functions),
        known=options.known_failures or known_failures.default(),
        workers=options.workers,
        master=options.master,
    )


def _refuse_with_master(options: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go with a cluster."""
    if options.master is None:
        return
    if options.pipelines:
        raise UsageError("--master does not go with --pipeline: a pipeline's processes run on this machine")
    if options.workers is not None:
        raise UsageError("--master does not go with --workers: as many scenarios run as the cluster has cores")


def _pipeline(text: str) -> str:
    """The subject's name of a pipeline."""
    from ..user_pipelines.library import path_of
    from ..user_pipelines.subject import name_of_pipeline

    return name_of_pipeline(path_of(text).resolve(), {})


def _merge(words: list[str], output: Output) -> ExitCode:
    from ..chaos.merge import merge
    from ..chaos.pages import pages_of_bank

    if len(words) != 2:
        raise UsageError("chaos merge takes two banks: `cutproof chaos merge A B` makes A hold what both hold")
    into, other = map(Path, words)
    merged = merge(into, other)
    for remark in merged.remarks:
        output.complain(remark)
    output.say(f"page of the nights: {pages_of_bank(into)[0]}")
    output.say(f"{into} got {plural(merged.failures, 'failure')} and {plural(merged.nights, 'night')} from {other}")
    output.result(merged)
    return ExitCode.HELD


def _from_here(summary: NightSummary, bank: Path) -> NightSummary:
    """The summary with commands that run where the job was started; those of the bank run in its folder."""
    shown = [
        replace(one, replay=one.replay.replace(one.scenario, shlex.quote(str(bank / one.scenario))))
        for one in summary.counterexamples
    ]
    return replace(summary, counterexamples=shown)


def _print(done: NightDone, bank: Path, options: argparse.Namespace, output: Output) -> None:
    """Print what became of the bank's failures, then the summary as verify prints it."""
    counts, before = done.summary.bank, len(done.fixed_before)
    shown = (
        f"{counts.new} new",
        f"{counts.still_failing} still failing",
        f"{counts.flaky} flaky",
        *((f"{counts.known} of these known",) if counts.known else ()),
        f"{counts.fixed - before} fixed",
        *((f"{before} fixed before",) if before else ()),
        f"{counts.not_reached} no longer reached",
        *((f"{counts.not_replayed} not replayed for want of time",) if counts.not_replayed else ()),
        *((f"{plural(counts.unshrunk, 'failing scenario')} left to be shrunk",) if counts.unshrunk else ()),
    )
    print_summary(_from_here(done.summary, bank), None, output, verbose=options.verbose)
    output.say()
    output.say(f"night {done.night.id} of the bank {bank}: {', '.join(shown)}")
    for one in done.night.replays:
        failure = done.failures.get(one.failure)
        if failure is not None and (options.verbose or failure.id not in done.fixed_before):
            rate = f" in {one.violated} of {one.runs} runs" if one.status == "flaky" else ""
            known = f"; known: {one.known}" if one.known else ""
            words = f"; {one.words}" if one.words else ""
            status = one.status.replace("_", " ")
            output.say(f"  {failure.id}  {status}{rate}: {failure.invariant}, {failure.difference}{words}{known}")
    if done.page_failed:
        output.complain(done.page_failed)
    else:
        output.say(f"page of the nights: {done.page}")
