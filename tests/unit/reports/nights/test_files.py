"""The page, the JUnit file and the Markdown: what stands in them, and that no text becomes markup."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from cutproof.reports.nights.files import JUNIT, NEW, PAGE, SUMMARY, files_of
from cutproof.reports.nights.view import view_of
from unit.reports.nights import banks
from unit.reports.test_render import Page

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)> | a\n\n# b {{ 7*7 }} ``` `c` @all ]]> \ud800\x00"
EVERY = {
    "new": "   n", "again": "noox", "still": "nxxx", "flaky": "n~~~", "gone": "nx??", "known": "nkkk", "fixed": "nxoo",
}  # fmt: skip


def files(lives: dict[str, str], **last: Any) -> dict[str, str]:
    view = view_of(*banks.told(lives, **last), bank="ci-bank", version="0.1.0")
    return {name: content.decode("utf-8") for name, content in files_of(view).items()}


@pytest.fixture(scope="module")
def every() -> dict[str, str]:
    return files(EVERY)


def test_the_page_is_well_formed_and_says_first_what_to_do(every: dict[str, str]) -> None:
    page = Page(every[PAGE])
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.headings == [
        "✗ Look at the new failure: exactly-once on simulated (row repeated).",
        "Failures",
        "Known failures",
        "Nights",
        "Trends",
    ]
    assert every[PAGE].index("cutproof replay failures/new/scenario.json") < every[PAGE].index("<main>")


def test_every_link_of_the_page_leads_somewhere(every: dict[str, str]) -> None:
    page = Page(every[PAGE])
    links = {value for name, value in page.attributes if name == "href" and value.startswith("#")}
    assert len(links) > 4
    assert {link.removeprefix("#") for link in links} <= set(page.ids)


def test_a_test_case_fails_while_its_failure_fails_and_is_skipped_where_nobody_knows(every: dict[str, str]) -> None:
    suite = Xml.fromstring(every[JUNIT])[0]
    found = {case.get("name", "").split()[-1]: [outcome.tag for outcome in case] for case in suite}
    assert found == {
        "end": [], "simulated": [], "new": ["failure"], "again": ["failure"], "still": ["failure"],
        "flaky": ["failure"], "gone": ["skipped"], "known": ["skipped"], "fixed": [],
    }  # fmt: skip
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("9", "4", "2")


@pytest.mark.parametrize(("last", "errors"), [({"exit_code": None, "ended": None}, "1"), ({"exit_code": 4}, "1"),
                                              ({"exit_code": 130}, "1"), ({"exit_code": 0}, "0")])  # fmt: skip
def test_a_night_that_did_not_end_is_an_error_of_the_suite(last: dict[str, Any], errors: str) -> None:
    assert Xml.fromstring(files({"a": "no"}, **last)[JUNIT])[0].get("errors") == errors


def test_the_summary_lists_what_needs_somebody_and_what_is_known(every: dict[str, str]) -> None:
    summary = every[SUMMARY]
    assert summary.startswith("## ❌ Look at the new failure: exactly-once on simulated (row repeated).\n")
    rows = [line.split(" | ")[0] for line in summary.splitlines() if line.startswith("| ")]
    assert rows == ["| Status", "| ---", "| new", "| again", "| still failing", "| flaky", "| not reached",
                    "| Last day", "| ---", "| 2026-02-16",
                    "| Night (UTC)", "| ---", *(f"| 2026-02-0{day} 02:17" for day in (6, 5, 4, 3))]  # fmt: skip


@pytest.mark.parametrize(
    ("letters", "named"), [("  n", "### new"), ("nox", "### again"), ("nxx", ""), ("n~~", ""), ("nkk", ""), ("nxo", "")]
)
def test_only_what_nobody_knows_of_yet_is_an_issue(letters: str, named: str) -> None:
    text = files({"it": letters})[NEW]
    assert (named in text) if named else (text == "")


SHORT = {"subjects": [banks.subject_night(1, shortfalls=["drain: 0 scenarios."])]}


@pytest.mark.parametrize(
    ("letters", "last", "named"),
    [
        (
            "nx",
            {"subjects": [banks.subject_night(1, failures=["Toxiproxy did not start."])]},
            "Toxiproxy did not start.",
        ),
        ("nx", SHORT, "drain: 0 scenarios."),
        ("nx", {"unshrunk": 2}, "2 failing scenarios left"),
        ("no", {"unshrunk": 2, "exit_code": 1}, "2 failing scenarios left"),
        ("no", {"exit_code": 4}, "Repair the job"),
        ("no", {"exit_code": None, "ended": None}, "did not run to its end"),
        ("no", {"put_aside": 1}, "1 file of the bank could not be read"),
        ("no", {"unshrunk": 3, "unshrunk_elsewhere": 1}, "2 failing scenarios left"),
    ],
)
def test_a_failure_of_an_earlier_night_hides_nothing_that_went_wrong_besides(
    letters: str, last: dict[str, Any], named: str
) -> None:
    """The exit code of a night with failures is 1, whatever else happened in it."""
    assert named in files({"it": letters}, **last)[NEW]


def test_failing_scenarios_that_wait_for_a_night_of_another_subject_are_not_new_each_night() -> None:
    waiting = files({"it": "no"}, unshrunk=2, unshrunk_elsewhere=2)
    assert waiting[NEW] == ""
    assert "2 failing scenarios of earlier nights can be shrunk only by a night that tests" in waiting[SUMMARY]


def test_a_night_that_falls_short_as_the_one_before_is_not_new() -> None:
    nights, failures = banks.told({"it": "nx"}, **SHORT)
    nights[0] = banks.night(0, nights[0].replays, subjects=[banks.subject_night(0, shortfalls=["drain: 1 scenario."])])
    assert files_of(view_of(nights, failures))[NEW] == b""


def test_no_text_becomes_markup() -> None:
    failure = banks.failure("it", story=HOSTILE, replay=HOSTILE, difference=HOSTILE, subject=HOSTILE, shape=HOSTILE)
    night = banks.night(0, [banks.replay("it", "n", words=HOSTILE)], words=[HOSTILE],
                        subjects=[banks.subject_night(0, subject=HOSTILE, failures=[HOSTILE])])  # fmt: skip
    known = banks.night(1, [banks.replay("it", "x", known=HOSTILE)])
    for nights in ([night], [night, known]):
        texts = {name: content.decode() for name, content in files_of(view_of(nights, [failure], bank=HOSTILE)).items()}
        page = Page(texts[PAGE])
        assert page.open == []
        assert not {"script", "img"} & set(page.tags)
        assert "49" not in texts[PAGE].split("</style>")[1].split("<svg")[0]
        Xml.fromstring(texts[JUNIT])
        outside = [re.sub(r"\\.", "", part) for part in texts[SUMMARY].split("````")[::2]]
        assert not any(word in part for part in outside for word in ("<", "\n# b", "@all", "`c`"))


def test_the_same_view_gives_the_same_bytes() -> None:
    assert files(EVERY) == files(EVERY)
