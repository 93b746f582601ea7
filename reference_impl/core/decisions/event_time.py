"""Event time: how watermarks advance, and when windows are emitted (OPS-1)."""

from __future__ import annotations

from ..operators.timers import Timer, Timers
from ..operators.watermarks import END_OF_TIME, InputTimes, SplitTimes
from .part import Part


class Watermarks(Part):
    """How event time advances (OPS-1), and which part of it a snapshot holds."""

    def of_inputs(self, inputs: InputTimes) -> int | None:
        """A task's watermark: the least of the channels that it waits for; None when it is idle."""
        return None if inputs.is_idle else min(inputs.waited_for(), default=END_OF_TIME)

    def at_end(self, time: int) -> int:
        """A source's watermark, now at `time`, once its input has ended: it ends every window."""
        return END_OF_TIME

    def of_read(self, times: SplitTimes, split: int) -> None:
        """A record of a split was read: the split is not idle."""
        times.wakes(split)

    def of_arrival(self, inputs: InputTimes, channel: int) -> None:
        """An element came from an input channel: the channel is not idle any more."""
        inputs.wakes(channel)

    def of_channels(self, inputs: InputTimes) -> list[int]:
        """The watermarks of channels that a snapshot holds: all, or records would be late after a restore."""
        return list(inputs.times)

    def of_splits(self, times: SplitTimes) -> dict[int, int]:
        """The part of a source's event time that a snapshot holds: the greatest time of each split."""
        return dict(times.maxima)


class Firing(Part):
    """When windows are emitted."""

    def due(self, timers: Timers, time: int) -> list[Timer]:
        """The timers that the watermark has reached, taken out in the step that fires them."""
        return timers.take(time)

    def kept(self, timers: Timers) -> list[Timer]:
        """The timers that a snapshot holds."""
        return timers.pending()
