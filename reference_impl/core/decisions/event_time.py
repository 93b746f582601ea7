"""Watermarks and timers: how event time advances, and what becomes of timers (OPS-1)."""

from __future__ import annotations

from collections.abc import Sequence

from ..vocabulary.state import END_OF_TIME, Timer
from .part import Part


class Watermarks(Part):
    """How event time advances (OPS-1)."""

    def of_inputs(self, waited_for: Sequence[int]) -> int:
        """A task's watermark: the least of the channels that it waits for."""
        return min(waited_for, default=END_OF_TIME)

    def of_splits(self, waited_for: Sequence[int]) -> int:
        """A source's watermark: the least of the splits that it waits for.  Once its input has ended there are none,
        and every window ends."""
        return min(waited_for, default=END_OF_TIME)

    def become_idle(self, unread: Sequence[int], read: Sequence[int]) -> tuple[int, ...]:
        """The splits that are idle when the idle timeout is over: the `unread` ones, which have not ended, of which no
        record was `read` since the timeout was set."""
        return tuple(split for split in unread if split not in read)

    def still_idle(self, idle: tuple[int, ...], channel: int) -> tuple[int, ...]:
        """The idle channels once an element came from one of all: that one is not idle any more."""
        return tuple(other for other in idle if other != channel)


class Firing(Part):
    """What becomes of timers in event time."""

    def left(self, pending: Sequence[Timer], watermark: int) -> list[Timer]:
        """The timers that are left once a watermark has fired those that it has reached: the later ones.  A timer is
        removed in the step that fires it, so that no snapshot has it and its effects."""
        return [timer for timer in pending if timer[0] > watermark]
