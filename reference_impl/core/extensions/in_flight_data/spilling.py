"""When in-flight buffers are stored, and when the buffers that a barrier overtook are safe (UNA-2).

The ways that the discussion of unaligned checkpoints (FLIP-76) names are settings of two waits: how long a barrier
keeps its place in the channel, and how long a buffer may wait there before it is spilled.  Each channel has one state
machine with these settings: events about buffers, by number, go in, and the actions to be carried out come out.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from ...vocabulary.errors import ProtocolViolated


class Way(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a barrier overtakes, and when a buffer is spilled; times in µs, None is never."""

    overtakes_after_us: int | None = None
    """since its checkpoint began; 0: it overtakes at once, None: it never does"""
    spills_after_us: int | None = None
    """since the buffer came; 0: it is spilled as it comes, None: only once a barrier has overtaken it"""

    @property
    def keeps_channels(self) -> bool:
        """Whether a spilled buffer belongs to the channel, so that every checkpoint can refer to it, and not to one."""
        return self.spills_after_us is not None


ALIGNED = Way()
AT_ONCE = Way(overtakes_after_us=0)
CONTINUOUS = Way(overtakes_after_us=0, spills_after_us=0)


def overtaking_after(us: int) -> Way:
    """A barrier that has waited this long since its checkpoint began overtakes (later practice)."""
    return Way(overtakes_after_us=us)


def spilling_after(us: int) -> Way:
    """A buffer that is not processed within this time is spilled, checkpoint or not (the thread's first extension)."""
    return Way(overtakes_after_us=0, spills_after_us=us)


class Copy(msgspec.Struct, frozen=True, order=True):
    """A buffer in the store: a copy of one checkpoint, or with 0 of the channel itself."""

    checkpoint: int
    number: int


class CopyProgress(IntEnum):
    """How far the writing of a copy has come."""

    ordered = 0
    written = 1
    """it has left memory; a crash loses it"""
    durable = 2


class Spill(msgspec.Struct, frozen=True):
    """Write a buffer to the store."""

    copy: Copy


class FlushWrites(msgspec.Struct, frozen=True):
    """Make durable all that was written of this channel so far."""


class PartComplete(msgspec.Struct, frozen=True):
    """This channel's part of a checkpoint is durable."""

    checkpoint: int


class Drop(msgspec.Struct, frozen=True):
    """No checkpoint refers to these copies any more."""

    copies: tuple[Copy, ...]


class Free(msgspec.Struct, frozen=True):
    """The buffer's memory can be reused: it was processed, and no write needs it."""

    number: int


SpillEffect = Spill | FlushWrites | PartComplete | Drop | Free


class Completeness:
    """When a copy counts for its checkpoint: once it is durable."""

    def counts(self, progress: CopyProgress) -> bool:
        return progress is CopyProgress.durable


class Trimming:
    """Which copies of the channel itself are dropped with a complete checkpoint: of buffers processed before it."""

    def goes(self, number: int, oldest_needed: int, in_flight: bool) -> bool:
        """`oldest_needed` is the first buffer that was not processed when the task took that snapshot."""
        return number < oldest_needed


class _Part:
    """A checkpoint's part of the channel."""

    def __init__(self, oldest_needed: int) -> None:
        self.oldest_needed = oldest_needed
        self.copies: list[Copy] = []
        self.open = True
        self.reported = False


