"""The network's log of a channel, as a history has it."""

from __future__ import annotations

import msgspec


class Channel(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The network's log of one channel of one attempt: the origins of the records
    put into it, in order, and for each barrier how many records stood before it."""

    name: str
    attempt: int
    sent: list[int] = []
    barriers: list[tuple[int, int]] = []
    recovered: list[int] = []
    """of the records that the receiver's attempt was restored with, and took before all that was sent"""
    recovered_watermarks: list[tuple[int | None, int]] = []
    """the same of watermarks, each with the number of restored records before it"""
    repeated: list[int] = []
    """of the records that its sender, come up alone, sent again and its receiver had already: before all that is
    `sent`, and not in it"""
    watermarks: list[tuple[int | None, int]] = []
    """(event time, number of records before it); the mark of being idle has no time"""
    # when (µs) each mark of being idle was, of a source whose splits can be
    idle_at: list[int] = []

    @property
    def content(self) -> list[int]:
        """The origins of all that its receiver could take, in order."""
        return self.recovered + self.sent

    @property
    def times(self) -> list[tuple[int | None, int]]:
        """The watermarks among them, each with the number of records before it."""
        restored = len(self.recovered)
        return self.recovered_watermarks + [(time, restored + before) for time, before in self.watermarks]
