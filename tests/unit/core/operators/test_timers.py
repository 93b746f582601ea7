"""Timers: the earliest is known without looking at all, whatever was set and dropped before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cutproof.reference_impl.core.operators.timers import Timers
from cutproof.reference_impl.core.vocabulary.state import Timer

TIMER = st.tuples(st.integers(0, 5), st.none() | st.integers(0, 1), st.integers(0, 1))
STEPS = st.lists(st.tuples(st.sampled_from(["set", "drop"]), TIMER), max_size=30)


def test_what_is_due_comes_by_time_then_by_key_with_null_first() -> None:
    timers = Timers([(7, 1, 0), (5, 0, 0), (5, None, 3), (9, 0, 0), (5, 0, -1)])
    assert timers.due(7) == [(5, None, 3), (5, 0, -1), (5, 0, 0), (7, 1, 0)]
    assert timers.due(4) == []
    assert len(timers.pending()) == 5, "who is told what is due drops it, or does not"


def test_a_timer_that_was_dropped_and_set_again_is_the_last_of_those_pending() -> None:
    timers = Timers([(3, 0, 0), (4, 0, 0)])
    timers.drop((3, 0, 0))
    assert timers.earliest() == 4
    timers.set((3, 0, 0))
    assert timers.earliest() == 3
    assert timers.pending() == [(4, 0, 0), (3, 0, 0)]


@given(restored=st.lists(TIMER, max_size=5), steps=STEPS)
def test_the_earliest_is_the_least_of_those_pending_after_each_step(
    restored: list[Timer], steps: list[tuple[str, Timer]]
) -> None:
    timers, plain = Timers(restored), dict.fromkeys(restored)
    for what, timer in steps:
        if what == "set":
            timers.set(timer)
            plain[timer] = None
        else:
            timers.drop(timer)
            plain.pop(timer, None)
        assert timers.pending() == list(plain)
        assert timers.earliest() == min((timer[0] for timer in plain), default=None)
        for now in range(6):
            assert sorted(timers.due(now), key=str) == sorted((one for one in plain if one[0] <= now), key=str)
