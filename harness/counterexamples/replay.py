"""Runs one scenario again with its time line: verdicts, story, and a digest of the history."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...properties.invariants.judge import Judgement
from ...properties.model.history import History
from ...properties.quick_checker.case import Case
from ...properties.spark.unasked import QUICK, Unasked, by_both
from ...reports.model import CounterexampleView, OracleCounts, ReportView, Size
from ..scenario.files import digest, encode_scenario
from ..scenario.model import Scenario
from ..search.oracle import Word
from ..search.outcome import outcome_of
from ..search.summary import Tally
from ..shrink.repetition import Rate, Repeated, repeat, violates_alike
from ..shrink.shrink import size_of
from ..subject.port import Subject
from .findings import witness_of
from .story import Story, rows_side_by_side, story_of_case

NOT_ASKED = Word(unasked=Unasked(rows=QUICK, state=QUICK))
"""PySpark was not asked"""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    scenario: Scenario
    history: History
    """with its time line"""
    judgement: Judgement
    story: Story
    trace_sha256: str
    """the digest of the canonically encoded history, with its time line"""
    rate: Rate = Rate()
    """how many of the runs were violated; the first violated run is described"""

    @property
    def rate_in_words(self) -> str:
        """How often which invariant was violated, in one line."""
        words = f"violated in {self.rate} run{'s' if self.rate.runs != 1 else ''}"
        cause = next((f"{name}: {verdict.difference}" for name, verdict in self.judgement.violated.items()), "")
        return f"{words} ({cause})" if cause else words


def replay(
    subject: Subject, scenario: Scenario, *, runs: int = 1, on_run: Callable[[int], None] | None = None
) -> Replayed:
    """Run the scenario `runs` times; the first violated run is described, or else the first run.

    A run counts as violated if it violates what the scenario expects or, if it expects
    nothing, what the first violated run violates.
    """
    shows = violates_alike(scenario.expects)
    repeated: Repeated = repeat(subject, scenario, runs, shows, timeline=True, on_run=on_run)
    result = repeated.result
    return Replayed(
        scenario=scenario,
        history=result.history,
        judgement=result.judgement,
        story=story_of_case(scenario, result.case, result.judgement.verdicts),
        trace_sha256=digest(result.history),
        rate=repeated.rate,
    )


def view_of(replayed: Replayed, command: str, word: Word = NOT_ASKED) -> CounterexampleView:
    """The view of a replay with a violation, for the first violated invariant."""
    scenario = replayed.scenario
    name, verdict = next(iter(replayed.judgement.violated.items()))
    tasks, records, faults = size_of(scenario)
    seen_by = word.on(name, verdict)
    return CounterexampleView(
        id=scenario.name or "replay",
        invariant=name,
        difference=verdict.difference,
        story=replayed.story.sentence,
        paragraphs=replayed.story.paragraphs,
        witness=witness_of(verdict),
        scenario=msgspec.json.format(encode_scenario(scenario), indent=1).decode(),
        replay=command,
        rows=rows_side_by_side(Case(scenario.workload, scenario.topology, replayed.history)),
        history=replayed.history,
        checkpoint=verdict.checkpoint,
        size=Size(tasks=tasks, records=records, faults=faults),
        judges=seen_by.judges,
        not_asked=seen_by.not_asked,
    )


def report_of(replayed: Replayed, subject: str, command: str, word: Word = NOT_ASKED) -> ReportView:
    """The report on a replayed scenario."""
    from ..runtime.version import package_version

    tally = Tally()
    verdicts = replayed.judgement.verdicts
    tally.add(outcome_of(0, replayed.scenario, replayed.history, verdicts, not_asked=word.unasked))
    tally.add_word(word.unasked, () if word.disagreements else by_both(verdicts, word.unasked))
    oracle = OracleCounts(engine=word.engine, disagreements=len(word.disagreements))
    summary = msgspec.structs.replace(
        tally.summary(), version=package_version(), subject=subject, oracle=tally.with_words(oracle)
    )
    shown = (view_of(replayed, command, word),) if replayed.judgement.violated else ()
    return ReportView(summary=summary, counterexamples=shown, samples=tally.samples())
