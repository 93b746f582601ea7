"""One scenario again, with its time line: verdicts, story, and a digest of what happened."""

from __future__ import annotations

import msgspec

from ..properties.history import History
from ..properties.judge import Judgement
from .files import digest
from .run import run
from .scenario import Scenario
from .story import Story, tell_case
from .subject import Subject


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
