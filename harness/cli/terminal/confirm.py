"""PySpark's answer about one judged history, after the quick checker's verdicts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...runtime.exit_codes import ExitCode
from ...runtime.progress import Progress
from .output import Output

if TYPE_CHECKING:
    from ....properties.invariants.judge import Judgement
    from ....properties.model.history import History
    from ...scenario.model import Scenario
    from ...search.oracle import Oracle, SeenBy, Word


def add_quick(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only the quick checker's verdicts, without waiting for PySpark's answer",
    )


def begin(options: argparse.Namespace) -> Oracle | None:
    """Begin to start Spark in the background, unless only the quick checker is wanted."""
    if options.quick:
        return None
    from ...search.oracle import PySpark

    oracle = PySpark()
    oracle.start()
    return oracle


def ask(oracle: Oracle | None, scenario: Scenario, history: History, judgement: Judgement, progress: Progress) -> Word:
    """PySpark's answer about a history; without an oracle, that nobody asked."""
    from ....properties.quick_checker.case import Case
    from ...counterexamples.replay import NOT_ASKED
    from ...search.oracle import word_on
    from ...subject.run import Result

    if oracle is None:
        return NOT_ASKED
    progress.step("asking PySpark")
    case = Case(scenario.workload, scenario.topology, history)
    return word_on(oracle, Result(scenario, case, judgement, 0.0, 0.0))


def seen_by(judgement: Judgement, word: Word) -> dict[str, SeenBy]:
    """How many judges saw each violation."""
    return {name: word.on(name, verdict) for name, verdict in judgement.violated.items()}


def exit_code(judgement: Judgement, word: Word, output: Output) -> ExitCode:
    """Print who saw each violation; returns the exit code.

    Nothing is called a violation if PySpark disagrees.
    """
    from ....reports.words import judges_in_words

    for words in word.disagreements:
        output.say(f"the two judges disagree: {words}")
    for name, seen in seen_by(judgement, word).items():
        output.say(f"{name}: {judges_in_words(seen.judges, seen.not_asked)}")
    if word.unasked.rows and not judgement.violated:
        output.say(f"PySpark was not asked for the expected rows, because {word.unasked.rows}.")
    if word.disagreements:
        return ExitCode.HARNESS_FAILED
    return ExitCode.VIOLATED if judgement.violated else ExitCode.HELD
