"""Small plots as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import median

from ..model import Value
from ..svg import element, label, path
from ..words import duration, plural

WIDTH, HEIGHT, FLOOR, BINS = 420, 120, 92, 28


class Plot(Value, kw_only=True):
    """A picture, and its content in words."""

    picture: str
    caption: str


def histogram(samples_us: Sequence[int], noun: str) -> Plot | None:
    """The histogram of durations in µs; None without a sample."""
    if not samples_us:
        return None
    ordered = sorted(samples_us)
    low, high, middle = ordered[0], ordered[-1], median(ordered)
    most = ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)]
    caption = (
        f"{plural(len(ordered), noun)}: half took up to {duration(middle)}, "
        f"95 % up to {duration(most)}, the longest {duration(high)}."
    )
    return Plot(picture=_columns(ordered, low, high, middle, caption), caption=caption)


def _columns(ordered: list[int], low: int, high: int, middle: float, caption: str) -> str:
    span = max(high - low, 1)
    counts = [0] * BINS
    for sample in ordered:
        counts[min((sample - low) * BINS // span, BINS - 1)] += 1
    tallest, width = max(counts), WIDTH / BINS
    bars = "".join(
        path(
            [(at * width + 1, FLOOR), (at * width + 1, top), ((at + 1) * width - 1, top), ((at + 1) * width - 1, FLOOR)]
        )
        for at, count in enumerate(counts)
        if count and (top := FLOOR - max(count / tallest * (FLOOR - 20), 1.5))
    )
    x = (middle - low) / span * WIDTH
    side = "end" if x > WIDTH / 2 else "start"
    return element(
        "svg",
        element("title", escape(caption)),
        element("path", class_="columns", d=bars),
        element("path", class_="floor", d=path([(0, FLOOR), (WIDTH, FLOOR)])),
        element("path", class_="median", d=path([(x, 6), (x, FLOOR + 4)])),
        label("median " + duration(middle), x + (-5 if side == "end" else 5), 13, text_anchor=side),
        label(duration(low), 0, FLOOR + 18),
        label(duration(high), WIDTH, FLOOR + 18, text_anchor="end"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="plot drawing",
        role="img",
    )
