"""Event time: the watermarks of a task's input channels, and those of a source's splits.

A watermark with time t says that no record with an event time up to t follows in its
channel.  A task's own watermark is the least of its channels' watermarks, without idle
channels; it never decreases.  A channel whose input has ended has `END_OF_TIME`, and so
holds nothing back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..vocabulary.state import BEGINNING, END_OF_TIME


class InputTimes:
    """The watermarks of a task's input channels, by channel number, and the task's own."""

    def __init__(self, channels: int) -> None:
        self.times = [BEGINNING] * channels
        self.idle: tuple[int, ...] = ()
        self.time = BEGINNING
        """the task's own"""

    @property
    def is_known(self) -> bool:
        """Whether any watermark or idle mark was received."""
        return bool(self.idle) or self.time > BEGINNING or max(self.times, default=BEGINNING) > BEGINNING

    @property
    def is_idle(self) -> bool:
        """Some channel is idle, and all others have ended."""
        return bool(self.idle) and not self.waited_for()

    def waited_for(self) -> list[int]:
        """The times of the channels that have neither ended nor are idle."""
        times = enumerate(self.times)
        return [time for channel, time in times if time < END_OF_TIME and channel not in self.idle]

    def received(self, channel: int, time: int) -> None:
        """A channel's watermark was received; one that is not later changes nothing."""
        self.times[channel] = max(self.times[channel], time)

    def sleeps(self, channel: int) -> None:
        if channel not in self.idle:
            self.idle = tuple(sorted((*self.idle, channel)))

    def wakes(self, still_idle: tuple[int, ...]) -> None:
        """A channel is active again; these are idle still."""
        self.idle = still_idle

    def advance(self, time: int) -> bool:
        """Advance the task's own watermark; False if it is as late already."""
        if time <= self.time:
            return False
        self.time = time
        return True

    def restore(self, time: int, times: Sequence[int], idle: Sequence[int]) -> None:
        """Go on from a snapshot; without event time in it, all watermarks are at the beginning."""
        self.time = time
        self.times = list(times) or [BEGINNING] * len(self.times)
        self.idle = tuple(idle)


class SplitTimes:
    """A source's event time by split, and its idle splits."""

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self.maxima: dict[int, int] = {}
        self.idle: tuple[int, ...] = ()
        self.time = BEGINNING
        """the last watermark sent"""
        self.read_since: tuple[int, ...] = ()
        """the splits of which a record was read since the idle timeout was last set"""

    def read(self, split: int, time: int) -> None:
        """A record of a split was read: the split is active."""
        self.maxima[split] = max(self.maxima.get(split, BEGINNING), time)
        if split not in self.read_since:
            self.read_since = (*self.read_since, split)
        if split in self.idle:
            self.idle = tuple(other for other in self.idle if other != split)

    def rest(self, idle: tuple[int, ...]) -> None:
        """The idle timeout is over, and these splits are idle."""
        self.idle = idle
        self.read_since = ()

    def of(self, splits: Sequence[int]) -> list[int]:
        """The watermarks of splits."""
        return [self.maxima[split] - self.delay - 1 if split in self.maxima else BEGINNING for split in splits]

    def advance(self, time: int) -> bool:
        """Advance the source's watermark, which is sent; False if it is as late already."""
        if time <= self.time:
            return False
        self.time = time
        return True

    def restore(self, time: int, maxima: Mapping[int, int], idle: Sequence[int]) -> None:
        self.time = time
        self.maxima = dict(maxima)
        self.idle = tuple(idle)
