"""Scenarios over large data: each runs over a slice of its own."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...properties.model.workload import Workload
from ..workloads.inputs import LoadedWorkload
from .model import Scenario

SLICE = 120
"""about how many records a slice has: a scenario processes them in a few milliseconds"""
STRIDE = 7919
"""a prime, so that consecutive scenarios have slices far apart"""

Draw = Callable[[int, int], Scenario]
"""Scenario i of a seed."""


def slice_of(workload: Workload, start: int, records: int = SLICE) -> Workload:
    """A window of about `records` records of the workload, each split's share in its own order.

    `start` counts records of the whole; a workload that is no larger is its own slice.
    """
    total = workload.records()
    if total <= records:
        return workload
    inputs = []
    for source in workload.inputs:
        bounds = []
        for split in source.splits:
            size = max(1, len(split) * records // total)
            first = min(len(split) * start // total, max(0, len(split) - size))
            bounds.append(slice(first, first + size))
        splits = tuple(split[bound] for split, bound in zip(source.splits, bounds, strict=True))
        times = tuple(timed[bound] for timed, bound in zip(source.times, bounds, strict=False))
        inputs.append(msgspec.structs.replace(source, splits=splits, times=times))
    return msgspec.structs.replace(workload, inputs=tuple(inputs))


def first_slice(loaded: LoadedWorkload) -> LoadedWorkload:
    """The workload over which scenarios are drawn."""
    return msgspec.structs.replace(loaded, workload=slice_of(loaded.workload, 0))


def sliced(draw: Draw, loaded: LoadedWorkload) -> Draw:
    """Scenarios that were drawn over the first slice, each moved to another slice.

    All slices have the same splits and sizes, so the targets of a scenario's faults exist in each.  Which slice it is
    follows from the scenario's index alone.
    """
    whole = loaded.workload
    if whole.records() <= SLICE:
        return draw
    last = whole.records() - SLICE

    def drawn(seed: int, index: int) -> Scenario:
        window = slice_of(whole, index * STRIDE % last)
        return msgspec.structs.replace(draw(seed, index), workload=window)

    return drawn
