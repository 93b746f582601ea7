"""A counterexample for a terminal."""

from __future__ import annotations

import msgspec

from cutproof.harness.counterexamples.story_text import rows_text, story_text
from cutproof.reports.model import CounterexampleView
from cutproof.reports.rows import side_by_side

ROWS = side_by_side([(1, 10, 7, 0), (2, None, 8, 0)], [(1, 10, 7, 0), (1, 10, 7, 0)])


def test_rows_stand_side_by_side_and_those_that_differ_first() -> None:
    assert rows_text(ROWS) == [
        "          expected    committed",
        "repeated  -           1  10  7",
        "lost      2  NULL  8  -",
        "          1  10  7    1  10  7",
    ]


def test_many_rows_are_cut_short() -> None:
    pairs = side_by_side([(key, 0, key, 0) for key in range(50)], [])
    assert rows_text(pairs, at_most=2)[-1] == "and 48 more rows; 50 differ in all"


def test_a_story_ends_with_the_way_back() -> None:
    view = CounterexampleView(
        id="x",
        invariant="exactly-once",
        difference="repeated row",
        story="A task dies, and a row is there twice.",
        paragraphs=("What ran: a count.",),
        rows=ROWS,
        neighbour="It holds if the ack comes first.",
        replay="cutproof replay x.json",
        judges=2,
    )
    lines = story_text(view).splitlines()
    assert lines[0] == "exactly-once violated (repeated row): A task dies, and a row is there twice."
    assert "repeated  -           1  10  7" in lines
    assert lines[-3:] == [
        "It holds if the ack comes first.", "Both judges saw it.", "replay: cutproof replay x.json"
    ]  # fmt: skip
    one_judge = msgspec.structs.replace(view, judges=1, not_asked="a task recovered locally")
    sentence = "One judge saw it: PySpark was not asked, because a task recovered locally."
    assert story_text(one_judge).splitlines()[-2] == sentence
    contradicted = msgspec.structs.replace(view, judges=1)
    assert story_text(contradicted).splitlines()[-2] == "One judge saw it: PySpark disagrees."
