"""The port through which every choice of a scenario is drawn: by Hypothesis, or from bytes.

In tests of users Hypothesis draws, and shrinks.  A search draws from bytes that follow from its seed, and shrinks the
scenario itself.  Each list of options begins with the simplest, to which Hypothesis shrinks.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from struct import unpack
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ..runtime.exit_codes import HarnessFailed

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")

PACKED_BITS = 32
SEED_BITS = 64
APART_BYTES = 256
_NAMING_BYTES = 64
"""enough of a scenario's bytes to tell it from all others"""


class Choices(ABC):
    """Draws the choices for the builders of a scenario."""

    seeded: ClassVar[bool]
    """whether one seed is drawn for all records: then Hypothesis could not shrink them"""

    @abstractmethod
    def between(self, low: int, high: int) -> int:
        """An integer within both bounds; a range of one costs no draw."""

    @abstractmethod
    def packed(self, least: int, most: int) -> list[int]:
        """From `least` to `most` integers of 32 bits, one for each record of a scenario."""

    @abstractmethod
    def apart(self, name: str) -> Choices:
        """Choices of their own, as many as `APART_BYTES` give: they move none of the others."""

    def pick(self, options: Sequence[T]) -> T:
        return options[self.between(0, len(options) - 1)]

    def percent(self, share: int) -> bool:
        """True in `share` of 100 draws; the simplest is False."""
        return self.between(0, 99) >= 100 - share


class FromBytes(Choices):
    """Choices from bytes: an integer takes the fewest bytes that hold its range, and again as many if it is too great.

    Bits that the range does not need are ignored, the first ones of the first byte.
    """

    seeded = True

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def between(self, low: int, high: int) -> int:
        if low >= high:
            return low
        bits = (high - low).bit_length()
        size, mask = (bits + 7) // 8, (1 << bits) - 1
        while True:
            begin, self._at = self._at, self._at + size
            if self._at > len(self._data):
                raise HarnessFailed(f"the choices need more than {len(self._data):,} bytes")
            value = low + (int.from_bytes(self._data[begin : self._at], "big") & mask)
            if value <= high:
                return value

    def apart(self, name: str) -> Choices:
        return FromBytes(hashlib.shake_256(self._data[:_NAMING_BYTES] + name.encode()).digest(APART_BYTES))

    def packed(self, least: int, most: int) -> list[int]:
        count = self.between(least, most)
        source = Random(self.between(0, (1 << SEED_BITS) - 1)).randbytes(4 * count)
        return list(unpack(f"<{count}I", source))


class ByHypothesis(Choices):
    """Choices that Hypothesis draws.  Only this imports Hypothesis, so that a search does not need it."""

    seeded = False

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def between(self, low: int, high: int) -> int:
        return low if low >= high else self._draw(_integers(low, high))

    def apart(self, name: str) -> Choices:
        return self

    def packed(self, least: int, most: int) -> list[int]:
        """A list with a drawn least length, which Hypothesis shrinks to the fewest records."""
        from hypothesis import strategies as st

        least = self.between(least, most)
        return self._draw(st.lists(_integers(0, (1 << PACKED_BITS) - 1), min_size=least, max_size=most))


@lru_cache(maxsize=4096)
def _integers(low: int, high: int) -> SearchStrategy[int]:
    from hypothesis import strategies as st

    return st.integers(low, high)


def built(build: Callable[[Choices], T]) -> SearchStrategy[T]:
    """The strategy of what a builder makes from its choices."""
    from hypothesis import strategies as st

    @st.composite
    def strategy(draw: DrawFn) -> T:
        return build(ByHypothesis(draw))

    return strategy()
