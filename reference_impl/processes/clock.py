"""A hybrid logical clock: the machine's time, never earlier than what was heard of.

Stamps are µs, so that they can be read as a time too; where two happenings
stand in a cause and effect, the effect's stamp is the larger one (Kulkarni et
al., Logical Physical Clocks, 2014; logical and physical part share one number).

All processes read one machine's monotonic clock, so what an honest one says is
hardly ahead of it.  A stamp that is far ahead is refused: nobody could say
anything later that is more than a lie, and whoever hears it would lie too.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_LEAD_US = 1_000_000
"""A stamp may be so far ahead of the machine's clock where it is heard."""


class StampRefused(Exception):
    """A stamp from too far ahead; the clock has not moved."""


class Clock:
    """One process's clock; `now_us` is its machine's, which may stand still or go back."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._last = 0

    def tick(self) -> int:
        """A stamp for what happens now, larger than every one before."""
        self._last = max(self._now_us(), self._last + 1)
        return self._last

    def received(self, stamp: int) -> None:
        """Something stamped so has arrived: what follows is later.  Raises StampRefused."""
        if stamp > self._last:
            lead_us = stamp - self._now_us()
            if lead_us > MAX_LEAD_US:
                raise StampRefused(
                    f"a stamp is {lead_us} µs ahead of this machine's clock: at most {MAX_LEAD_US} are taken"
                )
            self._last = stamp
