"""Event time: how watermarks advance, and when windows are emitted (OPS-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..operators.timers import Timer
from ..operators.watermarks import END_OF_TIME
from .part import Part


class Watermarks(Part):
    """How event time advances (OPS-1), and which part of it a snapshot holds."""

    def of_inputs(self, waited_for: Sequence[int]) -> int:
        """A task's watermark: the least of the channels that it waits for."""
        return min(waited_for, default=END_OF_TIME)

    def at_end(self, time: int) -> int:
        """A source's watermark, now at `time`, once its input has ended: it ends every window."""
        return END_OF_TIME

    def active(self, before: tuple[int, ...], split: int, idle: tuple[int, ...]) -> tuple[int, ...]:
        """The splits that do not become idle when the idle timeout is over, now that a record of `split` was read: it
        and those `before` it, whether it was among the `idle` ones or not."""
        return before if split in before else (*before, split)

    def still_idle(self, idle: tuple[int, ...], channel: int) -> tuple[int, ...]:
        """The idle channels once an element came from one of all: that one is not idle any more."""
        return tuple(other for other in idle if other != channel)

    def of_channels(self, times: Sequence[int]) -> list[int]:
        """The watermarks of channels that a snapshot holds: all, or records would be late after a restore."""
        return list(times)

    def of_splits(self, maxima: Mapping[int, int]) -> dict[int, int]:
        """The part of a source's event time that a snapshot holds: the greatest time of each split."""
        return dict(maxima)


class Firing(Part):
    """What becomes of the timers of windows."""

    def removed(self, due: Sequence[Timer]) -> Sequence[Timer]:
        """Of the timers that the watermark has reached, those taken out in the step that fires them: all."""
        return due

    def kept(self, pending: list[Timer]) -> list[Timer]:
        """The timers that a snapshot holds."""
        return pending
