"""The last night as JUnit XML, which CI servers read.

Each failure of the bank is a test case: failed while it fails, skipped if it is known or nobody knows, passed if it is
fixed.  What each subject explored is a test case too, with an error where the harness failed.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from ..junit import clean, file_of
from .lives import Life
from .model import SubjectNight
from .view import NightsView
from .words import STANDINGS, name_of, subject_of


def render_junit(view: NightsView) -> str:
    """The whole file as text, to be written as UTF-8."""
    suite = Xml.Element("testsuite", name="cutproof chaos")
    _night(suite, view)
    for one in view.last.night.subjects if view.last else ():
        _explored(suite, one)
    for life in view.lives:
        _failure(suite, life)
    return file_of(suite)


def _night(suite: Xml.Element, view: NightsView) -> None:
    case = Xml.SubElement(suite, "testcase", classname="cutproof.chaos", name="the night ran to its end")
    urgent = view.urgent
    if view.last is None:
        Xml.SubElement(case, "skipped", message="no night has run yet")
    elif view.last.outcome == "failed" or view.last.night.exit_code == 130:
        Xml.SubElement(case, "error", message=clean(view.last.exit)).text = clean(f"{urgent.headline}\n{urgent.more}")


def _explored(suite: Xml.Element, one: SubjectNight) -> None:
    name = f"explored {subject_of(one.subject, one.defect)}"
    case = Xml.SubElement(suite, "testcase", classname="cutproof.chaos", name=clean(name), time=f"{one.seconds:.3f}")
    if one.failures:
        Xml.SubElement(case, "error", message=clean(one.failures[0])).text = clean("\n".join(one.failures))
    elif one.shortfalls:
        Xml.SubElement(case, "skipped", message=clean(f"fell short: {' '.join(one.shortfalls)}"))


def _failure(suite: Xml.Element, life: Life) -> None:
    failure = life.failure
    name = f"{name_of(failure)} {failure.id}"
    case = Xml.SubElement(suite, "testcase", classname="cutproof.bank", name=clean(name))
    word = STANDINGS[life.standing][1]
    if life.standing == "known":
        Xml.SubElement(case, "skipped", message=clean(f"known failure: {life.known}"))
    elif life.standing in ("not_reached", "not_replayed"):
        Xml.SubElement(case, "skipped", message=clean(f"{word}: {life.words}"))
    elif life.standing != "fixed":
        text = "\n".join(filter(None, (failure.story, life.words, failure.replay)))
        Xml.SubElement(case, "failure", message=clean(f"{word}: {failure.story or name}")).text = clean(text)
