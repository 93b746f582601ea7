"""Workloads whose splits an enumerator gives out, some of them discovered while the job runs.

Their right answer is that of the same workload with splits that are dealt out for
good: within an attempt a split has one reader, and between two it moves with its
position, so that each split's order stays (class S of the judge).  Inputs with event
time stay as they are: a split that is found late would have records that are late.
"""

from __future__ import annotations

import msgspec

from ....properties.model.workload import Workload
from ...scenario.forecast import Forecast
from ..choices import Choices

DELAYS: tuple[tuple[int, ...], ...] = ((0,), (0, 35), (0, 0, 60), (0, 20, 45, 70), (0, 100))
"""when the splits of an input are discovered, in turn, in percent of the time that its sources read"""


def enumerated(choices: Choices, workload: Workload, target: Forecast) -> Workload:
    """The workload with enumerators, where there can be any."""
    if target.engine.guarantee == "at-most-once":
        return workload
    delays = [target.span_us * percent // 100 for percent in choices.pick(DELAYS)]
    inputs = tuple(
        source
        if source.times or not source.rewindable
        else msgspec.structs.replace(
            source,
            assignment="enumerated",
            discovered_us=tuple(delays[number % len(delays)] for number in range(len(source.splits)))
            if any(delays)
            else (),
        )
        for source in workload.inputs
    )
    return msgspec.structs.replace(workload, inputs=inputs)


def statically_assigned(workload: Workload) -> Workload:
    """The workload with splits that are dealt out for good."""
    inputs = tuple(msgspec.structs.replace(source, assignment="static", discovered_us=()) for source in workload.inputs)
    return msgspec.structs.replace(workload, inputs=inputs)
