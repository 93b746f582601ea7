"""A node's store in virtual time: one thing after another, at a rate; a crash destroys what was not flushed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec

from ...core.extensions.in_flight_data.spilling import Copy
from ..loop import Loop
from .plan import Device

Content = tuple[int, int]
"""the source of a buffer, and its place there"""


class Pace:
    """How long a number of bytes takes at a rate, in whole µs; the remainder of a duration counts for the next one."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._over = 0

    def takes_us(self, size: int) -> int:
        duration, self._over = divmod(size * 1_000_000 + self._over, self._rate)
        return duration


class Series:
    """Bytes by slice of time."""

    def __init__(self, slice_us: int) -> None:
        self._slice_us = slice_us
        self.bytes: list[int] = []

    def add(self, at_us: int, size: int) -> None:
        at = at_us // self._slice_us
        while len(self.bytes) <= at:
            self.bytes.append(0)
        self.bytes[at] += size


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """A buffer that was read back; times in µs."""

    writer: str
    """the channel that had written it"""
    copy: Copy
    asked_us: int
    began_us: int
    """when everything in front of it in the queue was done"""
    done_us: int


class _File:
    """What one flush makes durable, and what is deleted as a whole."""

    def __init__(self) -> None:
        self.remaining = 0
        self.bytes = 0
        self.closed = False


class _Writer:
    """One channel's side of the store."""

    def __init__(self) -> None:
        self.file: _File | None = None
        self.reading: _File | None = None
        """which of its files is open for reading"""
        self.contents: dict[Copy, Content] = {}
        self.place: dict[Copy, _File] = {}
        self.sizes: dict[Copy, int] = {}
        self.durable: dict[Copy, None] = {}


_Write = tuple[str, Copy | None, int, Callable[[Copy | None], None]]
_Flush = tuple[str, Callable[[list[Copy]], None]]
_Reading = tuple[str, Copy, int, int, Callable[[Content | None], None]]


class SpillStore:
    """The device of one node; each writer or reader has a name, and is called back when a request of it is done.

    Writes, flushes and reads stand in one queue: each waits for all earlier requests.
    """

    def __init__(self, loop: Loop, device: Device, slice_us: int) -> None:
        self._loop = loop
        self._device = device
        self._pace = Pace(device.rate)
        self._reads = Pace(device.read_rate)
        self._queue: deque[Callable[[], None]] = deque()
        self._busy = False
        self._life = 0
        self._writers: dict[str, _Writer] = {}
        self.written = 0
        self.live = 0
        """bytes that take up room now"""
        self.most = 0
        self.series = Series(slice_us)
        self.reads: list[Read] = []

    def write(
        self, writer: str, copy: Copy | None, content: Content, size: int, then: Callable[[Copy | None], None]
    ) -> None:
        """Append; a copy of None is a task's state, which takes time and whose content is not read."""
        if copy is not None:
            self._of(writer).contents[copy] = content
        self._put(partial(self._write, (writer, copy, size, then)))

    def flush(self, writer: str, then: Callable[[list[Copy]], None]) -> None:
        """Make durable everything that this writer wrote before."""
        self._put(partial(self._flush, (writer, then)))

    def read(self, writer: str, copy: Copy, size: int, then: Callable[[Content | None], None]) -> None:
        """Read a copy back, after its file is opened if it was not; None if the copy does not exist, which takes no
        time."""
        self._put(partial(self._read, (writer, copy, size, self._loop.now, then)))

    def drop(self, writer: str, copies: tuple[Copy, ...]) -> None:
        """Nobody will read these copies: a log frees their room at once, a file once it is closed and has no other
        copy."""
        own = self._of(writer)
        for copy in copies:
            own.contents.pop(copy, None)
            own.durable.pop(copy, None)
            size = own.sizes.pop(copy, 0)
            file = own.place.pop(copy, None)
            if file is None:
                self.live -= size
            else:
                file.remaining -= 1
                self._delete_if_empty(file)

    def kept(self, writer: str, copy: Copy) -> Content | None:
        """The durable content of a copy, for an outside observer; None: there is none."""
        own = self._of(writer)
        return own.contents[copy] if copy in own.durable else None

    def crash(self) -> None:
        """What was not flushed is lost, and so are the requests in the queue."""
        self._life += 1
        self._queue.clear()
        self._busy = False
        for writer, own in self._writers.items():
            lost = tuple(copy for copy in own.contents if copy not in own.durable)
            if own.file:
                own.file.closed = True
                own.file = None
            own.reading = None
            self.drop(writer, lost)

    # -- inside ------------------------------------------------------------------

    def _of(self, writer: str) -> _Writer:
        if writer not in self._writers:
            self._writers[writer] = _Writer()
        return self._writers[writer]

    def _put(self, begin: Callable[[], None]) -> None:
        self._queue.append(begin)
        if not self._busy:
            self._next()

    def _next(self) -> None:
        self._busy = bool(self._queue)
        if self._busy:
            self._queue.popleft()()

    def _write(self, order: _Write) -> None:
        own, opening_us = self._of(order[0]), 0
        if self._device.kind == "files" and own.file is None:
            own.file, opening_us = _File(), self._device.open_us
        self._loop.after(opening_us + self._pace.takes_us(order[2]), self._wrote, self._life, order)

    def _flush(self, order: _Flush) -> None:
        self._loop.after(self._device.flush_us, self._flushed, self._life, order)

    def _read(self, order: _Reading) -> None:
        writer, copy, size, _, _ = order
        own, takes_us = self._of(writer), 0
        if copy in own.durable:
            file = own.place.get(copy)
            if file is not own.reading:
                own.reading, takes_us = file, self._device.open_us
            takes_us += self._reads.takes_us(size)
        self._loop.after(takes_us, partial(self._was_read, self._loop.now), self._life, order)

    def _wrote(self, life: int, order: _Write) -> None:
        if life != self._life:
            return
        writer, copy, size, then = order
        self.written += size
        self.series.add(self._loop.now, size)
        own = self._of(writer)
        if copy is not None and copy in own.contents:
            self.live += size
            self.most = max(self.most, self.live)
            own.sizes[copy] = size
            if own.file:
                own.place[copy] = own.file
                own.file.remaining += 1
                own.file.bytes += size
        then(copy)
        self._next()

    def _flushed(self, life: int, order: _Flush) -> None:
        if life != self._life:
            return
        writer, then = order
        own = self._of(writer)
        done = [copy for copy in own.sizes if copy not in own.durable]
        own.durable.update(dict.fromkeys(done))
        if own.file:
            own.file.closed = True
            self._delete_if_empty(own.file)
            own.file = None
        then(done)
        self._next()

    def _was_read(self, began_us: int, life: int, order: _Reading) -> None:
        if life != self._life:
            return
        writer, copy, _, asked_us, then = order
        content = self.kept(writer, copy)
        if content is not None:
            self.reads.append(
                Read(writer=writer, copy=copy, asked_us=asked_us, began_us=began_us, done_us=self._loop.now)
            )
        then(content)
        self._next()

    def _delete_if_empty(self, file: _File) -> None:
        if file.closed and not file.remaining:
            self.live -= file.bytes
            file.bytes = 0
