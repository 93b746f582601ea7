"""Contrast as WCAG 2.2 defines it, reckoned here from its text and not by the report's code."""

from __future__ import annotations

import pytest

from cutproof.reports.palette import DARK, HEAT_MOST, LIGHT, LINES_ON_GROUND, TEXT_ON

Colour = tuple[float, float, float]


def _colour(code: str) -> Colour:
    red, green, blue = (int(code[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _luminance(colour: Colour) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_computed_as_the_standard_has_it() -> None:
    assert contrast(_colour("#000000"), _colour("#ffffff")) == pytest.approx(21)
    assert contrast(_colour("#777777"), _colour("#ffffff")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_all_text_has_the_contrast_of_aa(palette: dict[str, str]) -> None:
    weak = {
        (text, ground): round(ratio, 2)
        for ground, texts in TEXT_ON.items()
        for text in texts
        if (ratio := contrast(_colour(palette[text]), _colour(palette[ground]))) < 4.5
    }
    assert weak == {}


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_that_mean_something_have_the_contrast_of_aa(palette: dict[str, str]) -> None:
    weak = {line for line in LINES_ON_GROUND if contrast(_colour(palette[line]), _colour(palette["ground"])) < 3}
    assert weak == set()


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_numbers_are_readable_on_the_hottest_cell(palette: dict[str, str]) -> None:
    heat, ground = _colour(palette["heat"]), _colour(palette["ground"])
    red, green, blue = (HEAT_MOST * hot + (1 - HEAT_MOST) * cold for hot, cold in zip(heat, ground, strict=True))
    assert contrast(_colour(palette["ink"]), (red, green, blue)) >= 4.5


def test_light_and_dark_name_the_same_colours() -> None:
    assert list(LIGHT) == list(DARK)
