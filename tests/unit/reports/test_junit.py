from __future__ import annotations

from xml.etree import ElementTree as Xml

import msgspec

from cutproof.properties.spark.unasked import NEITHER
from cutproof.reports.junit import render_junit
from cutproof.reports.model import OracleCounts, Summary
from unit.reports import stories


def _suite(summary: Summary) -> Xml.Element:
    suite = Xml.fromstring(render_junit(summary)).find("testsuite")
    assert suite is not None
    return suite


def test_a_case_for_each_invariant_and_each_counterexample() -> None:
    suite = _suite(stories.summary())
    names = [case.get("name") for case in suite.findall("testcase")]
    assert names == [
        "consistent-cut",
        "exactly-once",
        "no-data-loss",
        "at-most-once",
        "progress",
        "consistent-cut A01-7f3a",
    ]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "2",
        "errors": "0",
        "skipped": "1",
    }


def test_a_failure_prints_the_story_and_the_way_back() -> None:
    failure = _suite(stories.summary()).find("testcase/failure")
    assert failure is not None
    assert stories.counterexample().story in (failure.text or "")
    assert "cutproof replay counterexamples/A01-7f3a.json" in (failure.text or "")
    assert f"One judge saw it: {NEITHER}." in (failure.text or "")


def test_a_known_failure_is_skipped_with_its_reason() -> None:
    summary = stories.summary()
    known = [msgspec.structs.replace(summary.counterexamples[0], known="FLINK-2098, until 2030")]
    suite = _suite(msgspec.structs.replace(summary, counterexamples=known))
    assert suite.get("failures") == "0"
    assert "FLINK-2098, until 2030" in Xml.tostring(suite, encoding="unicode")


def test_a_harness_that_failed_is_an_error() -> None:
    suite = _suite(Summary(failures=["Spark did not start"], oracle=OracleCounts(disagreements=3)))
    error = suite.find("testcase/error")
    assert error is not None
    assert error.text == "Spark did not start\nthe two judges disagree on 3 rows"
    assert suite.get("errors") == "1"


def test_what_xml_cannot_hold_is_replaced() -> None:
    summary = stories.summary()
    hostile = msgspec.structs.replace(summary.counterexamples[0], story="]]>\x00\x1b[31m<script>\ud800")
    suite = _suite(msgspec.structs.replace(summary, counterexamples=[hostile]))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert (failure.text or "").startswith("]]>\N{REPLACEMENT CHARACTER}")
    assert "<script>" in (failure.text or "")
