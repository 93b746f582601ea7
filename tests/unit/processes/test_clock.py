"""The hybrid logical clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.reference_impl.processes.clock import MAX_LEAD_US, Clock, StampRefused


def test_it_shows_the_machines_time_when_that_is_ahead() -> None:
    times = iter([100, 250])
    clock = Clock(lambda: next(times))

    assert [clock.tick(), clock.tick()] == [100, 250]


def test_two_happenings_in_one_microsecond_have_two_stamps() -> None:
    clock = Clock(lambda: 100)

    assert [clock.tick(), clock.tick(), clock.tick()] == [100, 101, 102]


def test_what_follows_a_message_is_later_than_the_message() -> None:
    clock = Clock(lambda: 100)

    clock.received(5_000)

    assert clock.tick() == 5_001


def test_an_old_message_does_not_turn_it_back() -> None:
    clock = Clock(lambda: 100)
    clock.tick()

    clock.received(3)

    assert clock.tick() == 101


def test_a_stamp_from_too_far_ahead_is_refused_and_moves_nothing() -> None:
    clock = Clock(lambda: 100)

    clock.received(100 + MAX_LEAD_US)
    for stamp in (101 + MAX_LEAD_US, 2**61):
        with pytest.raises(StampRefused, match="ahead of this machine's clock"):
            clock.received(stamp)

    assert clock.tick() == 101 + MAX_LEAD_US


@given(st.lists(st.tuples(st.integers(0, 50), st.none() | st.integers(0, 100))))
def test_stamps_only_grow_whatever_the_machines_clock_shows(steps: list[tuple[int, int | None]]) -> None:
    now = 0
    clock = Clock(lambda: now)
    floor = 0
    for now, received in steps:
        if received is None:
            stamp = clock.tick()
            assert stamp > floor
            assert stamp >= now
            floor = stamp
        else:
            clock.received(received)
            floor = max(floor, received)
