"""Inputs that cannot rewind: reading takes a record out of its split, for every attempt (ABS-16)."""

from __future__ import annotations

from msgspec.structs import replace

from ...scenario.model import Scenario
from ..choices import Choices

PERCENT = 60
"""how often some input of an at-most-once job cannot rewind; no other guarantee allows that"""


def with_forgetful_inputs(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario, at times with inputs that cannot rewind: one of them, or all."""
    inputs = scenario.workload.inputs
    if scenario.engine.guarantee != "at-most-once" or not choices.percent(PERCENT):
        return scenario
    chosen = choices.pick((*(source.name for source in inputs), ""))
    changed = tuple(
        replace(source, rewindable=False) if chosen in (source.name, "") and not source.is_enumerated else source
        for source in inputs
    )
    return replace(scenario, workload=replace(scenario.workload, inputs=changed))
