"""The report of a document's example as a reader's browser shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser.chromium import Page
from browser.looks import sticking_out, unreachable
from cutproof.harness.examples import EXAMPLES
from cutproof.harness.examples.report import keep_report
from cutproof.harness.examples.run import run_any
from cutproof.harness.examples.trials import Trials
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.reports.charts.bars import Bar, Bars
from cutproof.reports.example_report import ExampleView, render_example
from unit.harness.subjects import Agreeing


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trials = Trials(SimulatedSubject())
    done = run_any(EXAMPLES["three-2pc-chain"], trials, Agreeing())
    folder = tmp_path_factory.mktemp("example")
    keep_report(folder, done, trials, replay="cutproof verify --workload three-2pc-chain")
    return folder / "report.html"


def test_it_opens_without_a_complaint_and_asks_for_nothing_else(page: Page, report: Path) -> None:
    assert page.requests == [report.as_uri()]
    assert page.complaints == []
    assert page.evaluate("document.scripts.length + document.images.length") == 0


def test_the_headings_are_there_in_order(page: Page) -> None:
    headings = page.evaluate("[...document.querySelectorAll('h1, h2')].map(e => e.innerText.trim())")
    assert headings == [
        "✓ three-2pc-chain",
        "The claims of the text, and the evidence",
        "Which invariants held?",
        "Pictures",
        "Figures",
    ]


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
def test_the_page_is_never_wider_than_its_window(page: Page, width: int) -> None:
    page.resize(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert sticking_out(page) == []
    assert unreachable(page) == []


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_tables_caption_is_read_without_scrolling(page: Page, width: int) -> None:
    page.resize(width)
    rights = page.evaluate(
        "[...document.querySelectorAll('caption span')].map(e => e.getBoundingClientRect().right - "
        "e.closest('.wide').getBoundingClientRect().right)"
    )
    assert len(rights) == 4
    assert max(rights) < 1


def test_names_in_a_chart_do_not_overlap(page: Page) -> None:
    boxes = page.evaluate(
        "[...document.querySelectorAll('svg.plot')].map(s => [...s.querySelectorAll('text')].map(e => "
        "{ const b = e.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; }))"
    )
    assert len(boxes) == 2
    for one in boxes:
        assert [(a, b) for at, a in enumerate(one) for b in one[at + 1 :] if overlap(a, b)] == []


def test_a_single_chart_is_no_larger_than_one_of_two(browser: Page, tmp_path: Path) -> None:
    chart = Bars(title="one", caption="alone", bars=(Bar(name="it", value=1.0, text="1"),))
    view = ExampleView(name="it", about="it", document="it", claims=(), charts=(chart,))
    (tmp_path / "it.html").write_text(render_example(view), encoding="utf-8")
    browser.resize(1280)
    browser.open(tmp_path / "it.html")
    assert 300 < browser.evaluate("document.querySelector('svg.plot').getBoundingClientRect().width") < 600


def overlap(a: list[float], b: list[float]) -> bool:
    """Whether two boxes (left, right, top, bottom) share more than half a pixel either way."""
    return min(a[1], b[1]) - max(a[0], b[0]) > 0.5 and min(a[3], b[3]) - max(a[2], b[2]) > 0.5
