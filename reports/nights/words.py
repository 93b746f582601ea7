"""The words of the page of the nights: dates, durations, exit codes and standings."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from typing import Literal

from .model import Failure, Night

Standing = Literal[
    "new", "again", "expired", "still_failing", "flaky", "not_reached", "not_replayed", "known", "fixed"
]  # fmt: skip
"""What the last replay says of a failure.

Besides the statuses of a night there are: again (it fails, and was fixed before), expired (it fails, and was a known
failure until its last day), known (it fails, as a known failure) and not_replayed (no night has replayed it).
"""

STANDINGS: dict[Standing, tuple[str, str]] = {
    "new": ("✗", "new"),
    "again": ("✗", "again"),
    "expired": ("✗", "expired"),
    "still_failing": ("✗", "still failing"),
    "flaky": ("~", "flaky"),
    "not_reached": ("?", "not reached"),
    "not_replayed": ("?", "not replayed"),
    "known": ("!", "known"),
    "fixed": ("✓", "fixed"),
}
"""by standing, the most urgent first: a sign and a word, so that colour is not needed"""

GROUPS: dict[Standing, tuple[str, str]] = {
    "new": ("New", "In the bank since the last night."),
    "again": ("Failing again", "An earlier night saw them fixed."),
    "expired": ("Expired", "Known failures whose last day has passed, and which still fail."),
    "still_failing": ("Still failing", "Found in an earlier night; the last replay was violated each time."),
    "flaky": ("Flaky", "The last replays were violated some of the time."),
    "not_reached": (
        "Not reached",
        "The last replay did not reach what they need, failed in another way, or may have held by chance.",
    ),
    "not_replayed": ("Not replayed", "No night has replayed them yet."),
    "known": ("Known", "They fail, and are listed as known failures that have not expired."),
    "fixed": ("Fixed", "The last replay held, and what it needs was reached."),
}
"""by standing: the heading of its failures on the page, and what it means"""

_EXITS = {
    None: "did not end",
    0: "held",
    1: "violated",
    2: "bad input",
    3: "fell short",
    4: "harness failed",
    130: "interrupted",
}


def exit_in_words(code: int | None) -> str:
    """The meaning of an exit code, and the code: `violated (1)`."""
    words = _EXITS.get(code, "exit code")
    return words if code is None else f"{words} ({code})"


def sentence(text: str) -> str:
    """A text with a capital at its begin, unless a subject or a file is named there, and a full stop at its end."""
    is_name = re.search(r"[:/\\]", text.partition(" ")[0])
    begin = text[:1] if is_name else text[:1].upper()
    return begin + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def day(when: datetime.datetime) -> str:
    return when.date().isoformat()


When = Callable[[datetime.datetime], str]


def days_of(nights: Iterable[Night]) -> When:
    """How to write when a night began: its day, or its minute too if some day has several nights."""
    days = [night.began.date() for night in nights]
    return day if len(set(days)) == len(days) else minute


def minute(when: datetime.datetime) -> str:
    """`2026-11-23 02:17`"""
    return when.strftime("%Y-%m-%d %H:%M")


def night_took(night: Night) -> float | None:
    """The seconds from the night's begin to its end; None if it did not end, or the clock went back."""
    spent = (night.ended - night.began).total_seconds() if night.ended else -1.0
    return spent if spent >= 0 else None


def name_of(failure: Failure) -> str:
    """A failure in a few words: `exactly-once on processes (repeated row)`."""
    difference = f" ({failure.difference})" if failure.difference else ""
    return f"{failure.invariant} on {subject_of(failure.subject, failure.defect)}{difference}"


def subject_of(subject: str, defect: str) -> str:
    """A subject, and the defect that was planted in it.  Of a pipeline's path the last two parts are enough."""
    path, sign, parameters = subject.removeprefix("pipeline:").partition("?")
    short = "/".join(path.split("/")[-2:]) + sign + parameters if subject.startswith("pipeline:") else subject
    return f"{short} with {defect}" if defect else short
