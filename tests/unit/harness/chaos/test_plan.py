"""The time of a night: the same for each subject, and what one leaves goes to the next."""

from __future__ import annotations

import pytest

from cutproof.harness.chaos.plan import duration_in_words, in_words, share_s, slice_after


def test_what_a_subject_leaves_goes_to_the_next() -> None:
    assert share_s(90, 3) == 30
    assert share_s(80, 2) == 40, "the first took 10 of its 30 s"
    assert share_s(-5, 1) == 0


def test_slices_hold_few_failing_scenarios() -> None:
    assert slice_after(0, 0) == 2_000
    assert slice_after(2_000, 0) == 20_000
    assert slice_after(2_000, 100) == 10_000
    assert slice_after(2_000, 2_000) == 1_000


def test_slices_keep_many_workers_busy() -> None:
    assert slice_after(2_000, 0, at_once=1_000) == 20_000
    assert slice_after(2_000, 0, at_once=20_000) == 100_000
    assert slice_after(2_000, 100, at_once=20_000) == 10_000, "histories of failing scenarios are in memory"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.5, "0.5 s"), (30, "30 s"), (90, "1 min 30 s"), (5_400, "1 h 30 min"), (7_200, "2 h")]
)
def test_durations_are_written_as_people_say_them(seconds: float, words: str) -> None:
    assert duration_in_words(seconds) == words


def test_the_plan_names_each_subject() -> None:
    lines = in_words(7_200, ["simulated", "processes"])
    assert "each of 2 subjects gets 1 h" in lines[0]
    assert [line.strip() for line in lines[1:]] == ["simulated", "processes"]
