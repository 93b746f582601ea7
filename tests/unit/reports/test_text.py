from __future__ import annotations

import msgspec
import pytest

from cutproof.properties.spark.unasked import LOCAL_RECOVERY, NEITHER, RESCALED
from cutproof.reports.model import ScenarioCounts, StopCounts, Summary
from cutproof.reports.text import FOUND, WIDTH, render_rows, render_text
from unit.reports import stories

SCREEN = 30
"""lines that a terminal shows at once"""


def test_the_table_of_invariants() -> None:
    lines = render_text(stories.summary()).splitlines()
    assert lines[0].split() == ["invariant", "verdict", "held", "violated", "unknown", "can", "show", "by", "both"]
    assert lines[1].split() == ["consistent-cut", "violated", "889", "1", "110", "900", "700"]
    assert lines[2].split() == ["exactly-once", "holds", "898", "0", "102", "940", "650"]


def test_a_slow_subject_is_counted_by_the_minute() -> None:
    slow = msgspec.structs.replace(stories.summary(), scenarios_per_second=0.035)
    assert "consistent-cut was violated. 2.1 scenarios a minute.\n" in render_text(slow)


@pytest.mark.parametrize("verbose", [False, True])
def test_it_ends_with_the_outcome_and_the_report(verbose: bool) -> None:
    text = render_text(stories.summary(), report="out/report.html", verbose=verbose)
    assert text.endswith("\nreport: out/report.html\n")
    assert "consistent-cut was violated. 135.1 scenarios a second.\n" in text
    assert "shortfall: tear-write was planned 12 times and never fired." in text
    assert "cutproof replay counterexamples/A01-7f3a.json" in text


IN_FULL = ("Planned, but never fired", "The subject cannot do", "it was not asked in the others", "way to end")
"""what the report has, and a screen has no room for"""


def _with_ways_to_end(summary: Summary) -> Summary:
    return msgspec.structs.replace(summary, stops={"cancel": StopCounts(planned=3, finished=2, hit=1)})


def test_one_screen_shows_verdicts_findings_shortfalls_and_where_the_report_is() -> None:
    text = render_text(_with_ways_to_end(stories.summary()), report="out/report.html")
    assert text.count("\n") <= SCREEN
    assert [words for words in IN_FULL if words in " ".join(text.split())] == []
    assert "in the report, and with --verbose" in text


def test_verbose_text_has_what_the_report_has() -> None:
    text = render_text(_with_ways_to_end(stories.summary()), report="out/report.html", verbose=True)
    assert [words for words in IN_FULL if words not in " ".join(text.split())] == []
    assert "--verbose" not in text


def test_many_findings_and_shortfalls_stay_on_the_screen_by_number() -> None:
    few = stories.summary()
    many = msgspec.structs.replace(
        few,
        counterexamples=[
            msgspec.structs.replace(few.counterexamples[0], difference=f"difference {number}") for number in range(30)
        ],
        shortfalls=[f"fault {number} never fired." for number in range(30)],
    )
    text = render_text(many)
    assert text.count("\n") <= SCREEN + 2 * FOUND
    assert [number for number in range(30) if f"difference {number}\n" in text] == [0, 1, 2, 3]
    assert text.count(few.counterexamples[0].replay) == FOUND
    assert "and 26 counterexamples more, in the report\n" in text
    assert "and 27 shortfalls more, in the report\n" in text
    in_full = render_text(many, verbose=True)
    assert all(f"difference {number}\n" in in_full for number in range(30))
    assert all(f"fault {number} never" in in_full for number in range(30))


def test_nothing_but_a_command_is_wider_than_a_terminal() -> None:
    both = render_text(stories.summary()) + render_text(stories.summary(), verbose=True)
    for line in both.splitlines():
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


def test_who_saw_a_violation_and_where_pyspark_was_not_asked_are_reported() -> None:
    printed = " ".join(render_text(stories.summary(), verbose=True).split())
    assert f"One judge saw it: {NEITHER}." in printed
    assert (
        "PySpark computed the expected rows in 930 of 1,000 scenarios; it was not asked in the others: "
        f"{RESCALED} (50); {LOCAL_RECOVERY} (20)."
    ) in printed
    table = {line.split()[0]: line.split()[-1] for line in render_text(stories.summary()).splitlines()[1:6]}
    assert table == {
        "consistent-cut": "700", "exactly-once": "650", "no-data-loss": "0", "at-most-once": "-", "progress": "-"
    }  # fmt: skip


def test_a_run_that_is_not_judged_by_shares_states_why_and_names_no_shortfall() -> None:
    why = "The run had 4 of the 1,500 scenarios of the profile default: whether it exercised enough is not judged."
    text = render_text(Summary(scenarios=ScenarioCounts(run=4, held=4), not_judged_by_shares=why))
    assert why in " ".join(text.split())
    assert "short" not in text
    assert "Everything that was judged held." in text


@pytest.mark.parametrize("verbose", [False, True])
def test_who_else_came_to_the_ports_is_reported_in_a_sentence(verbose: bool) -> None:
    text = " ".join(render_text(Summary(foreign_connections=1_200), verbose=verbose).split())
    assert "1,200 connections to the runs' ports came from another program of this machine and were closed" in text
    assert "another program" not in render_text(Summary())
