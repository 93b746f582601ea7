"""A hybrid logical clock: the machine's time, but never earlier than a stamp that was received.

Stamps are µs, so that they can be read as times too.  Where one event causes another, the effect's stamp is the larger
one (Kulkarni et al., Logical Physical Clocks, 2014; here logical and physical part share one number).  All processes
read the monotonic clock of one machine, so the stamps of a correct process are hardly ahead of it.  A stamp that is far
ahead is refused: whoever took it over would stamp its own events with wrong times.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_LEAD_US = 1_000_000
"""How far a stamp may be ahead of the clock of the machine that receives it."""


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
        """A message with this stamp has arrived: what follows gets a later stamp.  Raises StampRefused."""
        if stamp > self._last:
            lead_us = stamp - self._now_us()
            if lead_us > MAX_LEAD_US:
                raise StampRefused(
                    f"a stamp is {lead_us} µs ahead of this machine's clock: at most {MAX_LEAD_US} are taken"
                )
            self._last = stamp
