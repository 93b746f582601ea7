from __future__ import annotations

import msgspec

from cutproof.properties.spark.unasked import LOCAL_RECOVERY, NEITHER, RESCALED
from cutproof.reports.model import ScenarioCounts, Summary
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


def test_who_saw_a_violation_and_where_pyspark_was_not_asked_are_said() -> None:
    text_shown = " ".join(render_text(stories.summary()).split())
    assert f"One judge saw it: {NEITHER}." in text_shown
    assert (
        "PySpark computed the expected rows in 930 of 1,000 scenarios; it was not asked in the others: "
        f"{RESCALED} (50); {LOCAL_RECOVERY} (20)."
    ) in text_shown
    table = {line.split()[0]: line.split()[-1] for line in render_text(stories.summary()).splitlines()[1:6]}
    assert table == {
        "consistent-cut": "700", "exactly-once": "650", "no-data-loss": "0", "at-most-once": "-", "progress": "-"
    }  # fmt: skip


def test_a_run_that_is_not_judged_by_shares_says_why_and_names_no_shortfall() -> None:
    why = "The run had 4 of the 1,500 scenarios of the profile default: whether it exercised enough is not judged."
    text = render_text(Summary(scenarios=ScenarioCounts(run=4, held=4), not_judged_by_shares=why))
    assert why in " ".join(text.split())
    assert "short" not in text
    assert "Everything that was judged held." in text


def test_who_else_came_to_the_ports_is_told_in_a_sentence() -> None:
    text = " ".join(render_text(Summary(foreign_connections=1_200)).split())
    assert "1,200 connections to the runs' ports came from another program of this machine and were closed" in text
    assert "another program" not in render_text(Summary())
