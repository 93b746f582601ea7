"""The time line of a pipeline's run as a reader's browser shows it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from browser.chromium import Page
from browser.looks import sticking_out, unreachable
from cutproof.reports.model import ShownRun
from cutproof.reports.render import render_html
from unit.reports import stories
from unit.reports.pipeline_runs import late, of_one_event, repeating, restless

RUNS = {
    "repeating": repeating(),
    "one": (of_one_event(), ()),
    "restless": restless(),
    "late": late(),
    "slow": restless(8, 900),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tuple(
        msgspec.structs.replace(stories.counterexample(name, history), rows=rows)
        for name, (history, rows) in RUNS.items()
    )
    history, rows = repeating()
    shown = ShownRun(index=3, history=history, rows=rows, replay="cutproof replay out/7/scenarios.jsonl:3")
    view = msgspec.structs.replace(stories.report(), counterexamples=found, shown=shown)
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render_html(view), encoding="utf-8")
    return file


def test_it_opens_without_a_complaint_and_asks_for_nothing_else(page: Page, report: Path) -> None:
    assert page.requests == [report.as_uri()]
    assert page.complaints == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_is_never_wider_than_its_window_and_all_can_be_reached(page: Page, width: int) -> None:
    page.resize(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert sticking_out(page) == []
    assert unreachable(page) == []


def test_a_run_of_some_kills_needs_no_scrolling_at_a_desk(page: Page) -> None:
    wider = "[...document.querySelectorAll('.diagram')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert page.evaluate(wider) == 1, "that with forty kills"
    box = "document.querySelector('#repeating .diagram')"
    assert page.evaluate(f"{box}.scrollWidth <= {box}.clientWidth") is True


OVERLAPPING = """[...document.querySelectorAll('.diagram svg[role=img]')].flatMap(picture => {
  const words = [...picture.querySelectorAll('text.note:not(.value)')]
  const boxes = words.map(e => [e.textContent, e.getBoundingClientRect()])
  return boxes.flatMap(([text, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
                    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5)
    .map(([other]) => [text, other]))
})"""


def test_words_do_not_cover_each_other_and_none_is_cut_off(page: Page) -> None:
    assert page.evaluate("document.querySelectorAll('.diagram text.note').length") > 40
    assert page.evaluate(OVERLAPPING) == []
    cut_off = """[...document.querySelectorAll('.diagram svg')].flatMap(s => [...s.querySelectorAll('text')]
      .filter(e => { const b = e.getBoundingClientRect(), a = s.getBoundingClientRect();
                     return b.left < a.left - 0.5 || b.right > a.right + 0.5 || b.bottom > a.bottom })
      .map(e => e.textContent))"""
    assert page.evaluate(cut_off) == []


def test_a_kill_and_a_wrong_row_have_the_colour_of_what_is_bad_in_light_and_dark(page: Page) -> None:
    signs = "['.mark.process-killed path', '.mark.rows-wrong path']"
    strokes = f"{signs}.map(e => getComputedStyle(document.querySelector(e)).stroke)"
    assert page.evaluate(strokes) == ["rgb(156, 35, 24)"] * 2
    page.prefer(scheme="dark")
    assert page.evaluate(strokes) == ["rgb(240, 138, 123)"] * 2
    text = "getComputedStyle(document.querySelector('.diagram .lane-name')).fill"
    assert page.evaluate(text) == "rgb(235, 231, 223)"


def test_a_life_is_a_heavy_line_and_a_pause_is_dashed(page: Page) -> None:
    style = "getComputedStyle(document.querySelector('#repeating .process-life .{}')).{}"
    assert page.evaluate(style.format("runs", "strokeWidth")) == "7px"
    assert page.evaluate(style.format("paused", "strokeDasharray")) != "none"
    assert page.evaluate(style.format("coming-up", "strokeWidth")) == "2px"


def test_the_picture_is_there_in_words_and_its_key_is_found(page: Page) -> None:
    page.evaluate("document.querySelector('#repeating details summary').click()")
    words = page.evaluate("document.querySelector('#repeating .events').innerText")
    assert "is killed at the aim 'in-a-batch'" in words
    assert "counter shows 12,000" in words
    assert page.evaluate("document.querySelectorAll('#key-of-lives').length") == 1
    links = "[...document.querySelectorAll('figcaption a')].map(e => !!document.querySelector(e.getAttribute('href')))"
    assert page.evaluate(links) == [True] * (len(RUNS) + 1)


def test_a_run_that_held_is_shown_with_the_command_that_runs_it_again(page: Page) -> None:
    section = page.evaluate("document.querySelector('#tried').innerText")
    assert "Scenario 3, the first that recovered from a fault and held." in section
    assert "cutproof replay out/7/scenarios.jsonl:3" in section
    assert page.evaluate("document.querySelector('#tried .diagram .process-life').getBoundingClientRect().width") > 50


def test_paper_gets_whole_time_lines(page: Page) -> None:
    page.resize(760)
    page.prefer(media="print")
    pieces = "[...document.querySelectorAll('#restless .sheets > svg')].map(e => e.getBoundingClientRect())"
    assert page.evaluate(f"{pieces}.filter(e => e.width > 300 && e.right <= innerWidth).length") > 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") is True
