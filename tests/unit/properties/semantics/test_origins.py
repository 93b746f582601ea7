"""The copies that flat maps number in the origins of their rows: there is room for 256 of each record."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cutproof.harness.scenario.files import decode_scenario, encode_scenario
from cutproof.harness.scenario.reading import FileError
from cutproof.properties.model.workload import (
    LAST_COPY,
    AnyOperator,
    Count,
    FlatMap,
    Input,
    Map,
    Node,
    Topology,
    Tumbling,
    Union,
    Workload,
    copy_of,
    offset_of,
    origin_of,
    problems,
    split_of,
)
from cutproof.reference_impl.core.operators.operators import FlatMap as EngineFlatMap
from cutproof.reference_impl.core.vocabulary.messages import Record
from unit.simulated.worlds import job

INPUTS = tuple(Input(name=name, splits=(((0, 1, tag),),)) for tag, name in enumerate(("east", "west")))


def chain(*operators: AnyOperator, after: str = "east") -> tuple[Node, ...]:
    names = [after, *(f"{after}{index}" for index in range(len(operators)))]
    return tuple(
        Node(name=name, operator=operator, inputs=(before,))
        for before, name, operator in zip(names, names[1:], operators, strict=False)
    )


def refused(*nodes: Node, inputs: tuple[Input, ...] = INPUTS[:1]) -> list[str]:
    found = problems(Workload(name="copies", inputs=inputs, nodes=nodes), Topology(parallelism={}, edges=()))
    return [one for one in found if "copies of a record" in one]


def test_the_last_copy_that_fits_leaves_split_and_offset_alone() -> None:
    last = origin_of(3, 7, LAST_COPY)
    assert (split_of(last), offset_of(last), copy_of(last)) == (3, 7, LAST_COPY)
    assert offset_of(last + 1) == 8, "one more is of another record"


@pytest.mark.parametrize(
    "operators",
    [(FlatMap(fan=255),), (FlatMap(fan=129), FlatMap(fan=128)), (FlatMap(fan=255), FlatMap(fan=1), FlatMap(fan=2))],
)
def test_flat_maps_whose_copies_fit_are_not_refused(operators: tuple[AnyOperator, ...]) -> None:
    assert refused(*chain(*operators)) == []


@pytest.mark.parametrize("between", [(), (Map(add=1),), (Count(),)])
def test_flat_maps_that_number_more_copies_than_fit_are_refused_by_one_line(between: tuple[AnyOperator, ...]) -> None:
    nodes = chain(FlatMap(fan=129), *between, FlatMap(fan=129), FlatMap(fan=9))
    second = f"east{len(between) + 1}"
    assert refused(*nodes) == [f"{second}: it and the flat maps before it number 257 copies of a record; 256 fit"]


def test_flat_maps_side_by_side_do_not_add_up_and_one_behind_both_adds_to_the_greater() -> None:
    both = (*chain(FlatMap(fan=200)), *chain(FlatMap(fan=100), after="west"))
    union = Node(name="union", operator=Union(), inputs=("east0", "west0"))
    last = Node(name="last", operator=FlatMap(fan=57), inputs=("union",))
    assert refused(*both, union, last, inputs=INPUTS) == []
    assert len(refused(*both, union, replace(last, operator=FlatMap(fan=58)), inputs=INPUTS)) == 1


def test_a_window_begins_anew_as_the_origin_of_its_row_has_no_copy() -> None:
    assert refused(*chain(FlatMap(fan=255), Tumbling(of="count", size=10), FlatMap(fan=255))) == []


def test_a_scenario_that_would_exceed_them_is_refused_when_it_is_read() -> None:
    fits, too_many = job(4, FlatMap(fan=129), FlatMap(fan=128)), job(4, FlatMap(fan=129), FlatMap(fan=129))
    assert decode_scenario(encode_scenario(fits)) == fits
    with pytest.raises(FileError, match="number 257 copies of a record; 256 fit"):
        decode_scenario(encode_scenario(too_many))


def test_the_engine_gives_its_rows_the_copies_that_are_counted_here() -> None:
    first, second = EngineFlatMap(lambda value: range(129)), EngineFlatMap(lambda value: range(128))
    row = Record(0, 1, 0, 0, origin_of(3, 7), 0)
    rows = [two for one in first.apply(row, 0) for two in second.apply(one, 0)]
    assert max(copy_of(one.origin) for one in rows) == LAST_COPY
    assert {(split_of(one.origin), offset_of(one.origin)) for one in rows} == {(3, 7)}
