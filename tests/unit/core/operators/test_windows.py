"""Windows by hand, and held against their definition: sets of records, whatever the order they come in."""

from __future__ import annotations

from collections import Counter
from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.reference_impl.core.operators.windows import PANE, Session, Sliding, Tumbling, Window
from cutproof.reference_impl.core.vocabulary.messages import Record
from cutproof.reference_impl.core.vocabulary.state import TaskState
from unit.core.machines import opened

END = 1 << 62
Row = tuple[int | None, int | None, int, int]
Timed = tuple[int | None, int | None, int, int]
"""(key, value, tag, event time)"""

records = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 1)),
        st.one_of(st.none(), st.integers(-9, 9)),
        st.integers(1, 1 << 40),
        st.integers(-20, 40),
    ),
    max_size=12,
)


def at(key: int | None, time: int, value: int | None = 1, tag: int = 1, offset: int = 0) -> Record:
    return Record(key, value, tag, 0, offset << 8, time)


def feed(window: Window, *taken: Record) -> list[Row]:
    return [values(row) for record in taken for row in window.apply(record, 0)]


def advance(window: Window, time: int) -> list[Row]:
    return [values(row) for row in window.on_watermark(time, window.timers.take(time))]


def values(row: Record) -> Row:
    return row.key, row.value, row.tag, row.tag2


def by_definition(spans: dict[tuple[int | None, int], list[Timed]], of: str) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for (key, start), members in spans.items():
        values = [value for _, value, _, _ in members if value is not None]
        total = len(members) if of == "count" else sum(values) if values else None
        found[key, total, sum(tag for _, _, tag, _ in members), start] += 1
    return found


@given(records, st.integers(1, 9), st.integers(1, 9), st.sampled_from(["count", "sum"]))
def test_rows_are_those_of_the_definition(taken: list[Timed], size: int, slide: int, of: str) -> None:
    tumbling, sliding = opened(Tumbling(size, of, 0)), opened(Sliding(size, slide, of, 0))
    apart: dict[tuple[int | None, int], list[Timed]] = {}
    over: dict[tuple[int | None, int], list[Timed]] = {}
    for record in taken:
        key, value, tag, time = record
        for window in (tumbling, sliding):
            assert feed(window, at(key, time, value, tag)) == []
        apart.setdefault((key, time - time % size), []).append(record)
        for start in range(time - size + 1, time + 1):
            if start % slide == 0:
                over.setdefault((key, start), []).append(record)
    assert Counter(advance(tumbling, END)) == by_definition(apart, of)
    assert Counter(advance(sliding, END)) == by_definition(over, of)
    assert (tumbling.state, tumbling.timers.pending()) == ({}, [])


@given(st.permutations([0, 3, 6, 10, 13, 30]), st.sampled_from(["count", "sum"]))
def test_sessions_do_not_depend_on_the_order(times: list[int], of: str) -> None:
    session = opened(Session(4, of, 0))
    assert feed(session, *(at(1, time, value=1, tag=time + 1) for time in times)) == []
    assert advance(session, END) == [(1, 3, 12, 0), (1, 2, 25, 10), (1, 1, 31, 30)]


def test_touching_sessions_stay_apart() -> None:
    session = opened(Session(4, "count", 0))
    feed(session, at(1, 0), at(1, 4))
    assert advance(session, END) == [(1, 1, 1, 0), (1, 1, 1, 4)]


def test_a_window_is_emitted_when_the_watermark_reaches_its_last_moment() -> None:
    window = opened(Tumbling(10, "count", 0))
    feed(window, at(1, 0), at(1, 9), at(1, 10))
    assert advance(window, 8) == []
    assert advance(window, 9) == [(1, 2, 2, 0)]
    assert advance(window, 9) == []
    assert advance(window, 19) == [(1, 1, 1, 10)]


def test_the_row_is_of_the_window_s_last_moment_and_of_its_greatest_record() -> None:
    window = opened(Tumbling(10, "count", 0))
    feed(window, at(1, 3, offset=7), at(1, 2, offset=5))
    (row,) = window.on_watermark(9, window.timers.due(9))
    assert (row.ts, row.origin) == (9, 7 << 8 | PANE)


def test_without_lateness_a_late_record_is_dropped() -> None:
    window = opened(Tumbling(10, "count", 0))
    advance(window, 9)
    assert feed(window, at(1, 5)) == []
    assert (window.state, window.timers.pending()) == ({}, [])


def test_within_its_lateness_a_late_record_emits_the_row_again() -> None:
    window = opened(Tumbling(10, "sum", 5))
    feed(window, at(1, 5, value=2))
    assert advance(window, 9) == [(1, 2, 1, 0)]
    assert feed(window, at(1, 5, value=3, tag=10)) == [(1, 5, 11, 0)]
    assert feed(window, at(2, 5, value=4)) == [(2, 4, 1, 0)]
    assert advance(window, 13) == []
    assert advance(window, 14) == []
    assert window.state == {}
    assert feed(window, at(1, 5)) == []


def test_a_late_record_can_go_on_with_a_session_that_is_not_over() -> None:
    session = opened(Session(5, "count", 0))
    advance(session, 7)
    assert feed(session, at(1, 2)) == []
    assert feed(session, at(1, 6), at(1, 3)) == []
    assert advance(session, END) == [(1, 2, 2, 3)]


def test_of_several_windows_the_first_is_emitted_first() -> None:
    window = opened(Sliding(10, 5, "count", 20))
    feed(window, at(1, 7), at(None, 7))
    assert advance(window, 14) == [(None, 1, 1, 0), (1, 1, 1, 0), (None, 1, 1, 5), (1, 1, 1, 5)]
    assert feed(window, at(1, 7)) == [(1, 2, 2, 0), (1, 2, 2, 5)]


@pytest.mark.parametrize(
    "window",
    [Tumbling(10, "sum", 6), Sliding(10, 4, "count", 0), Session(6, "sum", 3)],
    ids=lambda window: type(window).__name__,
)
def test_a_restored_window_goes_on_as_if_nothing_had_happened(window: Window) -> None:
    fresh = opened(copy(window))
    opened(window)
    feed(window, *(at(time % 2, time, value=time, offset=time) for time in (0, 3, 11, 14, 22)))
    advance(window, 10)
    view = window.state.snapshot()
    state = TaskState(
        watermark=window.time,
        entries=view.entries(),
        timers=window.timers.pending(),
        panes=view.panes(),
    )
    fresh.resume(state)
    for one in (window, fresh):
        feed(one, at(0, 12, value=100, offset=30))
    assert fresh.state == window.state
    assert advance(fresh, END) == advance(window, END) != []
