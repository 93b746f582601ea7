"""The verdict of an invariant on a history: it holds, it is violated, or it is unknown.

There are three values, never two.  The verdict is *unknown* if the invariant was not
exercised or is not promised, or if its checker failed.  Unknown is not a pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Holds(msgspec.Struct, frozen=True, kw_only=True, tag_field="verdict", tag="holds"):
    """`exercised` counts the effects that could have shown a violation and did not."""

    exercised: int


class Violated(msgspec.Struct, frozen=True, kw_only=True, tag_field="verdict", tag="violated"):
    """A violation with its witness.

    `difference` is the kind of difference in a word or two ("repeated row",
    "lost row", "state differs", "sent after, applied before"), stable under
    shrinking.  `records` are the rows or tags that differ, `checkpoint` is the cut
    at which they differ, `events` are the events before it, in words and in order.
    """

    difference: str
    message: str
    records: tuple[str, ...] = ()
    checkpoint: int | None = None
    tasks: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


class Reason(StrEnum):
    """Why a verdict is unknown."""

    NOT_PROMISED = "not promised"
    """the job's settings do not promise what the invariant says"""
    NOT_EXERCISED = "not exercised"
    """nothing happened that could have shown a violation"""
    NOT_OBSERVABLE = "not observable"
    """the history lacks what the invariant is judged by"""
    ASSUMPTION_BROKEN = "assumption broken"
    """the world did what the engine may rely on not to happen"""
    CHECKER_FAILED = "checker failed"


class Unknown(msgspec.Struct, frozen=True, kw_only=True, tag_field="verdict", tag="unknown"):
    """`detail` says more than the reason."""

    reason: Reason
    detail: str = ""


Verdict = Holds | Violated | Unknown

INVARIANTS = (
    "exactly-once",
    "no-data-loss",
    "consistent-cut",
    "at-least-once",
    "at-most-once",
    "order",
    "restored-state",
    "restorable",
    "visibility",
    "drain",
    "progress",
    "no-leaks",
)


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many: violated wins, then holds (with the sum of `exercised`), then unknown."""
    held: Holds | None = None
    unknown: Unknown | None = None
    for verdict in verdicts:
        if isinstance(verdict, Violated):
            return verdict
        if isinstance(verdict, Holds):
            held = Holds(exercised=verdict.exercised + (held.exercised if held else 0))
        else:
            unknown = unknown or verdict
    return held or unknown or Unknown(reason=Reason.NOT_EXERCISED, detail="nothing was judged")


def in_a_word(verdicts: Iterable[Verdict]) -> str:
    """ "violated" if any verdict is, "held" if none is and at least one holds, else "unknown"."""
    merged = merge(verdicts)
    if isinstance(merged, Violated):
        return "violated"
    return "held" if isinstance(merged, Holds) else "unknown"
