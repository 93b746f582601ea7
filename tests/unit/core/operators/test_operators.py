"""What operators compute, each against a statement of its own, NULLs included; state there and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutproof.reference_impl.core.operators.operators import (
    Count,
    Dedup,
    Filter,
    FlatMap,
    Greater,
    Join,
    Map,
    Operator,
    Sum,
    Union,
)
from cutproof.reference_impl.core.vocabulary.messages import Record
from cutproof.reference_impl.core.vocabulary.state import TaskState
from unit.core.machines import entries_of, opened, row

Rows = list[tuple[int | None, int | None, int, int]]
keys = st.one_of(st.none(), st.integers(-2, 2))
records = st.lists(st.builds(row, keys, st.one_of(st.none(), st.integers(-9, 9)), st.integers(1, 1 << 40)), max_size=12)


def out(operator: Operator, rows: Sequence[Record], gate: int = 0) -> Rows:
    return [(one.key, one.value, one.tag, one.tag2) for record in rows for one in operator.apply(record, gate)]


def before(rows: Sequence[Record], number: int) -> list[Record]:
    """The rows with the key of the numbered one, it included, up to it."""
    return [record for record in rows[: number + 1] if record.key == rows[number].key]


# -- stateless ---------------------------------------------------------------------------------------------------


@given(records)
def test_map(rows: list[Record]) -> None:
    doubled = Map(lambda key, value: (value, key))
    assert out(doubled, rows) == [(record.value, record.key, record.tag, 0) for record in rows]


@given(records)
def test_filter(rows: list[Record]) -> None:
    kept = out(Filter(lambda value: value is not None and value > 0), rows)
    assert kept == [(record.key, record.value, record.tag, 0) for record in rows if (record.value or 0) > 0]


@given(records)
def test_flat_map(rows: list[Record]) -> None:
    copies = out(FlatMap(lambda value: [] if value is None else [7] * (value % 3)), rows)
    assert copies == [(r.key, 7, r.tag, 0) for r in rows if r.value is not None for _ in range(r.value % 3)]


def test_flat_map_numbers_its_copies_and_others_keep_the_origin() -> None:
    record = row(1, 2, tag=3, origin=512, tag2=4)
    assert list(FlatMap(lambda value: (5, 6)).apply(record, 0)) == [row(1, 5, 3, 512, 4), row(1, 6, 3, 513, 4)]
    assert list(Map(lambda key, value: (key, value)).apply(record, 0)) == [record]
    for operator in map(opened, (Count(True), Sum(), Greater(), Dedup(True), Join())):
        operator.apply(row(1, 0, tag=9), 1)
        assert [one.origin for one in operator.apply(record, 0)] in ([512], [])


@given(records)
def test_union(rows: list[Record]) -> None:
    assert out(Union(), rows, 1) == [(record.key, record.value, record.tag, 0) for record in rows]


# -- keyed -------------------------------------------------------------------------------------------------------


@given(records)
def test_count(rows: list[Record]) -> None:
    counts = [len(before(rows, number)) for number in range(len(rows))]
    assert out(opened(Count(tagged=False)), rows) == [(r.key, n, 0, 0) for r, n in zip(rows, counts, strict=True)]
    assert out(opened(Count(tagged=True)), rows) == [(r.key, n, r.tag, 0) for r, n in zip(rows, counts, strict=True)]


@given(records)
def test_sum(rows: list[Record]) -> None:
    def total(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    assert out(opened(Sum()), rows) == [
        (r.key, total([one.value for one in before(rows, n)]), sum(one.tag for one in before(rows, n)), 0)
        for n, r in enumerate(rows)
    ]


@given(records)
def test_greater(rows: list[Record]) -> None:
    """SQL: `lag is null or value > lag`, where a comparison with NULL is not true."""

    def emitted(number: int) -> bool:
        *_, last, value = [None, *(one.value for one in before(rows, number))]
        return last is None or (value is not None and value > last)

    assert out(opened(Greater()), rows) == [(r.key, r.value, r.tag, 0) for n, r in enumerate(rows) if emitted(n)]


@given(records)
def test_dedup(rows: list[Record]) -> None:
    first = [record for number, record in enumerate(rows) if len(before(rows, number)) == 1]
    assert out(opened(Dedup(keys_only=True)), rows) == [(record.key, 0, 0, 0) for record in first]
    assert out(opened(Dedup(keys_only=False)), rows) == [(record.key, record.value, record.tag, 0) for record in first]


@given(st.lists(st.tuples(st.integers(0, 1), keys, st.integers(1, 99)), max_size=12))
def test_join(arrivals: list[tuple[int, int | None, int]]) -> None:
    operator, pairs = opened(Join()), []
    for number, (gate, key, tag) in enumerate(arrivals):
        pairs += out(operator, [row(key, number, tag)], gate)
    wanted = [
        (left_key, at, left, right)
        for at, (left_gate, left_key, left) in enumerate(arrivals)
        for right_gate, right_key, right in arrivals
        if (left_gate, right_gate) == (0, 1) and left_key == right_key and left_key is not None
    ]
    assert sorted(pairs) == sorted(wanted)


def test_join_keeps_arrival_order_within_a_key() -> None:
    operator = opened(Join())
    out(operator, [row(1, 10, 1), row(1, 11, 2)], 0)
    assert out(operator, [row(1, 99, 3)], 1) == [(1, 10, 1, 3), (1, 11, 2, 3)]


# -- state -------------------------------------------------------------------------------------------------------

KEYED: dict[str, Callable[[], Operator]] = {
    "count": lambda: Count(tagged=False),
    "tagged count": lambda: Count(tagged=True),
    "sum": Sum,
    "greater": Greater,
    "dedup": lambda: Dedup(keys_only=False),
    "join": Join,
}
STATELESS: dict[str, Callable[[], Operator]] = {
    "map": lambda: Map(lambda key, value: (key, value)),
    "filter": lambda: Filter(lambda value: True),
    "flat map": lambda: FlatMap(lambda value: (1,)),
    "union": Union,
}


def fed(make: Callable[[], Operator], rows: list[Record]) -> Operator:
    operator = opened(make())
    for number, record in enumerate(rows):
        operator.apply(record, number % 2)
    return operator


@pytest.mark.parametrize("name", KEYED)
@settings(max_examples=30)
@given(rows=records, more=records)
def test_a_restored_operator_goes_on_as_the_one_it_is_a_copy_of(
    name: str, rows: list[Record], more: list[Record]
) -> None:
    original = fed(KEYED[name], rows)
    entries = entries_of(original)
    copy = fed(KEYED[name], more)
    copy.resume(TaskState(entries=entries))
    assert entries_of(copy) == entries
    assert out(copy, more) == out(original, more)


@pytest.mark.parametrize("name", KEYED)
@settings(max_examples=30)
@given(rows=records, more=records)
def test_a_view_of_the_heap_never_changes_again(name: str, rows: list[Record], more: list[Record]) -> None:
    operator = fed(KEYED[name], rows)
    entries = entries_of(operator)
    view = operator.state.snapshot()
    for record in more:
        operator.apply(record, 0)
    assert view.entries() == entries


@pytest.mark.parametrize("name", STATELESS)
def test_the_stateless_hold_nothing(name: str) -> None:
    operator = fed(STATELESS[name], [row(1, 1)])
    assert entries_of(operator) == []
    operator.resume(TaskState())
    assert not operator.keyed


def test_what_entries_hold() -> None:
    """(side, key, a, b), as documented for whoever judges a snapshot."""
    rows = [row(1, 5, 10), row(None, None, 20), row(1, 3, 30)]
    expected = {
        "count": [(0, 1, 2, 0), (0, None, 1, 0)],
        "tagged count": [(0, 1, 2, 0), (0, None, 1, 0)],
        "sum": [(0, 1, 8, 40), (0, None, None, 20)],
        "greater": [(0, 1, 3, 0), (0, None, None, 0)],
        "dedup": [(0, 1, 0, 0), (0, None, 0, 0)],
        "join": [(0, 1, 5, 10), (0, 1, 3, 30)],
    }
    held = {name: fed(make, []) for name, make in KEYED.items()}
    for operator in held.values():
        out(operator, rows)
    assert {name: entries_of(operator) for name, operator in held.items()} == expected


@pytest.mark.parametrize("name", KEYED)
def test_restoring_replaces_what_was_held(name: str) -> None:
    operator = fed(KEYED[name], [row(1, 5, 10), row(1, 6, 20)])
    operator.resume(TaskState())
    assert entries_of(operator) == []


def test_who_is_keyed_and_who_holds_back() -> None:
    assert all(make().keyed for make in KEYED.values())
    holding = [name for name, make in {**KEYED, **STATELESS}.items() if make().holds_back]
    assert holding == ["flat map"]
