"""Runs an example from a document: its verdicts, and whether the claims of the text show."""

from __future__ import annotations

import msgspec

from ...properties.model.verdict import Verdict, Violated, in_a_word
from ..reference_engine.graphs.run import SystemRun, run_and_judge
from ..reference_engine.pipelines.run import PipelineRun, judged
from ..runtime.exit_codes import ExitCode
from ..scenario.files import digest
from ..search.oracle import Oracle, question_of
from ..subject.port import SubjectFailed
from ..subject.run import Result
from . import AnyExample
from .claims import Example, Shown, Variant, look_up, show
from .pipelines.claims import PipelineExample
from .systems.claims import SystemExample
from .trials import Trials, ran_of

FORMAT = "cutproof-example/1"


class CompanionRun(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a companion run: a variant that claims compare with the example's own run."""

    name: str
    outcome: str
    """held, violated (against the text), as the text says (only invariants that the text names are violated), unknown
    or not run"""
    verdicts: dict[str, Verdict] = {}
    expected: list[str] = msgspec.field(default_factory=list, name="said")
    """the invariants that this way violates according to the text"""
    problem: str = ""
    """why it could not be run"""
    trace_sha256: str = ""

    @property
    def against(self) -> dict[str, Violated]:
        """The violated invariants that the text does not name."""
        return {
            name: verdict
            for name, verdict in self.verdicts.items()
            if isinstance(verdict, Violated) and name not in self.expected
        }


class ExampleRun(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify --workload EXAMPLE --json` prints."""

    format: str = FORMAT
    name: str
    about: str
    document: str
    subject: str
    outcome: str
    """held, violated (here or in a variant, against the text) or unknown"""
    verdicts: dict[str, Verdict]
    companions: list[CompanionRun] = msgspec.field(default_factory=list, name="beside")
    """the companion runs, on the same engine"""
    claims: list[Shown]
    """the claims of the text, and whether they showed"""
    disagreements: list[str] = []
    """where PySpark disagrees with the quick checker"""
    trace_sha256: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """A claim that did not show is a shortfall: nothing was violated, and not all was shown."""
        if self.disagreements:
            return ExitCode.HARNESS_FAILED
        if self.outcome == "violated":
            return ExitCode.VIOLATED
        return ExitCode.HELD if all(claim.shown or claim.assumed for claim in self.claims) else ExitCode.FELL_SHORT


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """An example that was run."""

    run: ExampleRun
    result: Result | None = None
    """the result of a scenario on the given engine; None for a system or a pipeline, which is always simulated"""


def run_any(example: AnyExample, trials: Trials, oracle: Oracle) -> Done:
    """Run an example and look up its claims; `trials` and `oracle` are only used for a scenario."""
    match example:
        case Example():
            run, result = run_example(trials, example, oracle)
            return Done(run=run, result=result)
        case SystemExample():
            return Done(run=run_system_example(example))
        case PipelineExample():
            return Done(run=run_pipeline_example(example))


def run_example(trials: Trials, example: Example, oracle: Oracle) -> tuple[ExampleRun, Result]:
    """Run the example's scenario and its variants, judge each by both judges, and look up the claims.

    Raises SubjectFailed if the example's own scenario cannot be run.  A variant that cannot be run is reported.
    """
    oracle.start()
    result = trials.result(example.scenario)
    tried, problems = _variants(trials, example.variants)
    results = [result, *tried.values()]
    examined = oracle.examine([question_of(one) for one in results])
    names = ["", *(f"{name}: " for name in tried)]
    companions = [_companion(variant, tried.get(variant.name), problems) for variant in example.variants]
    own = result.judgement.outcome
    run = ExampleRun(
        name=example.scenario.name,
        about=example.about,
        document=example.document,
        subject=trials.subject.name,
        outcome="violated" if any(one.against for one in companions) else own,
        verdicts=result.judgement.verdicts,
        companions=companions,
        claims=show(example, ran_of(result), {name: ran_of(one) for name, one in tried.items()}),
        disagreements=[f"{names[position]}{words}" for position, words in examined.disagreements],
        trace_sha256=digest(result.history),
    )
    return run, result


def _variants(trials: Trials, variants: tuple[Variant, ...]) -> tuple[dict[str, Result], dict[str, str]]:
    """The results by the variants' names, and why the others could not be run."""
    tried: dict[str, Result] = {}
    problems: dict[str, str] = {}
    for variant in variants:
        try:
            tried[variant.name] = trials.result(variant.scenario)
        except SubjectFailed as error:
            problems[variant.name] = str(error)
    return tried, problems


def _companion(variant: Variant, result: Result | None, problems: dict[str, str]) -> CompanionRun:
    if result is None:
        return CompanionRun(name=variant.name, outcome="not run", problem=problems[variant.name])
    run = CompanionRun(
        name=variant.name,
        outcome=result.judgement.outcome,
        verdicts=result.judgement.verdicts,
        expected=list(variant.violates),
        trace_sha256=digest(result.history),
    )
    as_expected = run.outcome == "violated" and not run.against
    return msgspec.structs.replace(run, outcome="as the text says") if as_expected else run


def run_system_example(example: SystemExample) -> ExampleRun:
    """Run an example's system and have causality judge it."""
    run = run_and_judge(example.system)
    return _simulated_run(example, run, "consistent-cut", look_up(example.claims, example.system, run.history))


def run_pipeline_example(example: PipelineExample) -> ExampleRun:
    """Run an example's pipeline of bytes and check that no byte is lost or repeated."""
    run = judged(example.pipeline)
    return _simulated_run(example, run, "exactly-once", look_up(example.claims, example.pipeline, run))


def _simulated_run(
    example: SystemExample | PipelineExample, run: SystemRun | PipelineRun, invariant: str, claims: list[Shown]
) -> ExampleRun:
    """The result of a simulated system or pipeline, independent of the subject.  One invariant judges it.  It has no
    rows, so PySpark is not asked."""
    return ExampleRun(
        name=example.name,
        about=example.about,
        document=example.document,
        subject="simulated",
        outcome=in_a_word((run.verdict,)),
        verdicts={invariant: run.verdict},
        claims=claims,
        trace_sha256=run.trace_sha256,
    )
