"""The page of a check: how two tables differ, as one HTML file that needs no network."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Template

from ..properties.checking.request import CheckResult, Sample
from .render import environment
from .words import plural

TITLES = {
    "changed": "Rows that differ in value",
    "lost": "Lost: expected, but not committed",
    "repeated": "Repeated: committed more often than expected",
    "unexpected": "Unexpected: committed, but not expected",
}
MOST_CHARACTERS = 300
"""the most characters of one value"""


def render_table_differences(
    result: CheckResult, *, guarantee: str, expected: str, actual: str, version: str, key: tuple[str, ...] = ()
) -> str:
    """The whole page; every text of the tables is escaped."""
    kinds = [(kind, title, getattr(result, kind), _rows(result, kind)) for kind, title in TITLES.items()]
    page = _template().render(
        result=result,
        headline=f"{guarantee} {'held' if result.held else 'is violated'}",
        outcome="held" if result.held else "violated",
        expected=expected,
        actual=actual,
        version=version,
        key=key,
        counts=[(title, number) for _, title, number, _ in kinds],
        kinds=[one for one in kinds if one[2]],
        rows_expected=plural(result.expected_rows, "row"),
        rows_actual=plural(result.actual_rows, "row"),
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _rows(result: CheckResult, kind: str) -> list[tuple[int, list[tuple[str, str, str | None]]]]:
    """The differing rows: how often each occurs, and for each column its name, value and differing other value."""
    return [(sample.count, _cells(sample)) for sample in result.samples if sample.kind == kind]


def _cells(sample: Sample) -> list[tuple[str, str, str | None]]:
    found = []
    for name, value in sample.row.items():
        other = _text(sample.actual[name]) if sample.actual is not None else None
        text = _text(value)
        found.append((name, text, other if other != text else None))
    return found


def _text(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "…"


@cache
def _template() -> Template:
    return environment().get_template("table_differences.html.j2")
