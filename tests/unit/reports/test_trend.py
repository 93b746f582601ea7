from __future__ import annotations

import re

import pytest

from cutproof.reports.charts.trend import MOST_POINTS, Chart, Line, drawn

PATH = re.compile(r'class="(?P<kind>[\w -]+)"[^>]* d="(?P<d>[^"]+)"')


def chart(values: list[float | None], **fields: object) -> str:
    pieces: list[list[tuple[float, float]]] = [[]]
    for at, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((at, value))
    line = Line(
        name="it", points=tuple(tuple(piece) for piece in pieces if piece), dots=bool(fields.pop("dots", False))
    )
    given = {"title": "it", "caption": "all", "up": "", "across": ("first", "last"), "lines": (line,)}
    return drawn(Chart(**(given | fields))).picture  # type: ignore[arg-type]


def parts(picture: str, kind: str) -> str:
    return "".join(match["d"] for match in PATH.finditer(picture) if match["kind"].startswith(kind))


def names(picture: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)<", picture)


def test_a_night_without_a_value_interrupts_the_line_and_a_single_night_is_a_dot() -> None:
    picture = chart([1, 2, None, 3, None, 4, 5])
    assert parts(picture, "curve").count("M") == 2
    assert parts(picture, "dots").count("M") == 1


def test_a_line_of_a_thousand_nights_keeps_its_highest_and_lowest_point() -> None:
    values: list[float | None] = [50.0] * 1_000
    values[433], values[777] = 100.0, 0.0
    drawn_line = parts(chart(values), "curve")
    points = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", drawn_line)]
    assert len(points) <= MOST_POINTS + 2
    assert (min(points), max(points)) == (18, 164)


@pytest.mark.parametrize(
    ("values", "unit", "ticks"),
    [
        ([48.0, 53.0], "", ["0", "20", "40", "60"]),
        ([0.041], "", ["0", "0.02", "0.04", "0.06"]),
        ([0.0], "", ["0", "1"]),
        ([1.0, 2.0], "", ["0", "1", "2"]),
        ([4.0, 400.0], "ms", ["1 ms", "10 ms", "100 ms", "1 s"]),
        ([5.0, 500.0], "s", ["1 s", "10 s", "1 min", "10 min"]),
        ([3.0], "s", ["1 s", "10 s"]),
        ([0.0], "s", ["1 s", "10 s"]),
    ],
)
def test_ticks_are_round_and_stand_around_all_values(values: list[float], unit: str, ticks: list[str]) -> None:
    assert names(chart([*values], unit=unit))[: len(ticks)] == ticks


@pytest.mark.parametrize("values", [[1e-7, 5e6], [1e9], [7e5, 8e5]])
def test_no_value_leaves_the_picture(values: list[float]) -> None:
    for unit in ("", "s", "ms"):
        squares = re.findall(r"M[\d.-]+ ([\d.-]+)m", parts(chart([*values], unit=unit, dots=True), "dots"))
        assert all(18 <= float(y) <= 164 for y in squares), (unit, squares)


def test_a_chart_without_a_point_is_refused() -> None:
    with pytest.raises(ValueError, match="no line has a point"):
        chart([])
