"""After a crash, the in-flight data of a checkpoint is read back from the stores, buffer by buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .parts import Buffer, PipelineChannel, Recovery
from .spill_store import Content


class ReadingBack:
    """Each channel asks its store for one buffer after another; the channels of a node alternate at its store.

    A crash meanwhile empties the stores' queues, and so ends the reading.
    """

    def __init__(
        self, channels: Sequence[PipelineChannel], size: int, recovery: Recovery, done: Callable[[Recovery], None]
    ) -> None:
        self._channels = channels
        self._size = size
        self._recovery = recovery
        self._done = done

    def begin(self) -> None:
        """Ask for the first buffer of each channel; `done` is called once nothing is left to be read, which may be
        now."""
        for channel in self._channels:
            self._ask(channel)
        self._finish_when_read()

    def _ask(self, channel: PipelineChannel) -> None:
        if channel.unread:
            channel.store.read(channel.name, channel.unread[0], self._size, partial(self._came, channel))

    def _came(self, channel: PipelineChannel, content: Content | None) -> None:
        copy = channel.unread.popleft()
        if content is None:
            channel.spilling.lost(copy.number)
        else:
            channel.put_back(Buffer(copy.number, content), self._size)
            self._recovery.replayed_bytes += self._size
        self._ask(channel)
        self._finish_when_read()

    def _finish_when_read(self) -> None:
        if not any(channel.unread for channel in self._channels):
            self._done(self._recovery)
