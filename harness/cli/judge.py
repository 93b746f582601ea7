"""`cutproof judge`: judge a recorded history again, without running anything."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..runtime.exit_codes import ExitCode, UsageError
from .terminal.confirm import add_quick, ask, begin, exit_code, seen_by
from .terminal.options import progress_of
from .terminal.output import Output
from .terminal.printing import print_verdicts

if TYPE_CHECKING:
    from ...properties.model.history import History
    from ..scenario.model import Scenario

FORMAT = "cutproof-judge/1"

DESCRIPTION = """\
Judges a recorded history again, without running anything. The history was kept by a run,
or was recorded elsewhere in the same format (cutproof-history/1). The scenario says which
rows were to be computed; without --scenario it is searched in the history's folder.

Runs on real processes are saved before they are judged. A run stays saved if an invariant
was violated or a judge crashed; with `verify --keep-histories` every run does. Each saved
run has a folder, which can be judged too. `cutproof doctor` prints where these folders are."""

EXAMPLES = """\
examples:
  cutproof judge out/latest/histories/ID.json
  cutproof judge recorded.json --scenario scenario.json --json
  cutproof judge ~/.local/state/cutproof/runs/ID       a run on real processes, from its journals

exit codes: 0 held, 1 violated, 2 bad input, 4 the two judges disagree or Spark did not start"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("history", metavar="HISTORY", type=Path, help="a recorded history, or a kept run's folder")
    parser.add_argument("--scenario", metavar="FILE", type=Path, help="the scenario file of the recorded run")
    add_quick(parser)


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    from ...properties.invariants.judge import judge
    from ..workloads.user_functions import demand

    with progress_of(options) as progress:
        progress.step(f"reading {options.history.name}")
        path, scenario, history = _read(options.history, options.scenario)
    demand(scenario.workload)
    oracle = begin(options)
    with progress_of(options) as progress:
        progress.step(f"judging {options.history.name}")
        judgement = judge(scenario.workload, scenario.topology, history)
        word = ask(oracle, scenario, history, judgement, progress)
    print_verdicts(judgement.verdicts, output)
    code = exit_code(judgement, word, output)
    output.result(
        {
            "format": FORMAT,
            "history": str(options.history),
            "scenario": str(path),
            "subject": history.subject,
            "outcome": judgement.outcome,
            "verdicts": judgement.verdicts,
            "seen_by": seen_by(judgement, word),
            "not_asked": word.unasked,
            "disagreements": word.disagreements,
        }
    )
    return code


def _read(recorded: Path, named: Path | None) -> tuple[Path, Scenario, History]:
    """The scenario and the file that names it, and the history."""
    from ..scenario.files import read_scenario
    from ..scenario.recorded import read_recorded

    if recorded.is_dir():
        from ..reference_engine.orchestrator import evidence

        scenario, history = evidence.kept(recorded)
        if named is None:
            return recorded / evidence.SCENARIO, scenario, history
        return named, read_scenario(named), history
    named = named or _scenario_of(recorded)
    return named, *read_recorded(recorded, named)


def _scenario_of(history: Path) -> Path:
    """The scenario file of a kept history: scenario.json in its folder, or the counterexample of the same name."""
    candidates = [history.with_name("scenario.json"), history.parent.parent / "counterexamples" / history.name]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise UsageError(f"{history} does not say what it is a run of; name its scenario file with --scenario")
