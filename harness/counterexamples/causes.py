"""The cause by which failures are grouped: the same invariant, the same point, the same kind of difference."""

from __future__ import annotations

from ...faults.plan import AtAim, AtPoint, InPhase, kind_of
from ...properties.model.history import FaultFired, History
from ...properties.model.verdict import Violated
from ..scenario.model import Scenario
from ..search.known_failures import Cause


def cause_of(invariant: str, verdict: Violated, scenario: Scenario, history: History, subject: str) -> Cause:
    """The cause of a violation; its point is the trigger of the last fault that fired."""
    return Cause(invariant=invariant, difference=verdict.difference, point=point_of(scenario, history), subject=subject)


def point_of(scenario: Scenario, history: History) -> str:
    """The protocol point (or phase, or kind) of the last fault that fired; empty if none fired."""
    fired = [entry for entry in history.journal if isinstance(entry, FaultFired)]
    if not fired:
        return ""
    last = max(fired, key=lambda entry: entry.order)
    trigger = scenario.faults[last.fault].trigger
    match trigger:
        case AtPoint(point=point):
            return point
        case InPhase(phase=phase):
            return phase
        case AtAim(aim=aim):
            return aim
        case _:
            return kind_of(scenario.faults[last.fault])
