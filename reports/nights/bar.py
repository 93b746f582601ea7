"""The life of a failure as a bar over the nights, as inline SVG."""

from __future__ import annotations

from itertools import groupby
from math import ceil

from ..svg import element
from .lives import BEFORE, UNSEEN

BAR_HEIGHT = 14
MOST_STEPS = 250
"""the steps of a bar; with more nights, a step stands for several"""

WORST = "x~?o" + UNSEEN + BEFORE
"""the letters of a life, the worst first: a step of several nights shows the worst of them"""

SHAPES: dict[str, tuple[str, tuple[tuple[float, float], ...]]] = {
    "x": ("failed", ((0, BAR_HEIGHT),)),
    "~": ("flaky", ((6, BAR_HEIGHT - 6),)),
    "?": ("unreached", ((4, 1.5), (8.5, 1.5))),
    "o": ("fixed", ((5.5, 3),)),
    UNSEEN: ("unseen", ((BAR_HEIGHT - 1, 1),)),
}
"""by letter of a life: the class of its part of the bar, and its boxes, each by its distance from the top and its
height.  Each letter has a shape of its own, so that colour is not needed."""


def nights_a_step(nights: int) -> int:
    return max(1, ceil(nights / MOST_STEPS))


def bar(letters: str) -> str:
    """The life of a failure as a bar over the nights, the oldest on the left; its words stand beside it."""
    step = nights_a_step(len(letters))
    steps = "".join(min(letters[at : at + step], key=WORST.index) for at in range(0, len(letters), step))
    parts: dict[str, list[str]] = {}
    at = 0
    for letter, run in groupby(steps):
        width = len(list(run))
        if letter != BEFORE:
            boxes = (f"M{at} {below:g}h{width}v{height:g}H{at}z" for below, height in SHAPES[letter][1])
            parts.setdefault(letter, []).extend(boxes)
        at += width
    return element(
        "svg",
        *(element("path", class_=SHAPES[letter][0], d="".join(boxes)) for letter, boxes in parts.items()),
        viewBox=f"0 0 {max(len(steps), 1)} {BAR_HEIGHT}",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )
