"""Workloads whose splits an enumerator assigns, some of them discovered while the job runs.

The right answer is that of the same workload with statically assigned splits: within an attempt a split has one reader,
and between two attempts it moves with its position, so each split keeps its order (class S of the judge).  Inputs with
event time are not changed: the records of a split that is discovered late would be late.
"""

from __future__ import annotations

import msgspec

from ....properties.model.workload import Workload
from ...scenario.forecast import Forecast
from ..choices import Choices

DELAYS: tuple[tuple[int, ...], ...] = ((0,), (0, 35), (0, 0, 60), (0, 20, 45, 70), (0, 100))
"""times at which the splits of an input are discovered, in turn, in percent of the time for which its sources read"""


def enumerated(choices: Choices, workload: Workload, target: Forecast) -> Workload:
    """The workload with enumerators for the inputs that can have one."""
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
    """The workload with statically assigned splits."""
    inputs = tuple(msgspec.structs.replace(source, assignment="static", discovered_us=()) for source in workload.inputs)
    return msgspec.structs.replace(workload, inputs=inputs)
