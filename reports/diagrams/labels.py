"""Where the name of a record stands in the space-time diagram, so that nothing drawn covers it.

There are several places for a name along its message.  The first is taken that is free of
barriers' boxes, lines of cuts, signs and other names.  If none is free, the place is taken
that overlaps the fewest of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..model import Value

CHARACTER = 6.6
"""the width of a character of a name, in pixels, a little more than most have"""
HEIGHT = 11
GAP = 3
"""room around a name, in pixels"""
SHARES = (0.5, 0.36, 0.64, 0.24, 0.76, 0.14, 0.86)
"""the places for a name, as shares of the way from a message's send to its receipt, the best first"""


class Box(Value, kw_only=True):
    """A rectangle, in pixels; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def is_crossed_by(self, start: tuple[float, float], end: tuple[float, float]) -> bool:
        """Whether a straight line passes through the rectangle (Liang and Barsky, 1984)."""
        first, last = 0.0, 1.0
        dx, dy = end[0] - start[0], end[1] - start[1]
        for step, room in (
            (-dx, start[0] - self.left),
            (dx, self.right - start[0]),
            (-dy, start[1] - self.top),
            (dy, self.bottom - start[1]),
        ):
            if step == 0:
                if room < 0:
                    return False
            elif step < 0:
                first = max(first, room / step)
            else:
                last = min(last, room / step)
        return first <= last


class Labels:
    """Places names one after the other; a placed name is avoided by the next."""

    def __init__(self, boxes: Iterable[Box], lines: Iterable[tuple[tuple[float, float], tuple[float, float]]]) -> None:
        self._boxes = list(boxes)
        self._lines = list(lines)

    def place(self, text: str, start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
        """The left end of the baseline of a name beside the line from `start` to `end`."""
        best = min(_places(text, start, end), key=lambda place: self._met(_box(text, place)))
        self._boxes.append(_box(text, best))
        return best

    def _met(self, box: Box) -> int:
        boxes = sum(box.meets(other) for other in self._boxes)
        return boxes + sum(box.is_crossed_by(*line) for line in self._lines)


def _box(text: str, place: tuple[float, float]) -> Box:
    x, y = place
    return Box(left=x - GAP, top=y - HEIGHT + 1, right=x + len(text) * CHARACTER + GAP, bottom=y + GAP)


def _places(text: str, start: tuple[float, float], end: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """The places to the right and the left of a line, from its middle outwards."""
    width = len(text) * CHARACTER
    for share in SHARES:
        x, y = start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
        yield x + 5, y - 3
        yield x - width - 5, y + HEIGHT - 1
        yield x + 5, y + HEIGHT - 1
        yield x - width - 5, y - 3
