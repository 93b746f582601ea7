"""The files of the page of the nights, by name."""

from __future__ import annotations

from .junit import render_junit
from .markdown import render_new, render_summary
from .page import render_nights
from .view import NightsView

PAGE, JUNIT, SUMMARY, NEW = "nights.html", "junit.xml", "summary.md", "new.md"
"""NEW is empty unless the last night saw something that nobody knows of yet"""


def files_of(view: NightsView) -> dict[str, bytes]:
    """Each file's content, to be written whole."""
    texts = {
        PAGE: render_nights(view),
        JUNIT: render_junit(view),
        SUMMARY: render_summary(view),
        NEW: render_new(view),
    }
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}
