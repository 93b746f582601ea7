"""PySpark's word on one judged history, after the quick checker's."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..exit_codes import ExitCode
from ..progress import Progress
from .output import Output

if TYPE_CHECKING:
    from ...properties.history import History
    from ...properties.judge import Judgement
    from ..oracle import Oracle
    from ..scenario import Scenario


def add_quick(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the quick checker's verdicts alone, without waiting for PySpark's word on them",
    )


def begin(options: argparse.Namespace) -> Oracle | None:
    """Begin to start Spark in the background, unless it is not wanted."""
    if options.quick:
        return None
    from ..oracle import PySpark

    oracle = PySpark()
    oracle.start()
    return oracle


def ask(
    oracle: Oracle | None, scenario: Scenario, history: History, judgement: Judgement, progress: Progress
) -> list[str]:
    """Where PySpark says otherwise, in words; nothing when it was not asked."""
    if oracle is None:
        return []
    from ...properties.case import Case
    from ..oracle import question_of
    from ..run import Result

    progress.step("asking PySpark")
    case = Case(scenario.workload, scenario.topology, history)
    question = question_of(Result(scenario, case, judgement, 0.0, 0.0))
    return [words for _, words in oracle.examine([question]).disagreements]


def exit_code(judgement: Judgement, disagreements: list[str], output: Output) -> ExitCode:
    """Nothing is called a violation that only one of the judges sees."""
    for words in disagreements:
        output.say(f"the two judges disagree: {words}")
    if disagreements:
        return ExitCode.HARNESS_FAILED
    return ExitCode.VIOLATED if judgement.violated else ExitCode.HELD
