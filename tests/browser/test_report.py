"""The report as a reader's browser shows it: on a desk, on a phone, in the dark and on paper."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from browser.chromium import Page
from browser.looks import sticking_out, unreachable
from cutproof.faults.plan import KINDS
from cutproof.faults.points import POINTS
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.subject.names import subject_called
from cutproof.properties.model.history import History
from cutproof.reports.model import Coverage, SnapshotCoverage
from cutproof.reports.nights.counts import CountTable
from cutproof.reports.render import render_html
from unit.reports import stories

HOSTILE = "<script>document.title = 'taken'</script><img src='http://example.invalid/x'>"


EVERYWHERE = Coverage(
    possible=2 * len(KINDS) * len(POINTS),
    table=CountTable(
        columns=list(KINDS),
        rows={
            f"aligned {ending} {point}": ",".join([fired] * len(KINDS))
            for point in POINTS
            for ending, fired in (("finished", "1000"), ("failed", "0"))
        },
    ),
    snapshots=SnapshotCoverage(
        possible=2 * len(KINDS),
        table=CountTable(
            columns=list(KINDS),
            rows={f"incremental lsm {action}": ",".join(["1000"] * len(KINDS)) for action in ("none", "resume newest")},
        ),
    ),
)
"""The widest map there can be."""


def recorded(defect: str) -> History:
    """A planted defect's counterexample of the corpus, as it runs."""
    scenario = read_scenario(Path(__file__).parents[1] / "corpus" / f"{defect}.json")
    return subject_called("simulated", defect).run(scenario, timeline=True)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    view = stories.report()
    long = stories.counterexample("long", stories.long_history())
    found = [msgspec.structs.replace(stories.counterexample(name, recorded(name)), checkpoint=1)
             for name in ("A01", "M14")]  # fmt: skip
    hostile = msgspec.structs.replace(stories.counterexample("hostile"), story=HOSTILE, scenario=HOSTILE)
    file = tmp_path_factory.mktemp("report") / "report.html"
    summary = msgspec.structs.replace(view.summary, coverage=EVERYWHERE)
    everything = msgspec.structs.replace(
        view, counterexamples=(*view.counterexamples, long, *found, hostile), summary=summary
    )
    file.write_text(render_html(everything), encoding="utf-8")
    return file


def test_it_opens_without_a_complaint_and_asks_for_nothing_else(page: Page, report: Path) -> None:
    assert page.requests == [report.as_uri()]
    assert page.complaints == []
    assert page.evaluate("document.title") == "consistent-cut was violated. · cutproof"


def test_the_headings_are_there_in_order(page: Page) -> None:
    headings = page.evaluate("[...document.querySelectorAll('h1, h2')].map(e => e.innerText.trim())")
    assert headings == [
        "✗ consistent-cut was violated.",
        "What failed",
        "Which invariants held?",
        "What was really tried",
        "How the run went",
    ]


@pytest.mark.parametrize(("width", "within"), [(1280, 700), (390, 900)])
def test_what_failed_stands_under_the_verdict(page: Page, width: int, within: int) -> None:
    page.resize(width)
    assert page.evaluate("document.querySelector('article .story').getBoundingClientRect().top") < within


def test_every_violated_scenario_is_listed_with_the_command_that_runs_it_again(page: Page) -> None:
    rows = page.evaluate("[...document.querySelectorAll('.violated-scenarios tbody tr')].map(e => e.innerText)")
    assert len(rows) == len(stories.report().violated) > 1
    assert all("cutproof replay out/7/scenarios.jsonl:" in row for row in rows)


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_shows_every_replay_command_whole(page: Page, width: int) -> None:
    page.resize(width)
    commands = "[...document.querySelectorAll('.replay code, .command')]"
    assert page.evaluate(f"{commands}.length") > 3
    assert page.evaluate(f"{commands}.filter(e => e.scrollWidth > e.clientWidth && e.clientWidth).length") == 0


COVERED = """(() => {
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  const found = []
  for (const article of document.querySelectorAll('article')) {
    const boxes = [...article.querySelectorAll('.picture .message.barrier rect')].map(e => e.getBoundingClientRect())
    const cuts = [...article.querySelectorAll('.picture .cut.main path:not(.leader)')]
    for (const name of article.querySelectorAll('.picture .record-name.crossing')) {
      const box = name.getBoundingClientRect()
      const on = cuts.some(cut => {
        const matrix = cut.getScreenCTM(), length = cut.getTotalLength()
        return Array.from({length: 400}, (_, at) => cut.getPointAtLength(length * at / 399).matrixTransform(matrix))
          .some(at => box.left < at.x && at.x < box.right && box.top < at.y && at.y < box.bottom)
      })
      found.push([name.textContent, on || boxes.some(other => meet(box, other))])
    }
  }
  return found
})()"""


def test_no_line_and_no_box_covers_the_name_of_a_record_that_crosses_the_cut(page: Page) -> None:
    found = page.evaluate(COVERED)
    assert len(found) > 3
    assert [name for name, covered in found if covered] == []


