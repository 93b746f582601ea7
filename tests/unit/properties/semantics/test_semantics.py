"""The operators of the quick checker, against the independent reading in `meanings`."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.properties.model.workload import AnyOperator, Count, Dedup, FlatMap, Greater, Join, Map, Row, Sum, Union
from cutproof.properties.semantics.semantics import Machine, machine
from unit.properties.meanings import Entries, apply
from unit.properties.shapes import SINGLE

KEYS = st.none() | st.integers(-3, 3)
VALUES = st.none() | st.integers(-9, 9)
ROWS = st.tuples(KEYS, VALUES, st.integers(-99, 99), st.integers(0, 9))


@given(
    st.sampled_from((*SINGLE, Join(), Join(signed=True), Union())),
    st.lists(st.tuples(ROWS, st.integers(0, 1)), max_size=30),
)
def test_rows_and_state_are_as_written_once_more(operator: AnyOperator, taken: list[tuple[Row, int]]) -> None:
    worker, held = machine(operator), Entries()
    for row, side in taken:
        assert list(worker.take(row, side)) == apply(operator, held, side, row)
    assert Counter(worker.entries()) == Counter(held)


@given(
    st.sampled_from((*SINGLE, Join(), Join(signed=True))),
    st.lists(st.tuples(ROWS, st.integers(0, 1)), min_size=2, max_size=20),
)
def test_a_loaded_state_goes_on_as_if_nothing_had_happened(operator: AnyOperator, taken: list[tuple[Row, int]]) -> None:
    half = len(taken) // 2
    through, first, second = machine(operator), machine(operator), machine(operator)
    for row, side in taken[:half]:
        through.take(row, side)
        first.take(row, side)
    second.take((77, 1, 1, 0), 0)
    second.load(first.entries())
    for row, side in taken[half:]:
        assert list(second.take(row, side)) == list(through.take(row, side))
    assert Counter(second.entries()) == Counter(through.entries())


def rows_of(worker: Machine, *rows: Row) -> list[Row]:
    return [made for row in rows for made in worker.take(row, 0)]


def test_nulls_are_as_sql_has_them() -> None:
    null: Row = (None, None, 7, 0)
    assert rows_of(machine(Map(multiply=2, rekey=3)), null) == [null]
    assert rows_of(machine(FlatMap()), null) == []
    assert rows_of(machine(Sum()), null, (None, 4, 1, 0)) == [(None, None, 7, 0), (None, 4, 8, 0)]
    assert rows_of(machine(Join()), null) == []
    assert machine(Join()).entries() == []


@pytest.mark.parametrize(
    ("values", "emitted"),
    [([1, 2, 2, 1, 3], [1, 2, 3]), ([None, 1], [None, 1]), ([1, None, 0], [1, 0]), ([None, None], [None, None])],
)
def test_greater_compares_with_the_row_before(values: list[int | None], emitted: list[int | None]) -> None:
    rows = rows_of(machine(Greater()), *((1, value, 0, 0) for value in values))
    assert [row[1] for row in rows] == emitted


def test_negative_numbers_are_floor_modulo() -> None:
    assert rows_of(machine(Map(rekey=3)), (-1, 0, 0, 0)) == [(2, 0, 0, 0)]
    assert rows_of(machine(FlatMap(fan=2)), (0, -1, 5, 0)) == [(0, -1, 5, 0), (0, 0, 5, 0)]


def test_what_is_determined_of_the_key_only() -> None:
    assert rows_of(machine(Count()), (1, 5, 6, 7), (1, 5, 6, 7)) == [(1, 1, 0, 0), (1, 2, 0, 0)]
    assert rows_of(machine(Count(tagged=True)), (1, 5, 6, 7)) == [(1, 1, 6, 7)]
    assert rows_of(machine(Dedup()), (1, 5, 6, 7), (1, 8, 9, 0)) == [(1, 0, 0, 0)]
    assert rows_of(machine(Dedup(keys_only=False)), (1, 5, 6, 7), (1, 8, 9, 0)) == [(1, 5, 6, 7)]


def test_what_is_taken_back_is_removed() -> None:
    total, count = machine(Sum(signed=True)), machine(Count(signed=True))
    added, taken_back = (1, 5, 6, 0), (1, 5, -6, 0)
    assert rows_of(total, added, (1, 2, 3, 0), taken_back) == [
        *((1, 5, 6, 0),),
        *((1, 5, -6, 0), (1, 7, 9, 0)),
        *((1, 7, -9, 0), (1, 2, 3, 0)),
    ]
    assert total.entries() == [(0, 1, 2, 3)]
    assert rows_of(count, added, taken_back) == [(1, 1, 6, 0), (1, 1, -6, 0)]
    assert count.entries() == []


@given(st.permutations([((1, 5, 6, 0), 0), ((1, 5, -6, 0), 0), ((1, 8, 7, 0), 1), ((1, 8, -7, 0), 1)]))
def test_a_join_takes_back_every_pair_in_whatever_order(taken: list[tuple[Row, int]]) -> None:
    worker = machine(Join(signed=True))
    net: Counter[Row] = Counter()
    for row, side in taken:
        for key, value, tag, tag2 in worker.take(row, side):
            net[key, value, abs(tag), tag2] += -1 if tag < 0 else 1
    assert net == {(1, 5, 6, 7): 0}
