"""One scenario again, with its time line: verdicts, story, and a digest of what happened."""

from __future__ import annotations

import msgspec

from ..properties.case import Case
from ..properties.history import History
from ..properties.judge import Judgement
from ..reports.model import CounterexampleView, ReportView, Size
from ..reports.rows import side_by_side
from .files import digest, encode_scenario
from .findings import witness_of
from .outcome import outcome_of
from .run import run
from .scenario import Scenario
from .shrink import size_of
from .story import Story, expected_rows, tell_case
from .subject import Subject
from .summary import Tally


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    scenario: Scenario
    history: History
    """with its time line"""
    judgement: Judgement
    story: Story
    trace_sha256: str
    """of the canonically encoded history, time line included: all that happened, in order"""


def replay(subject: Subject, scenario: Scenario) -> Replayed:
    result = run(subject, scenario, timeline=True)
    return Replayed(
        scenario=scenario,
        history=result.history,
        judgement=result.judgement,
        story=tell_case(scenario, result.case, result.judgement.verdicts),
        trace_sha256=digest(result.history),
    )


def view_of(replayed: Replayed, command: str) -> CounterexampleView:
    """A replay that violates something, as a report shows it: by the first of what is violated."""
    scenario = replayed.scenario
    name, verdict = next(iter(replayed.judgement.violated.items()))
    tasks, records, faults = size_of(scenario)
    return CounterexampleView(
        id=scenario.name or "replay",
        invariant=name,
        difference=verdict.difference,
        story=replayed.story.sentence,
        paragraphs=replayed.story.paragraphs,
        witness=witness_of(verdict),
        scenario=msgspec.json.format(encode_scenario(scenario), indent=1).decode(),
        replay=command,
        rows=side_by_side(
            expected_rows(Case(scenario.workload, scenario.topology, replayed.history)).elements(),
            replayed.history.committed,
        ),
        history=replayed.history,
        checkpoint=verdict.checkpoint,
        size=Size(tasks=tasks, records=records, faults=faults),
    )


def report_of(replayed: Replayed, subject: str, command: str) -> ReportView:
    """The report of a run of one scenario."""
    from .. import __version__

    tally = Tally()
    tally.add(outcome_of(0, replayed.scenario, replayed.history, replayed.judgement.verdicts))
    summary = msgspec.structs.replace(tally.summary(), version=__version__, subject=subject)
    shown = (view_of(replayed, command),) if replayed.judgement.violated else ()
    return ReportView(summary=summary, counterexamples=shown, samples=tally.samples())