def test_a_picture_that_is_wider_than_its_window_states_that_it_goes_on(page: Page) -> None:
    ends_reached = (
        "[...document.querySelectorAll('article')].map(e => [e.querySelector('.diagram'), e.querySelector('.goes-on')])"
    )
    shown = f"{ends_reached}.filter(([picture]) => picture).map(([picture, words]) => "
    hint_shows = "[picture.scrollWidth > picture.clientWidth + 1, getComputedStyle(words).display != 'none'])"
    for width in (390, 768, 1280):
        page.resize(width)
        found = page.evaluate(shown + hint_shows)
        assert [wider for wider, _ in found] == [hinted for _, hinted in found], width
    page.resize(390)
    assert any(hinted for _, hinted in page.evaluate(shown + hint_shows))


def test_a_map_of_the_coverage_states_in_a_sentence_how_much_was_hit_and_shows_dots_for_the_rest(page: Page) -> None:
    summary = page.evaluate("document.querySelector('#tried details:has(.coverage) summary').innerText")
    assert "possible targets hit" in summary
    cells = page.evaluate("[...document.querySelectorAll('.coverage td')].map(e => e.textContent)")
    assert set(cells) <= {"", "·"} | {cell for cell in cells if cell.replace(",", "").isdecimal()}


def test_the_rows_that_differ_can_be_read(page: Page) -> None:
    rows = page.evaluate("[...document.querySelectorAll('article:first-of-type .rows tbody tr')].map(e => e.innerText)")
    assert [row.split() for row in rows if "as expected" not in row] == [
        ["−", "lost", "7", "2", "889001", "missing"],
        ["!", "unexpected", "not", "expected", "7", "3", "889001"],
        ["+", "repeated", "not", "expected", "9", "1", "12009"],
    ]


def test_the_diagram_is_drawn(page: Page) -> None:
    box = "document.querySelector('article .message.crossing').getBoundingClientRect()"
    assert page.evaluate(f"{box}.width") > 20
    assert page.evaluate(f"{box}.height") > 50
    stroke = "getComputedStyle(document.querySelector('article .cut.main path:not(.leader)')).strokeWidth"
    assert page.evaluate(stroke) == "3px"


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
def test_the_page_is_never_wider_than_its_window(page: Page, width: int) -> None:
    page.resize(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert sticking_out(page) == []


def test_a_phone_shows_every_count_of_the_invariants(page: Page) -> None:
    page.resize(390)
    box = "document.querySelector('.wide:has(.invariants)')"
    assert page.evaluate(f"{box}.scrollWidth") <= page.evaluate(f"{box}.clientWidth")


def test_a_lanes_name_stays_in_sight_when_the_diagram_scrolls(page: Page) -> None:
    page.resize(390)
    page.evaluate("document.querySelector('#long .diagram').scrollLeft = 600")
    assert page.evaluate("document.querySelector('#long .diagram').scrollLeft") == 600
    left = "document.querySelector('#long .names').getBoundingClientRect().left"
    assert 0 <= page.evaluate(left) < 40


def test_all_that_scrolls_can_be_reached_by_keyboard(page: Page) -> None:
    page.resize(390)
    assert unreachable(page) == []


def test_the_verdict_has_its_colour_with_its_sign_and_word(page: Page) -> None:
    assert page.evaluate("getComputedStyle(document.querySelector('h1 .sign')).color") == "rgb(156, 35, 24)"


def test_the_dark_is_dark_and_the_light_light(page: Page) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.prefer(scheme="dark")
    dark = page.evaluate(ground)
    assert (light, dark) == ("rgb(252, 251, 248)", "rgb(23, 22, 20)")


def test_paper_gets_white_ground_and_whole_diagrams(page: Page) -> None:
    page.resize(760)
    page.prefer(scheme="dark", media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    pieces = "[...document.querySelectorAll('#long .sheets > svg')].map(e => e.getBoundingClientRect())"
    assert page.evaluate(f"{pieces}.filter(e => e.width > 300 && e.height > 150 && e.right <= innerWidth).length") > 2
    drawn = "document.querySelector('#long .sheets use').getBoundingClientRect().width"
    assert page.evaluate(drawn) > 300
    cut_off = "[...document.querySelectorAll('.diagram')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert page.evaluate(cut_off) == 0
    assert page.evaluate("document.querySelectorAll('.coverage').length") > 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") is True


def test_nothing_of_a_hostile_text_runs_or_loads(page: Page) -> None:
    assert page.evaluate("document.scripts.length + document.images.length") == 0
    assert page.evaluate("document.title").startswith("consistent-cut")
    assert page.evaluate("document.querySelector('#hostile .story').innerText") == HOSTILE


def test_the_folded_parts_open_by_themselves_alone(page: Page) -> None:
    closed = "[...document.querySelectorAll('article details')].every(e => !e.open)"
    assert page.evaluate(closed) is True
    page.evaluate("document.querySelector('article details summary').click()")
    shown = "document.querySelector('article details .events').getBoundingClientRect().height"
    assert page.evaluate(shown) > 100
