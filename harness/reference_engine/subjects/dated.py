"""Logs with times: for inputs whose splits can be idle, which depends on time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ....properties.model import history as h

Item = TypeVar("Item")


class Dated(Generic[Item]):
    """A list with the time at which each item came; `of` selects the items that have a time."""

    def __init__(
        self, items: list[Item], moments: list[int], now: Callable[[], int], of: Callable[[Item], bool] = lambda _: True
    ) -> None:
        self._items = items
        self._moments = moments
        self._now = now
        self._of = of

    def append(self, item: Item, /) -> None:
        self._items.append(item)
        if self._of(item):
            self._moments.append(self._now())

    def pop(self) -> Item:
        item = self._items.pop()
        if self._of(item):
            self._moments.pop()
        return item

    def __len__(self) -> int:
        return len(self._items)


class DatedChannel:
    """A channel's log with the times at which its sender became idle."""

    def __init__(self, channel: h.Channel, now: Callable[[], int]) -> None:
        self.sent = channel.sent
        self.repeated = channel.repeated
        self.recovered = channel.recovered
        self.recovered_watermarks = channel.recovered_watermarks
        self.barriers = channel.barriers
        self.watermarks = Dated(channel.watermarks, channel.idle_at, now, lambda mark: mark[0] is None)
