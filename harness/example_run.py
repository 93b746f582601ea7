"""A document's example, run: its verdicts, and whether what the text says shows."""

from __future__ import annotations

import msgspec

from ..properties.verdict import Verdict, in_a_word
from .examples import Example, Shown, show
from .exit_codes import ExitCode
from .files import digest
from .graphs.claims import SystemExample
from .graphs.claims import show as show_in_system
from .graphs.run import SystemRun, run_and_judge
from .oracle import Oracle, question_of
from .pipelines.claims import PipelineExample
from .pipelines.claims import show as show_in_pipeline
from .pipelines.run import PipelineRun, judged
from .run import Result, run
from .subject import Subject

FORMAT = "cutproof-example/1"


class ExampleRun(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify --workload EXAMPLE --json` prints."""

    format: str = FORMAT
    name: str
    about: str
    document: str
    subject: str
    outcome: str
    """held, violated or unknown"""
    verdicts: dict[str, Verdict]
    claims: list[Shown]
    """what the text says, and whether it showed"""
    disagreements: list[str] = []
    """where PySpark says otherwise than the quick checker"""
    trace_sha256: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """A claim that did not show is a shortfall: nothing was violated, and not all was shown."""
        if self.disagreements:
            return ExitCode.HARNESS_FAILED
        if self.outcome == "violated":
            return ExitCode.VIOLATED
        return ExitCode.HELD if all(claim.shown for claim in self.claims) else ExitCode.FELL_SHORT


def run_example(subject: Subject, example: Example, oracle: Oracle) -> tuple[ExampleRun, Result]:
    """Run the example's scenario, judge it by both judges, and look its claims up."""
    oracle.start()
    result = run(subject, example.scenario, timeline=True)
    examined = oracle.examine([question_of(result)])
    told = ExampleRun(
        name=example.scenario.name,
        about=example.about,
        document=example.document,
        subject=subject.name,
        outcome=result.judgement.outcome,
        verdicts=result.judgement.verdicts,
        claims=show(example, result.history),
        disagreements=[words for _, words in examined.disagreements],
        trace_sha256=digest(result.history),
    )
    return told, result


def run_system_example(example: SystemExample) -> ExampleRun:
    """Run an example's system and have causality judge it."""
    told = run_and_judge(example.system)
    return _in_its_own_world(example, told, "consistent-cut", show_in_system(example, told.history))


def run_pipeline_example(example: PipelineExample) -> ExampleRun:
    """Run an example's pipeline of bytes; every byte is accounted for."""
    told = judged(example.pipeline)
    return _in_its_own_world(example, told, "exactly-once", show_in_pipeline(example, told))


def _in_its_own_world(
    example: SystemExample | PipelineExample, told: SystemRun | PipelineRun, invariant: str, claims: list[Shown]
) -> ExampleRun:
    """It is simulated whatever the subject; one invariant judges it, and PySpark has no row to expect."""
    return ExampleRun(
        name=example.name,
        about=example.about,
        document=example.document,
        subject="simulated",
        outcome=in_a_word((told.verdict,)),
        verdicts={invariant: told.verdict},
        claims=claims,
        trace_sha256=told.trace_sha256,
    )
