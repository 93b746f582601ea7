"""`cutproof defects`: the planted defects, and whether they are caught."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...properties.model.words import plural
from ..runtime.exit_codes import CutproofError, ExitCode, UsageError, one_line
from ..subject.names import BUILT, check_defect
from .terminal.confirm import add_quick, begin
from .terminal.options import count, progress_of, seed
from .terminal.output import Output, debugging

if TYPE_CHECKING:
    from ..search.oracle import Examined
    from ..self_check.defects import DefectRun, Field, Named

DESCRIPTION = """\
The planted defects: deliberately wrong variants of single decisions of the reference
engine, each modelled on a real bug. `list` names them. `run` draws scenarios
for each defect until one catches it: the invariant that the defect names is violated, and
the wrong code ran; on the unmodified engine the same scenario exercises the invariant,
and the invariant holds. PySpark then computes the expected rows of both runs. If an error
ends the hunt for one defect, the error is reported, and the other hunts go on.

With `--subject processes` each scenario runs several times on real processes, and the rate
at which the defect shows is reported. The scenarios are found in virtual time, or taken
from a folder."""

EXAMPLES = """\
examples:
  cutproof defects list
  cutproof defects run A01 E03
  cutproof defects run --all --json
  cutproof defects run --all --no-shrink                   only report which are caught
  cutproof defects run A01 --subject processes --runs 10
  cutproof defects run --all --subject processes --scenarios tests/corpus/processes

exit codes of run: 0 all were caught, 3 some were not reached or not caught, 2 no such defect,
4 an error ended a hunt (the results of the others are printed), or PySpark disagrees.
CUTPROOF_DEBUG=1 shows the traceback."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "run"), help="list the defects, or run them")
    parser.add_argument("ids", metavar="ID", nargs="*", help="the defects to run")
    parser.add_argument("--all", action="store_true", help="run all defects")
    parser.add_argument(
        "--scenarios",
        metavar="N|DIR",
        type=_count_or_folder,
        default=400,
        help="draw at most N scenarios for each (400), or take the scenarios in a folder, named ID.json",
    )
    parser.add_argument(
        "--subject",
        metavar="NAME",
        default="simulated",
        help=f"the engine on which the defect has to show: {' or '.join(BUILT)} (simulated)",
    )
    parser.add_argument(
        "--runs", metavar="N", type=count, default=10, help="run each scenario N times on processes, for its rate (10)"
    )
    parser.add_argument("--workers", metavar="N", type=count, help="run N defects at the same time")
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="draw from this seed (0)")
    parser.add_argument("--no-shrink", action="store_true", help="do not shrink the scenario that catches a defect")
    add_quick(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="write the scenario of each caught defect into DIR")


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    return _list(output) if options.action == "list" else _run(options, output)


def _list(output: Output) -> ExitCode:
    from ..reference_engine.defects import DEFECTS

    rows = [
        {"id": name, "upstream": defect.upstream, "invariant": defect.invariant, "title": defect.title}
        for name, defect in sorted(DEFECTS.items())
    ]
    output.table(("id", "upstream", "violates", "what is wrong"), [tuple(row.values()) for row in rows])
    output.result({"format": "cutproof-defect-list/1", "defects": rows})
    return ExitCode.HELD


def _run(options: argparse.Namespace, output: Output) -> ExitCode:
    wanted, field = _wanted(options), _field(options)
    oracle = begin(options)
    found: list[DefectRun] = []
    word: tuple[int, Examined] | None = None
    interrupted, failed = False, None
    with progress_of(options) as progress:
        from ..self_check.defects import run_defects
        from ..self_check.defects_report import confirmed, report_of

        try:
            for run in run_defects(wanted, field, workers=options.workers, progress=progress):
                found.append(run)
            if oracle is not None:
                progress.step("asking PySpark")
                word = confirmed(found, oracle)
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:  # the results so far are reported nevertheless
            failed = error
    report = report_of(found, interrupted=interrupted, oracle=word)
    _print(found, output, rates=field.elsewhere)
    _print_oracle(found, word, output)
    if options.out is not None:
        _keep(found, options.out)
        output.say(f"scenarios kept in {options.out}")
    output.result(report)
    if interrupted:
        output.complain("interrupted; what was done so far is printed")
        return ExitCode.INTERRUPTED
    if isinstance(failed, CutproofError):  # an error of the environment, or a file that cannot be read
        output.complain(one_line(failed))
        return failed.exit_code
    if failed is not None:
        output.complain(f"the hunt failed: {one_line(failed)}")
        return ExitCode.HARNESS_FAILED
    if report.broken or (word is not None and word[1].disagreements):
        return ExitCode.HARNESS_FAILED
    return ExitCode.FELL_SHORT if report.missed else ExitCode.HELD


