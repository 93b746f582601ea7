"""The quick checker's windows at the moments on which they turn."""

from __future__ import annotations

import pytest

from cutproof.properties.model.workload import Row, Sliding, Tumbling
from cutproof.properties.semantics.timed import redistributed
from cutproof.properties.semantics.windows import WindowMachine

RECORD: Row = (1, 5, 100, 0)
LAST = 9
"""the last moment of the first window of ten"""


def machine(lateness: int) -> WindowMachine:
    """A machine that has taken a record and received the watermark that finishes its window."""
    windows = WindowMachine(Tumbling(size=10, lateness=lateness))
    assert windows.take_at(RECORD, 3, 1 << 8) == []
    assert [row for _, row in windows.advance(LAST)] == [(1, 1, 100, 0)]
    return windows


@pytest.mark.parametrize("watermark", [LAST, LAST + 1, LAST + 3])
def test_what_is_late_and_within_the_lateness_emits_its_window_again(watermark: int) -> None:
    windows = machine(lateness=4)
    assert windows.advance(watermark) == []
    assert [row for _, row in windows.take_at(RECORD, 4, 2 << 8)] == [(1, 2, 200, 0)]


def test_at_the_end_of_its_lateness_a_window_is_over() -> None:
    windows = machine(lateness=4)
    assert windows.timers() == [(LAST + 4, 1, 0)]
    assert windows.advance(LAST + 4) == []
    assert (windows.take_at(RECORD, 4, 2 << 8), windows.entries(), windows.timers()) == ([], [], [])


def test_a_window_is_finished_by_its_last_moment_and_not_before() -> None:
    windows = WindowMachine(Tumbling(size=10))
    windows.take_at(RECORD, 3, 1 << 8)
    assert windows.advance(LAST - 1) == []
    assert windows.timers() == [(LAST, 1, 0)]
    assert len(windows.advance(LAST)) == 1


def test_a_watermark_that_goes_back_opens_nothing() -> None:
    windows = machine(lateness=0)
    assert windows.advance(0) == []
    assert windows.take_at(RECORD, 3, 2 << 8) == []


@pytest.mark.parametrize(("time", "starts"), [(10, [4, 6, 8, 10]), (11, [4, 6, 8, 10]), (12, [6, 8, 10, 12])])
def test_a_sliding_window_has_its_first_moment_and_not_its_end(time: int, starts: list[int]) -> None:
    windows = WindowMachine(Sliding(size=8, slide=2))
    windows.take_at(RECORD, time, 1 << 8)
    assert [start for start, _, _, _ in windows.entries()] == starts


def redistributed_at(lateness: int, other_time: int) -> WindowMachine:
    """The window of `machine`, redistributed together with that of a subtask whose watermark was lower."""
    operator = Tumbling(size=10, lateness=lateness)
    behind = WindowMachine(operator)
    behind.advance(other_time)
    whole = redistributed(operator, [machine(lateness), behind], lambda key: True)
    assert isinstance(whole, WindowMachine)
    return whole


def test_who_takes_over_a_window_does_not_emit_again_what_was() -> None:
    windows = redistributed_at(lateness=4, other_time=LAST - 1)
    assert (windows.time, windows.timers()) == (LAST - 1, [(LAST + 4, 1, 0)])
    assert windows.advance(LAST) == []


def test_who_takes_over_a_window_emits_it_again_with_another_record() -> None:
    windows = redistributed_at(lateness=4, other_time=LAST - 1)
    assert windows.take_at(RECORD, 4, 2 << 8) == []
    assert windows.timers() == [(LAST, 1, 0), (LAST + 4, 1, 0)]
    assert [row for _, row in windows.advance(LAST)] == [(1, 2, 200, 0)]
