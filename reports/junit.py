"""The summary as JUnit XML, which CI servers read.

Each invariant is a test case: failed if it is violated, skipped if it was always unknown.
Each counterexample is a test case too, with its story and the command that replays it.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from .model import Counterexample, Summary
from .overview import InvariantLine, invariant_lines
from .words import judges_in_words, plural


def render_junit(summary: Summary) -> str:
    """The whole file as text, to be written as UTF-8."""
    suite = Xml.Element("testsuite", name="cutproof", time=f"{summary.seconds.total:.3f}")
    for line in invariant_lines(summary):
        _invariant(suite, line, summary)
    for one in summary.counterexamples:
        _counterexample(suite, one)
    problems = list(summary.failures)
    if summary.oracle.disagreements:
        problems.append(f"the two judges disagree on {plural(summary.oracle.disagreements, 'row')}")
    if problems:
        case = Xml.SubElement(suite, "testcase", classname="cutproof", name="harness")
        Xml.SubElement(case, "error", message=clean(problems[0])).text = clean(
            "\n".join((*problems, *(one.replay for one in summary.not_run if one.replay)))
        )
    return file_of(suite)


def file_of(suite: Xml.Element) -> str:
    """The whole file with one suite, whose test cases are counted here."""
    for outcome, total in (("", "tests"), ("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(total, str(len(suite.findall(f"testcase/{outcome}" if outcome else "testcase"))))
    suites = Xml.Element("testsuites")
    suites.append(suite)
    Xml.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(suites, encoding="unicode") + "\n"


def _invariant(suite: Xml.Element, line: InvariantLine, summary: Summary) -> None:
    classname = f"cutproof.{summary.subject or 'subject'}"
    case = Xml.SubElement(suite, "testcase", classname=clean(classname), name=clean(line.name))
    counts = line.counts
    numbers = f"{counts.holds} held, {counts.violated} violated, {counts.unknown} unknown"
    if line.verdict == "violated":
        stories = [_story(one) for one in summary.counterexamples if one.invariant == line.name]
        Xml.SubElement(case, "failure", message=numbers).text = clean("\n\n".join(stories) or numbers)
    elif line.verdict == "known":
        Xml.SubElement(case, "skipped", message=f"known failure: {numbers}")
    elif line.verdict == "unknown":
        Xml.SubElement(case, "skipped", message=clean(f"unknown: {line.reasons or 'never judged'}"))


def _counterexample(suite: Xml.Element, one: Counterexample) -> None:
    name = f"{one.invariant} {one.id}"
    case = Xml.SubElement(suite, "testcase", classname="cutproof.counterexamples", name=clean(name))
    case.set("time", f"{one.seconds_to_find + one.seconds_to_shrink:.3f}")
    if one.known:
        Xml.SubElement(case, "skipped", message=clean(f"known failure: {one.known}"))
    else:
        Xml.SubElement(case, "failure", message=clean(one.story)).text = clean(_story(one))


def _story(one: Counterexample) -> str:
    return "\n".join(filter(None, (one.story, judges_in_words(one.judges, one.not_asked), one.replay)))


def clean(text: str) -> str:
    """The text without the characters that XML 1.0 does not allow."""
    return "".join(character if _is_allowed(ord(character)) else "\N{REPLACEMENT CHARACTER}" for character in text)


def _is_allowed(point: int) -> bool:
    return point in (0x9, 0xA, 0xD) or 0x20 <= point <= 0xD7FF or 0xE000 <= point <= 0xFFFD or point >= 0x10000
