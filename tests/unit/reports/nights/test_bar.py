from __future__ import annotations

import re

from cutproof.reports.nights.bar import MOST_STEPS, SHAPES, bar

PATH = re.compile(r'class="(?P<kind>[\w -]+)"[^>]* d="(?P<d>[^"]+)"')


def parts(picture: str, kind: str) -> str:
    return "".join(match["d"] for match in PATH.finditer(picture) if match["kind"].startswith(kind))


def test_a_bar_has_a_part_for_each_stretch_and_nothing_before_the_failure_was_found() -> None:
    picture = bar("  xx~.oo")
    assert parts(picture, "failed") == "M2 0h2v14H2z"
    assert parts(picture, "flaky") == "M4 6h1v8H4z"
    assert parts(picture, "fixed") == "M6 5.5h2v3H6z"
    assert 'viewBox="0 0 8 14"' in picture


def test_each_letter_has_a_shape_of_its_own() -> None:
    assert len({shape for _, shape in SHAPES.values()}) == len(SHAPES) == 5


def test_a_step_of_several_nights_shows_the_worst_of_them() -> None:
    letters = "o" * 998 + "xo"
    assert parts(bar(letters), "failed") == f"M{MOST_STEPS - 1} 0h1v14H{MOST_STEPS - 1}z"
