"""The page of the nights as a reader's browser shows it: large, small, on a phone, in the dark and on paper."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from browser.chromium import Page
from browser.looks import sticking_out, unreachable
from cutproof.reports.nights.page import render_nights
from cutproof.reports.nights.view import view_of
from unit.reports.nights import banks

EVERY = {
    "new": "   n", "again": "noox", "still": "nxxx", "flaky": "n~~~", "gone": "nx??", "known": "nkkk", "fixed": "nxoo",
}  # fmt: skip
LONG = "cutproof replay failures/" + "a-very-long-name-" * 8 + "/scenario.json --subject my_package.my_engine:MyEngine"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with each standing, a command that is wider than any window, and what a reader has to know."""
    nights, failures = banks.told(EVERY, words=["The clock went back by 2 hours since the night before."])
    failures[0] = banks.failure("new", found=3, replay=LONG, subject="my_package.my_engine:MyEngine")
    file = tmp_path_factory.mktemp("nights") / "nights.html"
    file.write_text(render_nights(view_of(nights, failures, bank="ci-bank", version="0.1.0")), encoding="utf-8")
    return file


def test_it_opens_without_a_complaint_and_asks_for_nothing_else(page: Page, report: Path) -> None:
    assert page.requests == [report.as_uri()]
    assert page.complaints == []
    assert page.evaluate("document.scripts.length + document.images.length") == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_what_to_do_first_and_its_command_stand_in_the_first_window(page: Page, width: int) -> None:
    page.resize(width, 800)
    assert page.evaluate("document.querySelector('h1').getBoundingClientRect().top") < 150
    assert page.evaluate("document.querySelector('header .replay code').getBoundingClientRect().bottom") < 620


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
def test_the_page_is_never_wider_than_its_window(page: Page, width: int) -> None:
    page.resize(width)
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert sticking_out(page) == []
    assert unreachable(page) == []


@pytest.mark.parametrize("width", [320, 390])
def test_no_option_of_a_command_is_broken(page: Page, width: int) -> None:
    page.resize(width)
    lines = page.evaluate("[...document.querySelectorAll('.replay .whole')].map(e => e.getClientRects().length)")
    assert set(lines) == {1}
    command = page.evaluate("document.querySelector('header .replay code').textContent")
    assert command == LONG


@pytest.mark.parametrize("width", [320, 390])
def test_the_notes_of_a_night_are_read_without_scrolling(page: Page, width: int) -> None:
    page.resize(width)
    rights = page.evaluate("[...document.querySelectorAll('.notes span')].map(e => e.getBoundingClientRect().right)")
    assert len(rights) > 1
    assert max(rights) <= width


def test_a_click_selects_a_command_whole(page: Page) -> None:
    where = page.evaluate(
        "(b => [b.x + b.width / 2, b.y + b.height / 2])"
        "(document.querySelector('header .replay code').getBoundingClientRect())"
    )
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", clickCount=1)
    assert page.evaluate("getSelection().toString().trim()") == LONG


def test_every_failure_has_a_bar_of_its_own_shape(page: Page) -> None:
    bars = page.evaluate(
        "[...document.querySelectorAll('.lives > li')].map(e => [e.id, [...e.querySelectorAll('.bar path')]"
        ".map(p => [p.className.baseVal, Math.round(p.getBoundingClientRect().width * 4 "
        "/ p.closest('svg').getBoundingClientRect().width)])])"
    )
    assert dict(bars) == {
        "f-new": [["failed", 1]],
        "f-again": [["failed", 4], ["fixed", 2]],
        "f-still": [["failed", 4]],
        "f-flaky": [["failed", 1], ["flaky", 3]],
        "f-gone": [["failed", 2], ["unreached", 2]],
        "f-known": [["failed", 4]],
        "f-fixed": [["failed", 2], ["fixed", 2]],
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_part_of_a_bar_stands_out_from_the_page(page: Page, scheme: str) -> None:
    page.prefer(scheme=scheme)
    fills = page.evaluate("[...document.querySelectorAll('.bar path')].map(e => getComputedStyle(e).fill)")
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert len(set(fills)) == 5
    assert ground not in fills


def test_names_in_a_chart_do_not_overlap(page: Page) -> None:
    overlapping = page.evaluate(
        """[...document.querySelectorAll('svg.trend')].flatMap(s => {
          const texts = [...s.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()])
          return texts.flatMap(([a, p], at) => texts.slice(at + 1)
            .filter(([, q]) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 0.5
              && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 0.5)
            .map(([b]) => [a, b]))
        })"""
    )
    assert page.evaluate("document.querySelectorAll('svg.trend').length") == 8
    assert overlapping == []


def test_on_paper_everything_that_is_open_is_there(page: Page) -> None:
    page.resize(700)
    page.prefer(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.evaluate("document.documentElement.scrollWidth") <= 700


def test_a_thousand_nights_and_five_hundred_failures_open_within_two_seconds(browser: Page, tmp_path: Path) -> None:
    text = render_nights(view_of(*banks.large(1_000, 500), bank="ci-bank", version="0.1.0"))
    file = tmp_path / "large.html"
    file.write_text(text, encoding="utf-8")
    assert file.stat().st_size < 5_000_000
    browser.resize(1280)
    begin = time.monotonic()
    browser.open(file)
    assert browser.evaluate("document.querySelectorAll('.lives > li').length") == 500
    assert browser.evaluate("document.querySelectorAll('.nights tbody tr:not(.notes)').length") == 1_000
    assert browser.evaluate("document.body.getBoundingClientRect().height") > 1_000
    assert time.monotonic() - begin < 2
