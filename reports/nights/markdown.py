"""The nights as Markdown: a summary for a CI job's page, and a text for an issue about what is new."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..words import plural
from .lives import Life
from .view import NightsView, lead
from .words import STANDINGS, Standing, name_of, subject_of

MOST_FAILURES = 20
"""failures in a text; the page has all"""
RECENT = 10
"""nights in the summary"""

ALARMING: tuple[Standing, ...] = ("new", "again", "expired")
"""the standings that nobody knows of yet"""

_SIGNS = {"held": "✅", "short": "⚠️", "violated": "❌", "failed": "❌"}
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$&]|^[-+=])")


def render_summary(view: NightsView) -> str:
    """What to do first, the failures that need somebody, and the last nights."""
    urgent = view.urgent
    parts = [f"## {_SIGNS[urgent.outcome]} {_plain(urgent.headline)}", _plain(urgent.more)]
    if urgent.replay:
        parts.append(_code(urgent.replay))
    parts.append(_plain(lead(view)))
    if view.last and view.last.notes:
        parts.append("\n".join(f"- {_plain(note)}" for note in view.last.notes))
    open_ones = [life for life in view.lives if life.is_open]
    if open_ones:
        parts += ["### Failures that need somebody", _failures(open_ones)]
    if view.known:
        parts += ["### Known failures", _known(view.known)]
    if view.nights:
        parts += ["### The last nights", _nights(view)]
    return "\n\n".join(filter(None, parts)) + "\n"


def render_new(view: NightsView) -> str:
    """A text for an issue about what nobody knows of yet; empty if the last night has nothing of that kind.

    These are failures that are new, that fail again after a fix, or that were known and have expired; scenarios that
    failed and are not shrunk yet; a file of the bank that could not be read; that the harness failed, or the night did
    not run to its end; and that a night fell short after one that did not.
    """
    alarming = [life for life in view.lives if life.standing in ALARMING]
    problems = _new_problems(view)
    if view.last is None or not (alarming or problems):
        return ""
    parts = [_plain(lead(view)), "\n".join(f"- {_plain(problem)}" for problem in problems)]
    for life in alarming[:MOST_FAILURES]:
        parts.append(f"### {_plain(STANDINGS[life.standing][1])}: {_plain(name_of(life.failure))}")
        parts.append(_plain(f"{life.failure.story} {life.words}".strip()))
        if life.failure.replay:
            parts.append(_code(life.failure.replay))
    if len(alarming) > MOST_FAILURES:
        parts.append(f"{len(alarming) - MOST_FAILURES:,} more are in the page of the nights.")
    return "\n\n".join(filter(None, parts)) + "\n"


def _new_problems(view: NightsView) -> list[str]:
    if view.last is None:
        return []
    before = view.nights[1].night.subjects if len(view.nights) > 1 else []
    fell_short = {(one.subject, one.defect) for one in before if one.shortfalls}
    problems = [
        f"{subject_of(one.subject, one.defect)}: {words}"
        for one in view.last.night.subjects
        for words in (*one.failures, *(() if (one.subject, one.defect) in fell_short else one.shortfalls))
    ]
    night = view.last.night
    if left := night.unshrunk - night.unshrunk_elsewhere:
        problems.append(f"{plural(left, 'failing scenario')} left for the next night to shrink")
    if night.put_aside:
        problems.append(f"{plural(night.put_aside, 'file')} of the bank could not be read")
    return problems or ([view.urgent.headline] if view.urgent.kind in ("failed", "cut-off") else [])


def _failures(lives: Sequence[Life]) -> str:
    lines = [
        (STANDINGS[life.standing][1], name_of(life.failure), life.words, life.failure.replay)
        for life in lives[:MOST_FAILURES]
    ]
    table = _table(("Status", "Failure", "History", "Replay, in the bank's folder"), lines, code=3)
    more = len(lives) - MOST_FAILURES
    return f"{table}\n\nThe page of the nights has {more:,} more." if more > 0 else table


def _known(lives: Sequence[Life]) -> str:
    lines = [(str(life.expires or "none"), name_of(life.failure), life.known) for life in lives[:MOST_FAILURES]]
    return _table(("Last day", "Failure", "Why it is expected"), lines)


def _nights(view: NightsView) -> str:
    lines = []
    for row in view.nights[:RECENT]:
        seen = row.seen
        numbers = (seen.new, seen.again, seen.still_failing, seen.flaky, seen.known, seen.fixed, seen.not_reached)
        lines.append((row.began, row.exit, *(f"{number:,}" for number in numbers), f"{row.scenarios:,}", row.took))
    head = ("Night (UTC)", "Exit", "New", "Again", "Still failing", "Flaky", "Known", "Fixed", "Not reached",
            "Scenarios", "Took")  # fmt: skip
    more = len(view.nights) - RECENT
    table = _table(head, lines)
    return f"{table}\n\n{plural(more, 'earlier night')}: in the page of the nights." if more > 0 else table


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], *, code: int = -1) -> str:
    """A table; the column of the number `code` holds commands."""
    rows = [head, ["---"] * len(head)]
    written = [f"| {' | '.join(row)} |" for row in rows]
    for line in lines:
        cells = [_inline_code(cell) if at == code else _plain(cell) for at, cell in enumerate(line)]
        written.append(f"| {' | '.join(cells)} |")
    return "\n".join(written)


def _plain(text: str) -> str:
    """A text in one line, in which nothing is Markdown or HTML.

    A code host looks for mentions after it has undone escapes.  So a space without width stands behind each @.
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("@", "@\u200b")


def _code(text: str) -> str:
    """A block of code with a fence that the text does not have."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 0)
    return f"{fence}\n{text}\n{fence}"


def _inline_code(text: str) -> str:
    """A command in a table's cell; a text that would end the cell or the code is written without code."""
    return f"`{text}`" if text and not re.search(r"[`|\n\\]", text) else _plain(text)
