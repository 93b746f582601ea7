from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest

from cutproof.properties.spark.unasked import LOCAL_RECOVERY, NO_STATE
from cutproof.reports.model import CounterexampleView, ReportView, RowPair, ScenarioCounts, Summary
from cutproof.reports.render import MOST_ROWS, Gap, render_html, shortened
from unit.reports import stories

VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>{{ 7*7 }}\ud800"


class Page(HTMLParser):
    """Checks that every element is closed in turn, and gathers what a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.headings: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2"):
            self.headings.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"h1", "h2"} & set(self.open):
            self.headings[-1] += data


def test_it_is_one_well_formed_page_in_the_readers_order() -> None:
    page = Page(render_html(stories.report()))
    assert page.open == []
    assert page.headings == [
        "✗ consistent-cut was violated.",
        "What failed",
        "Which invariants held?",
        "What was really tried",
        "How the run went",
    ]
    assert len(page.ids) == len(set(page.ids))


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = render_html(stories.report())
    page = Page(text)
    assert not {"script", "iframe", "img", "object", "embed"} & set(page.tags)
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert "url(" not in text
    loading = [value for name, value in page.attributes if name in ("src", "href", "srcset", "action")]
    assert all(value.startswith(("#", "data:")) for value in loading)
    assert not [name for name, _ in page.attributes if name.startswith("on")]


def test_every_reference_within_the_page_leads_somewhere() -> None:
    page = Page(render_html(stories.report()))
    linked = {value.removeprefix("#") for name, value in page.attributes if name == "href" and value.startswith("#")}
    named = {value for name, value in page.attributes if name in ("aria-labelledby", "for")}
    assert linked | named <= set(page.ids)


def test_a_run_that_held_has_no_counterexamples() -> None:
    text = render_html(stories.report(violated=0))
    assert 'id="counterexamples"' not in text
    assert "Nothing was violated, but the run fell short of what it had to show." in text


def test_who_saw_a_violation_and_where_pyspark_was_not_asked_are_reported() -> None:
    view = msgspec.structs.replace(stories.counterexample(), judges=1, not_asked=LOCAL_RECOVERY)
    text = render_html(ReportView(summary=stories.summary(), counterexamples=(view,)))
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "|", text))
    assert f"One judge saw it: PySpark was not asked, because {LOCAL_RECOVERY}." in plain
    assert "PySpark computed the expected rows in 930 of 1,000 scenarios; it was not asked in the others: " in plain
    assert re.search(rf"not asked for keyed state\|+{NO_STATE} \(400\)", plain)
    both = msgspec.structs.replace(view, judges=2, not_asked="")
    assert "Both judges saw it." in render_html(ReportView(summary=stories.summary(), counterexamples=(both,)))
    unsaid = msgspec.structs.replace(view, judges=0, not_asked="")
    assert "saw it" not in render_html(ReportView(summary=stories.summary(), counterexamples=(unsaid,)))


def test_of_every_violated_scenario_it_states_how_many_judges_saw_it() -> None:
    plain = re.sub(r"<[^>]*>", "", render_html(stories.report()))
    text_shown = "consistent-cut: sent after, applied before (one judge); exactly-once: repeated row (both)"
    assert plain.count(text_shown) == len(stories.report().violated)


def test_a_run_that_is_not_judged_by_shares_states_why() -> None:
    summary = Summary(scenarios=ScenarioCounts(run=4, held=4), not_judged_by_shares="The run had 4 of 9 scenarios.")
    page = render_html(ReportView(summary=summary))
    assert "The run had 4 of 9 scenarios." in page
    assert "Everything that was judged held." in re.sub(r"<[^>]*>", "", page)


def test_an_empty_run_has_a_page() -> None:
    page = Page(render_html(ReportView(summary=Summary())))
    assert page.headings[0] == "? Nothing was run."


def test_the_rows_that_differ_are_marked_in_words() -> None:
    text = render_html(stories.report())
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "|", text))
    assert re.search(r"lost\|+7\|+2\|+889001\|+missing", plain)
    assert re.search(r"repeated\|+not expected\|+9\|+1\|+12009", plain)
    assert re.search(r"unexpected\|+not expected\|+7\|+3\|+889001", plain)


def test_every_count_of_the_heat_map_is_a_number_in_a_cell() -> None:
    text = render_html(stories.report())
    for counts in stories.summary().faults.values():
        for fired in counts.phases.values():
            assert re.search(rf'class="n cell( none)?" style="--v:[01]\.\d\d">{fired}<', text)


@pytest.mark.parametrize(
    "field", ["id", "invariant", "difference", "story", "witness", "neighbour", "scenario", "replay", "not_asked"]
)
def test_hostile_text_is_text(field: str) -> None:
    view = msgspec.structs.replace(stories.counterexample(), judges=1, **{field: HOSTILE})
    text = render_html(ReportView(summary=stories.summary(), counterexamples=(view,)))
    page = Page(text)
    assert not {"script", "img"} & set(page.tags)
    assert page.open == []
    assert "&lt;script&gt;" in text
    assert "{{ 7*7 }}" in text
    text.encode("utf-8")


def test_hostile_names_in_the_summary_are_text() -> None:
    summary = stories.summary()
    summary = msgspec.structs.replace(
        summary,
        subject=HOSTILE,
        invariants={HOSTILE: summary.invariants["exactly-once"]},
        faults={HOSTILE: summary.faults["kill-task"]},
        commands={HOSTILE: summary.commands["stop-with-savepoint"]},
        shortfalls=[HOSTILE],
        failures=[HOSTILE],
        not_tried=[HOSTILE],
        unapplied={HOSTILE: 1},
    )
    page = Page(render_html(ReportView(summary=summary)))
    assert not {"script", "img"} & set(page.tags)
    assert page.open == []


def test_nothing_needs_a_pointer_to_be_read() -> None:
    """What a tooltip says stands in the list under the diagram, too; HTML has no other tooltip."""
    text = render_html(stories.report())
    assert " title=" not in text
    words = text[text.index("The diagram in words") :]
    tooltips = re.findall(r"<g class=\"message record[^>]*><title>(.*?)</title>", text)
    assert tooltips
    for tooltip in tooltips:
        who, _, what = tooltip.partition(" ")
        assert f"<td>{who}</td><td>{what.split(',')[0]}" in words


def test_the_same_view_gives_the_same_page() -> None:
    assert render_html(stories.report()) == render_html(stories.report())


def test_thirty_long_counterexamples_stay_small() -> None:
    many = tuple(stories.counterexample(f"long-{number}", stories.long_history()) for number in range(30))
    text = render_html(ReportView(summary=stories.summary(), counterexamples=many))
    assert len(text.encode()) < 3_000_000
    assert text.count("<article") == 30


def test_many_rows_shrink_to_those_that_differ_and_their_neighbours() -> None:
    ok = RowPair(status="ok", expected=(1, 1, 1, 0), committed=(1, 1, 1, 0))
    lost = RowPair(status="lost", expected=(2, 2, 2, 0))
    rows = [ok] * MOST_ROWS + [lost] + [ok] * 10
    assert shortened(rows) == [Gap(hidden=MOST_ROWS - 1), ok, lost, ok, Gap(hidden=9)]
    assert shortened(rows[:MOST_ROWS]) == rows[:MOST_ROWS]
    text = render_html(ReportView(summary=Summary(), counterexamples=(_with_rows(tuple(rows)),)))
    assert "59 rows not shown" in text


def test_a_huge_scenario_is_cut_short() -> None:
    view = msgspec.structs.replace(stories.counterexample(), scenario="x" * 1_000_000)
    text = render_html(ReportView(summary=Summary(), counterexamples=(view,)))
    assert len(text) < 200_000
    assert "… the file has the rest" in text


def _with_rows(rows: tuple[RowPair, ...]) -> CounterexampleView:
    return msgspec.structs.replace(stories.counterexample(), rows=rows)


def test_no_style_of_a_drawing_hangs_on_what_stands_around_it() -> None:
    """On paper a drawing's pieces are copies (`use`), which styles reach only through the drawing itself."""
    style = render_html(stories.report()).partition("</style>")[0]
    drawings = style[style.index("The space-time diagram") : style.index("How the run went")]
    selectors = re.findall(r"^([^{}\n]+?) \{", drawings, re.MULTILINE)
    assert len(selectors) > 30
    assert [one for one in selectors if one.startswith("svg") or " svg " in one] == []
