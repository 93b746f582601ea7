"""The port through which every choice of a scenario is drawn, by Hypothesis.

Each draw costs about 10 µs, so a scenario takes few draws (some 70; a crossed one three
times as many).  Each list of options begins with the simplest, to which Hypothesis
shrinks.  The first draw imports Hypothesis, so that commands that only replay or report
do not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")

PACKED_BITS = 32
SEED_BITS = 64


@lru_cache(maxsize=4096)
def _integers(low: int, high: int) -> SearchStrategy[int]:
    from hypothesis import strategies as st

    return st.integers(low, high)


class Choices:
    """Draws the choices for the builders of a scenario; `seeded` decides how records are drawn."""

    __slots__ = ("_draw", "seeded")

    def __init__(self, draw: DrawFn, *, seeded: bool = False) -> None:
        self._draw = draw
        self.seeded = seeded

    def between(self, low: int, high: int) -> int:
        """An integer within both bounds; a range of one costs no draw."""
        return low if low >= high else self._draw(_integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.between(0, len(options) - 1)]

    def percent(self, share: int) -> bool:
        """True in `share` of 100 draws; the simplest is False."""
        return self.between(0, 99) >= 100 - share

    def packed(self, least: int, most: int) -> list[int]:
        """From `least` to `most` integers of 32 bits, one for each record of a scenario.

        Without `seeded` they are a list with a drawn least length, which Hypothesis shrinks to
        the fewest records.  A search shrinks the scenario itself.  So with `seeded` one seed is
        drawn, which is ten times as fast.
        """
        least = self.between(least, most)
        if self.seeded:
            source = Random(self._draw(_integers(0, (1 << SEED_BITS) - 1))).randbytes(4 * least)
            return list(memoryview(source).cast("I"))
        from hypothesis import strategies as st

        return self._draw(st.lists(_integers(0, (1 << PACKED_BITS) - 1), min_size=least, max_size=most))


def built(build: Callable[[Choices], T], *, seeded: bool = False) -> SearchStrategy[T]:
    """The strategy of what a builder makes from its choices."""
    from hypothesis import strategies as st

    @st.composite
    def strategy(draw: DrawFn) -> T:
        return build(Choices(draw, seeded=seeded))

    return strategy()
