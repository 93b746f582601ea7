"""Slices of a workload that is too large for one scenario."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.harness.scenario.model import Scenario
from cutproof.harness.scenario.slices import SLICE, first_slice, slice_of, sliced
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.workloads.inputs import LoadedWorkload
from cutproof.properties.model.workload import Count, Input, InputRecord, Node, Workload


def _records(first: int, number: int) -> tuple[InputRecord, ...]:
    return tuple((index % 7, index, first + index) for index in range(number))


WHOLE = Workload(
    name="whole",
    inputs=(Input(name="in", splits=(_records(0, 900), _records(10_000, 300), ())),),
    nodes=(Node(name="count", operator=Count(), inputs=("in",)),),
)


def _loaded(workload: Workload) -> LoadedWorkload:
    return LoadedWorkload(workload=workload)


@pytest.mark.parametrize("start", [0, 1, 500, 1_080, 1_199])
def test_every_slice_has_the_same_sizes_and_is_a_window_of_each_split(start: int) -> None:
    window = slice_of(WHOLE, start)
    assert [len(split) for split in window.inputs[0].splits] == [90, 30, 0]
    for whole, part in zip(WHOLE.inputs[0].splits[:2], window.inputs[0].splits[:2], strict=True):
        first = whole.index(part[0])
        assert whole[first : first + len(part)] == part


def test_a_small_workload_is_its_own_slice() -> None:
    small = slice_of(WHOLE, 0)
    assert slice_of(small, 100) is small


def test_each_scenario_gets_a_slice_by_its_index_alone() -> None:
    drawn = Scenario(workload=slice_of(WHOLE, 0), topology=lay_out(WHOLE))
    draw = sliced(lambda seed, index: msgspec.structs.replace(drawn, seed=f"{seed} {index}"), _loaded(WHOLE))
    first, second, again = draw(1, 3), draw(1, 4), draw(2, 3)
    assert first.workload == again.workload != second.workload
    assert first.seed == "1 3"
    assert first.workload.records() == SLICE


def test_a_workload_that_fits_is_drawn_as_it_is() -> None:
    def draw(seed: int, index: int) -> Scenario:
        raise AssertionError

    assert sliced(draw, first_slice(_loaded(WHOLE))) is draw
