"""The comparison of two commits tells what differs, and a run by another engine does differ."""

from __future__ import annotations

from pathlib import Path

from cutproof.harness.scenario.files import read_scenario
from refactoring import COLUMNS, Row, differences, drawn, row_of

CORPUS = Path(__file__).parents[1] / "corpus"


def row(name: str, **columns: str) -> Row:
    return {"name": name, **dict.fromkeys(COLUMNS, "same"), **columns}


def test_the_same_rows_do_not_differ() -> None:
    rows = {"a": row("a"), "b": row("b")}
    assert differences(rows, dict(rows)) == []


def test_each_kind_of_difference_is_reported_by_name() -> None:
    before = {name: row(name) for name in ("a", "b", "c")}
    after = {"a": row("a", trace="another"), "b": row("b", words="others"), "d": row("d")}
    assert differences(before, after) == [
        "gone: 1 of 3 (c)",
        "new: 1 of 3 (d)",
        "another trace: 1 of 3 (a)",
        "another words: 1 of 3 (b)",
    ]


def test_a_planted_defect_leaves_another_trace_and_other_verdicts() -> None:
    scenario = read_scenario(CORPUS / "A01.json")
    right, wrong = row_of("A01", scenario), row_of("A01", scenario, "A01")
    assert [right[column] == wrong[column] for column in COLUMNS] == [True, False, False, False]


def test_what_is_drawn_is_the_same_twice_and_differs_by_seed() -> None:
    once, again, other = drawn(5, 0), drawn(5, 0), drawn(6, 0)
    assert once == again
    assert [mine["trace"] != theirs["trace"] for mine, theirs in zip(once, other, strict=True)].count(True) > len(
        once
    ) / 2