class ChannelSpilling:
    """One channel's buffers, from their arrival until nothing needs them.

    Each buffer gets the next number.  Raises ProtocolViolated for a buffer or a checkpoint that it does not have.
    """

    def __init__(self, way: Way, completeness: Completeness | None = None, trimming: Trimming | None = None) -> None:
        self._way = way
        self._completeness = completeness or Completeness()
        self._trimming = trimming or Trimming()
        self._next = 0
        self._in_flight: dict[int, None] = {}
        self._progress: dict[Copy, CopyProgress] = {}
        self._writes: dict[int, int] = {}
        """by number: how many writes of the buffer are under way; each keeps its memory"""
        self._parts: dict[int, _Part] = {}

    @property
    def next_number(self) -> int:
        return self._next

    def copies_of(self, checkpoint: int) -> tuple[Copy, ...]:
        """The copies of a checkpoint's part of the channel, in order."""
        return tuple(self._part(checkpoint).copies)

    def came(self) -> list[SpillEffect]:
        """A buffer with `next_number` came; each checkpoint whose barrier this channel has not delivered needs it."""
        number, self._next = self._next, self._next + 1
        self._in_flight[number] = None
        effects: list[SpillEffect] = []
        for checkpoint, part in self._parts.items():
            if part.open:
                effects += self._need(checkpoint, part, number)
        if self._way.spills_after_us == 0:
            effects += self._spill(Copy(0, number))
        return effects

    def waited(self, number: int) -> list[SpillEffect]:
        """A buffer has waited here for `spills_after_us`."""
        return self._spill(Copy(0, number)) if number in self._in_flight else []

    def processed(self, number: int) -> list[SpillEffect]:
        """The task has processed a buffer."""
        if number not in self._in_flight:
            raise ProtocolViolated(f"buffer {number} is not in flight")
        del self._in_flight[number]
        return [] if self._writes.get(number) else [Free(number)]

    def snapshot(self, checkpoint: int, overtaken: list[int], *, closed: bool) -> list[SpillEffect]:
        """The task took its snapshot ahead of the `overtaken` buffers; `closed`: the channel delivered its barrier."""
        part = self._parts[checkpoint] = _Part(next(iter(self._in_flight), self._next))
        effects: list[SpillEffect] = []
        for number in overtaken:
            effects += self._need(checkpoint, part, number)
        return effects + (self.barrier(checkpoint) if closed else [])

    def barrier(self, checkpoint: int) -> list[SpillEffect]:
        """The channel delivered the barrier: its part of the checkpoint ends here."""
        part = self._part(checkpoint)
        part.open = False
        if self._is_safe(part):
            return self._report_complete(checkpoint, part)
        return [FlushWrites()]

    def written(self, copy: Copy) -> list[SpillEffect]:
        """The store has written a copy; it is not durable yet."""
        self._advance(copy, CopyProgress.written)
        remaining = self._writes[copy.number] = self._writes[copy.number] - 1
        effects: list[SpillEffect] = []
        if not remaining:
            del self._writes[copy.number]
            if copy.number not in self._in_flight:
                effects.append(Free(copy.number))
        return effects + self._report_all_complete()

    def flushed(self, copies: list[Copy]) -> list[SpillEffect]:
        """These copies are durable."""
        for copy in copies:
            self._advance(copy, CopyProgress.durable)
        return self._report_all_complete()

    def completed(self, checkpoint: int) -> list[SpillEffect]:
        """All tasks' parts are durable: drop older checkpoints, and copies that only they needed."""
        oldest = self._part(checkpoint).oldest_needed
        for older in [number for number in self._parts if number < checkpoint]:
            del self._parts[older]
        released = [copy for copy in self._progress if self._goes(copy, checkpoint, oldest)]
        return self._drop(released)

    def rewind(self, checkpoint: int | None) -> tuple[list[Copy], list[SpillEffect]]:
        """Go back to a checkpoint, or None: to the beginning.  Returns the copies to read again, in order, and the
        effects that drop all others."""
        part = self._parts.get(checkpoint) if checkpoint is not None else None
        kept = list(part.copies) if part else []
        self._parts = {checkpoint: part} if part and checkpoint is not None else {}
        needed = dict.fromkeys(kept)
        self._in_flight = {copy.number: None for copy in kept}
        self._writes = {}
        return kept, self._drop([copy for copy in self._progress if copy not in needed])

    def lost(self, number: int) -> None:
        """A copy that was to be read again is missing from the store."""
        self._in_flight.pop(number, None)

    # -- inside ------------------------------------------------------------------

    def _need(self, checkpoint: int, part: _Part, number: int) -> list[SpillEffect]:
        copy = Copy(0 if self._way.keeps_channels else checkpoint, number)
        part.copies.append(copy)
        return self._spill(copy)

    def _spill(self, copy: Copy) -> list[SpillEffect]:
        if copy in self._progress:
            return []
        self._progress[copy] = CopyProgress.ordered
        self._writes[copy.number] = self._writes.get(copy.number, 0) + 1
        return [Spill(copy)]

    def _advance(self, copy: Copy, progress: CopyProgress) -> None:
        if copy in self._progress and self._progress[copy] < progress:
            self._progress[copy] = progress

    def _part(self, checkpoint: int) -> _Part:
        if checkpoint not in self._parts:
            raise ProtocolViolated(f"there is no part of checkpoint {checkpoint}")
        return self._parts[checkpoint]

    def _is_safe(self, part: _Part) -> bool:
        return all(self._completeness.counts(self._progress[copy]) for copy in part.copies)

    def _report_all_complete(self) -> list[SpillEffect]:
        effects: list[SpillEffect] = []
        for checkpoint, part in self._parts.items():
            if not part.open and not part.reported and self._is_safe(part):
                effects += self._report_complete(checkpoint, part)
        return effects

    def _report_complete(self, checkpoint: int, part: _Part) -> list[SpillEffect]:
        part.reported = True
        return [PartComplete(checkpoint)]

    def _goes(self, copy: Copy, checkpoint: int, oldest: int) -> bool:
        if copy.checkpoint:
            return copy.checkpoint < checkpoint
        return self._trimming.goes(copy.number, oldest, copy.number in self._in_flight)

    def _drop(self, copies: list[Copy]) -> list[SpillEffect]:
        for copy in copies:
            del self._progress[copy]
        return [Drop(tuple(copies))] if copies else []
