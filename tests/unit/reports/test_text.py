from __future__ import annotations

import msgspec

from cutproof.reports.model import Summary
from cutproof.reports.text import WIDTH, render_rows, render_text
from unit.reports import stories


def test_the_table_of_invariants() -> None:
    lines = render_text(stories.summary()).splitlines()
    assert lines[0].split() == ["invariant", "verdict", "held", "violated", "unknown", "can", "show", "by", "both"]
    assert lines[1].split() == ["consistent-cut", "violated", "889", "1", "110", "900", "700"]
    assert lines[2].split() == ["exactly-once", "holds", "898", "0", "102", "940", "650"]


def test_it_ends_with_the_outcome_and_the_report() -> None:
    text = render_text(stories.summary(), report="out/report.html")
    assert text.endswith("consistent-cut was violated. 135.1 scenarios a second.\nreport: out/report.html\n")
    assert "shortfall: tear-write was planned 12 times and never fired." in text
    assert "cutproof replay counterexamples/A01-7f3a.json" in text


def test_nothing_but_a_command_is_wider_than_a_terminal() -> None:
    for line in render_text(stories.summary()).splitlines():
        assert len(line) <= WIDTH or "cutproof replay" in line


def test_an_empty_run_has_a_text() -> None:
    assert "Nothing was run." in render_text(Summary())


def test_rows_side_by_side_mark_what_differs_in_words() -> None:
    lines = render_rows(stories.counterexample()).splitlines()
    assert lines[0].split() == ["expected", "committed"]
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "= as expected",
        "= as expected",
        "− lost",
        "! unexpected",
        "= as expected",
        "+ repeated",
    ]
    assert lines[1].count("NULL, 1, 77120") == 2


def test_many_rows_show_those_that_differ() -> None:
    view = stories.counterexample()
    text = render_rows(msgspec.structs.replace(view, rows=view.rows * 6))
    assert "as expected" not in text
    assert text.endswith("(18 rows not shown)")
