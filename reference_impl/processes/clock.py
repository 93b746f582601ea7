"""A hybrid logical clock: the machine's time, never earlier than what was heard of.

Stamps are µs, so that they can be read as a time too; where two happenings
stand in a cause and effect, the effect's stamp is the larger one (Kulkarni et
al., Logical Physical Clocks, 2014; logical and physical part share one number).
"""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """One process's clock; `now_us` is its machine's, which may stand still or go back."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._last = 0

    def tick(self) -> int:
        """A stamp for what happens now, larger than every one before."""
        self._last = max(self._now_us(), self._last + 1)
        return self._last

    def heard(self, stamp: int) -> None:
        """Something stamped so has arrived: what follows is later."""
        if stamp > self._last:
            self._last = stamp
