"""The names of records stand where nothing covers them."""

from __future__ import annotations

import pytest

from cutproof.reports.diagrams.labels import Box, Labels

START, END = (100.0, 0.0), (100.0, 56.0)


def _box(left: float, top: float, right: float, bottom: float) -> Box:
    return Box(left=left, top=top, right=right, bottom=bottom)


def test_where_nothing_is_in_the_way_it_stands_right_of_the_middle() -> None:
    assert Labels([], []).place("0:1", START, END) == (105.0, 25.0)


def test_a_box_there_sends_it_to_the_other_side() -> None:
    x, y = Labels([_box(104, 10, 130, 40)], []).place("0:1", START, END)
    assert x < 100
    assert 0 < y < 56


def test_a_line_there_sends_it_to_the_other_side() -> None:
    x, _ = Labels([], [((110.0, -100.0), (110.0, 200.0))]).place("0:1", START, END)
    assert x < 100


def test_two_names_do_not_stand_on_each_other() -> None:
    labels = Labels([], [])
    first, second = (labels.place("0:1", START, END) for _ in range(2))
    assert abs(first[0] - second[0]) > 15 or abs(first[1] - second[1]) > 10


def test_where_no_place_is_free_it_takes_the_one_with_the_least_in_its_way() -> None:
    everywhere = _box(0, -100, 300, 200)
    assert Labels([everywhere, _box(101, -100, 300, 200)], []).place("0:1", START, END)[0] < 100


@pytest.mark.parametrize(
    ("line", "crosses"),
    [
        (((0, 0), (10, 10)), True),
        (((0, 5), (3, 5)), False),
        (((0, 8), (20, 8)), False),
        (((6, -10), (6, 20)), True),
        (((0, 0), (20, 1)), False),
        (((5, 5), (5, 5)), True),
    ],
)
def test_whether_a_line_crosses_a_box(line: tuple[tuple[float, float], tuple[float, float]], crosses: bool) -> None:
    box = _box(4, 4, 7, 7)
    assert box.is_crossed_by(*line) is crosses
    assert box.is_crossed_by(*reversed(line)) is crosses
