"""A process's journal: what its world reports to the observer, on disk before it can have an effect.

A journal is a file of batches, each a frame of the wire with a checksum.  What is observed waits in the process until
`flush`, which is called before anything that was sent leaves.  So what a kill -9 destroys has reached nobody.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from ... import observed as o
from ...core.vocabulary.errors import EngineError, ProtocolViolated
from ...core.vocabulary.ids import AttemptId, TaskId
from ...wire import HEADER, VERSION, Reader, WireError
from ..clock import Clock
from .checked import CODEC, framed, is_whole
from .former_journals import as_today

BATCH = 1_000
"""how many entries may wait; with one more they are written at once"""

Item = TypeVar("Item")


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event, and when it happened: the stamps put the journals of all processes in one order that is consistent
    with causality."""

    stamp: int
    event: o.AnyObserved


_decoder = msgspec.msgpack.Decoder(list[Entry])


class CorruptJournal(EngineError):
    """A journal that is altered; one that only ends too early is not."""


class Column(Generic[Item]):
    """Fulfils `trace.Appendable` by writing; it keeps only the number of items."""

    __slots__ = ("_length", "_undo", "_write")

    def __init__(self, write: Callable[[Item], None], undo: Callable[[], None]) -> None:
        self._write = write
        self._undo = undo
        self._length = 0

    def append(self, item: Item, /) -> None:
        self._length += 1
        self._write(item)

    def pop(self) -> None:
        """Take the last one back."""
        if not self._length:
            raise IndexError("nothing is there to be taken back")
        self._length -= 1
        self._undo()

    def __len__(self) -> int:
        return self._length


class RunJournal:
    """Fulfils `trace.TaskLog`."""

    def __init__(self, journal: Journal, run: int) -> None:
        self.run = run
        saw = journal.saw
        self.reads: Column[tuple[int, int]] = Column(
            lambda place: saw(o.RecordRead(run, *place)), lambda: saw(o.ReadUndone(run))
        )
        self.applies: Column[tuple[int, int]] = Column(
            lambda taken: saw(o.RecordApplied(run, *taken)), lambda: saw(o.ApplyUndone(run))
        )


class ChannelJournal:
    """Fulfils `trace.SenderLog`; the receiver's has only the elements that are put back, the sender's only the
    others."""

    def __init__(self, journal: Journal, channel: int) -> None:
        saw = journal.saw
        self._journal, self._channel = journal, channel
        self.repeated: list[int] = []  # the merge identifies them by their numbers
        self.recovered: Column[int] = Column(lambda origin: saw(o.RecordRecovered(channel, origin)), _never)
        self.recovered_watermarks: Column[tuple[int | None, int]] = Column(
            lambda watermark: saw(o.WatermarkRecovered(channel, *watermark)), _never
        )
        self.sent: Column[int] = Column(lambda origin: saw(o.RecordSent(channel, origin)), _never)
        self.barriers: Column[tuple[int, int]] = Column(lambda barrier: saw(o.BarrierSent(channel, *barrier)), _never)
        self.watermarks: Column[tuple[int | None, int]] = Column(
            lambda watermark: saw(o.WatermarkSent(channel, *watermark)), _never
        )

    def continued(self, whole: AttemptId, first: int, expects: int) -> None:
        """For a sender that recovered locally: see `observed.ChannelContinued`."""
        self._journal.saw(o.ChannelContinued(self._channel, whole, first, expects))


def _never() -> None:
    raise ProtocolViolated("what has entered a channel cannot be taken back")


class Journal:
    """Fulfils `trace.ProcessObserver` by writing to a file that is its own; not for several threads."""

    def __init__(self, path: Path, clock: Clock, *, detailed: bool = False) -> None:
        """The file's folder must exist; if the file exists, it is continued."""
        self.detailed = detailed
        self.clock = clock
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._waiting: list[Entry] = []
        self._runs = 0
        self._channels = 0

    def saw(self, event: o.Observed) -> None:
        self.saw_at(self.clock.tick(), event)

    def saw_at(self, stamp: int, event: o.Observed) -> None:
        """An event that happened earlier, or in another process."""
        self._waiting.append(Entry(stamp, event))  # type: ignore[arg-type]
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits; raises OSError, and WireError for a batch that is longer than a frame can be."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        remaining = memoryview(framed(waiting))
        while remaining:
            remaining = remaining[os.write(self._file, remaining) :]

    def close(self) -> None:
        self.flush()
        os.close(self._file)

    def order(self) -> int:
        """A stamp instead of a number: the merge makes numbers of stamps."""
        return self.clock.tick()

    def task_started(
        self,
        task: TaskId,
        operator: str,
        subtask: int,
        attempt: AttemptId,
        job: int,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> RunJournal:
        run, self._runs = self._runs, self._runs + 1
        self.saw(o.TaskStarted(run, task, operator, subtask, attempt, job, tuple(inputs), tuple(outputs)))
        return RunJournal(self, run)

    def channel_opened(self, name: str, attempt: AttemptId) -> ChannelJournal:
        channel, self._channels = self._channels, self._channels + 1
        self.saw(o.ChannelOpened(channel, name, attempt))
        return ChannelJournal(self, channel)

    def channel_refilled(self, name: str, attempt: AttemptId) -> ChannelJournal:
        """Elements in flight are about to be put back into a channel; its sender may live in another process."""
        channel, self._channels = self._channels, self._channels + 1
        self.saw(o.ChannelRefilled(channel, name, attempt))
        return ChannelJournal(self, channel)


def read_journal(path: Path) -> list[Entry]:
    """Every entry of a journal, in the order in which they were written; without the last batch, if that is not
    complete.

    Raises OSError, and CorruptJournal when the journal is altered.
    """
    data = path.read_bytes()
    reader = Reader(CODEC)
    found: list[Entry] = []
    try:
        for number, batch in enumerate(reader.feed(data)):
            if not is_whole(batch):
                raise CorruptJournal(f"the journal {path.name} is altered: the checksum of its batch {number} is wrong")
            found += _entries(batch.elements)
    except (WireError, msgspec.DecodeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise CorruptJournal(f"the journal {path.name} is altered: {error}") from None
    if _holds_a_batch(data[len(data) - reader.pending :]):
        raise CorruptJournal(f"the journal {path.name} is altered: whole batches follow one that is not complete")
    return found


def _entries(batch: msgspec.Raw) -> list[Entry]:
    """The entries of a batch, which a former version may have written."""
    try:
        return _decoder.decode(batch)
    except msgspec.ValidationError:
        former: list[list[Any]] = msgspec.msgpack.decode(batch, type=list[list[Any]])
        return msgspec.convert([as_today(entry) for entry in former], list[Entry])


def _holds_a_batch(tail: bytes) -> bool:
    """Whether a whole batch follows the beginning of what looks like a torn one: then the length of that one is
    wrong."""
    mark = bytes([VERSION])
    at = tail.find(mark, 1)
    while 0 < at <= len(tail) - HEADER.size:
        length = HEADER.unpack_from(tail, at)[1]
        body = tail[at + HEADER.size : at + HEADER.size + length]
        if len(body) == length and _is_batch(body):
            return True
        at = tail.find(mark, at + 1)
    return False


def _is_batch(body: bytes) -> bool:
    try:
        return is_whole(CODEC.decode(body))
    except WireError:
        return False
