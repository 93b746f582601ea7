"""One scenario: run, and judged by the quick checker.

The phases lie in the scenario itself: its faults disturb and undo themselves,
and the subject's run goes on until the job has come to rest, so that progress
can be demanded of it.  What is judged is the history alone.
"""

from __future__ import annotations

import msgspec

from ..properties.history import History
from ..properties.judge import Judgement, judge
from .scenario import Scenario
from .subject import Subject


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario, what happened, and what is to be thought of it."""

    scenario: Scenario
    history: History
    judgement: Judgement


def run(subject: Subject, scenario: Scenario, *, timeline: bool = False) -> Result:
    """Drive the subject through the scenario and judge; `SubjectFailed` when it cannot be driven."""
    history = subject.run(scenario, timeline=timeline)
    return Result(scenario=scenario, history=history, judgement=judge(scenario.workload, scenario.topology, history))