def _field(options: argparse.Namespace) -> Field:
    from ..self_check.defects import Field

    if options.subject not in BUILT:
        raise UsageError(f"a defect is planted in the reference engine: --subject {' or '.join(BUILT)}")
    field = Field(
        seed=options.seed,
        subject=options.subject,
        runs=options.runs,
        shrinks=not options.no_shrink,
        asks=not options.quick,
    )
    if isinstance(options.scenarios, Path):
        return msgspec.structs.replace(field, folder=options.scenarios)
    return msgspec.structs.replace(field, scenarios=options.scenarios)


def _count_or_folder(text: str) -> int | Path:
    """A whole number, or the folder of that name."""
    if text.strip().isdecimal():
        return count(text)
    if Path(text).is_dir():
        return Path(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number of 1 or more nor a folder")


def _wanted(options: argparse.Namespace) -> list[Named]:
    from ..reference_engine.defects import DEFECTS
    from ..self_check.defects import Named

    if options.all == bool(options.ids):
        raise UsageError("name the defects to run, or give --all; `cutproof defects list` shows them")
    for name in options.ids:
        check_defect(name)
    names = sorted(DEFECTS) if options.all else list(dict.fromkeys(options.ids))
    return [Named(id=name, upstream=DEFECTS[name].upstream, invariant=DEFECTS[name].invariant) for name in names]


def _print(found: list[DefectRun], output: Output, *, rates: bool) -> None:
    rows = [
        (
            run.id,
            run.upstream,
            run.invariant,
            "caught" if run.caught else "BROKEN" if run.error else "MISSED" if run.reached else "NOT REACHED",
            run.scenarios_tried,
            *([f"{run.rate} runs" if run.rate is not None else ""] if rates else []),
            _size(run) if run.caught else ", ".join(run.violated_instead),
        )
        for run in sorted(found, key=lambda run: run.id)
    ]
    heads = ("id", "upstream", "violates", "", "scenarios", *(("shown in",) if rates else ()))
    output.table((*heads, "caught by, or violated instead"), rows)
    for run in found:
        if run.error:
            output.complain(f"an error ended the hunt for {run.id}: {run.error} (CUTPROOF_DEBUG=1 shows where)")
            if debugging():
                output.trace(run.trace)
        elif run.refused and not run.caught:
            output.complain(f"the hunt for {run.id}: {run.refused} scenarios could not be run, the last {run.refusal}")
    caught = sum(run.caught for run in found)
    output.say(f"{caught} caught, {len(found) - caught} missed")


def _print_oracle(found: list[DefectRun], word: tuple[int, Examined] | None, output: Output) -> None:
    if word is None:
        return
    asked, examined = word
    if asked:
        rows = plural(examined.expected_rows, "row")
        output.say(f"{examined.engine} was asked about {plural(asked, 'run')}: {rows} compared")
    for number, words in examined.disagreements:
        output.complain(f"the two judges disagree about {found[number].id}: {words}")


def _size(run: DefectRun) -> str:
    return f"{plural(run.size.tasks, 'task')}, {plural(run.size.records, 'record')}, {plural(run.size.faults, 'fault')}"


def _keep(found: list[DefectRun], folder: Path) -> None:
    """Write the scenario of each caught defect, in the form that a corpus keeps."""
    from ..scenario.files import write_scenario

    folder.mkdir(parents=True, exist_ok=True)
    for run in found:
        if run.scenario is not None:
            write_scenario(folder / f"{run.id}.json", run.scenario)
