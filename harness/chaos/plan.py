"""How the time of a night is divided: over the subjects, and over replays, exploration and shrinking."""

from __future__ import annotations

from collections.abc import Sequence

REPLAYS = 3
"""at most one part in so many of a subject's time goes to replays"""
SHRINKING = 3
"""one part in so many of what then is left is kept for shrinking; what that does not need goes to exploration"""
LEAST_S = 3.0
"""a shorter rest is not worth another search"""
FIRST_SLICE, LEAST_SLICE, SLICE = 2_000, 1_000, 20_000
"""scenarios after which what was found is shrunk: of the first slice, and the bounds of the others"""
ROUNDS = 5
FAILING = 500
"""about how many failing scenarios a slice may have: their histories are kept in memory until its end"""


def share_s(left_s: float, subjects_left: int) -> float:
    """What the next subject gets: all that are left get the same, also of what those before did not use."""
    return max(0.0, left_s) / max(1, subjects_left)


def slice_after(run: int, violated: int, at_once: int = 0) -> int:
    """The scenarios of the next slice, after so many scenarios and violated ones.

    `at_once`: the scenarios that workers have been given at a time.  At the end of a slice workers wait for the slowest
    of them, so a slice is `ROUNDS` times as large, if few scenarios fail.
    """
    if not run:
        return FIRST_SLICE
    return max(LEAST_SLICE, min(max(SLICE, ROUNDS * at_once), FAILING * run // max(1, violated)))


def in_words(seconds: float, subjects: Sequence[str]) -> list[str]:
    """The plan, in lines for a person."""
    each = duration_in_words(share_s(seconds, len(subjects)))
    who = f"each of {len(subjects)} subjects gets {each}" if len(subjects) > 1 else f"{subjects[0]} gets {each}"
    parts = "replays of the bank get a third of that at most, shrinking a third of the rest, exploration what is left"
    return [
        f"plan: {who}; {parts}; what has begun by then is finished",
        *(f"  {one}" for one in subjects if len(subjects) > 1),
    ]


def duration_in_words(seconds: float) -> str:
    """Such as `1 h 30 min`, `5 min` or `30 s`."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if minutes:
        return f"{minutes} min {whole % 60} s" if whole % 60 else f"{minutes} min"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
