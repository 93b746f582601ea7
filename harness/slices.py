"""Drawing over one workload: whole where it is small, a slice of it a scenario where it is not."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .inputs import LoadedWorkload
from .scenario import Scenario
from .workloads import slice_of

SLICE = 120
"""Records of a slice, about: what a scenario digests in a few milliseconds."""
STRIDE = 7919
"""A prime, so that consecutive scenarios see slices far apart."""


def first_slice(loaded: LoadedWorkload) -> LoadedWorkload:
    """What scenarios are drawn over: every slice has its splits, and very nearly its sizes."""
    return msgspec.structs.replace(loaded, workload=slice_of(loaded.workload, 0, SLICE))


def sliced(draw: Callable[[int, int], Scenario], loaded: LoadedWorkload) -> Callable[[int, int], Scenario]:
    """Scenarios as drawn over the first slice, each put over a slice of its own; a function of its index."""
    total = loaded.workload.records()
    if total <= SLICE:
        return draw
    last = total - SLICE

    def drawn(seed: int, index: int) -> Scenario:
        window = slice_of(loaded.workload, index * STRIDE % last, SLICE)
        return msgspec.structs.replace(draw(seed, index), workload=window)

    return drawn
