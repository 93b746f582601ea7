"""When in-flight buffers are stored, and when the buffers that a barrier overtook are safe (UNA-2).

The ways that the discussion of unaligned checkpoints (FLIP-76) names are settings of two waits: how long a barrier
keeps its place in the channel, and how long a buffer may wait there before it is spilled.  Each channel has one state
machine with these settings: events about buffers, by number, go in, and the actions to be carried out come out.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from .errors import ProtocolViolated


class Way(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a barrier goes, and when a buffer is spilled; times in µs, None is never."""

    overtakes_after_us: int | None = None
    """since its checkpoint began: 0 and it overtakes what is queued, None and it stays in line"""
    spills_after_us: int | None = None
    """since the buffer came: 0 and it is spilled as it comes, None and only once a barrier overtook it"""

    @property
    def keeps_channels(self) -> bool:
        """Whether what is spilled belongs to the channel, for every checkpoint to refer to, and not to one of them."""
        return self.spills_after_us is not None


ALIGNED = Way()
AT_ONCE = Way(overtakes_after_us=0)
CONTINUOUS = Way(overtakes_after_us=0, spills_after_us=0)


def overtaking_after(us: int) -> Way:
    """A barrier that waited so long since its checkpoint began goes on unaligned (later practice)."""
    return Way(overtakes_after_us=us)


def spilling_after(us: int) -> Way:
    """A buffer that was not processed within so long is spilled, checkpoint or not (the thread's first extension)."""
    return Way(overtakes_after_us=0, spills_after_us=us)


class Copy(msgspec.Struct, frozen=True, order=True):
    """A buffer in the store: of one checkpoint, or with 0 of the channel itself."""

    checkpoint: int
    number: int


class Standing(IntEnum):
    """How far a copy is."""

    ordered = 0
    written = 1
    """out of memory; a crash takes it along"""
    durable = 2


class Spill(msgspec.Struct, frozen=True):
    """Hand a buffer to the store."""

    copy: Copy


class Flush(msgspec.Struct, frozen=True):
    """Have the store make durable all that it was handed of this channel so far."""


class Complete(msgspec.Struct, frozen=True):
    """This channel's part of a checkpoint is safe."""

    checkpoint: int


class Drop(msgspec.Struct, frozen=True):
    """Nothing refers to these any more."""

    copies: tuple[Copy, ...]


class Free(msgspec.Struct, frozen=True):
    """The buffer's memory can be used again: it was processed, and no write needs it."""

    number: int


Effect = Spill | Flush | Complete | Drop | Free


class Completeness:
    """When a copy counts for its checkpoint: once a crash cannot take it."""

    def counts(self, standing: Standing) -> bool:
        return standing is Standing.durable


class Trimming:
    """Which of a channel's own copies go when a checkpoint is complete: what was processed before its barrier."""

    def goes(self, number: int, oldest_needed: int, in_flight: bool) -> bool:
        """`oldest_needed` is the first that had not been processed when the task took that snapshot."""
        return number < oldest_needed


class _Part:
    """What one checkpoint has of the channel."""

    def __init__(self, oldest_needed: int) -> None:
        self.oldest_needed = oldest_needed
        self.copies: list[Copy] = []
        self.open = True
        self.reported = False


class ChannelSpilling:
    """One channel's buffers between their arrival and the day that nothing needs them.

    Numbers grow with each buffer that comes.  Raises ProtocolViolated when it is notified
    of a buffer, or of a checkpoint, that it does not have.
    """

    def __init__(self, way: Way, completeness: Completeness | None = None, trimming: Trimming | None = None) -> None:
        self._way = way
        self._completeness = completeness or Completeness()
        self._trimming = trimming or Trimming()
        self._next = 0
        self._in_flight: dict[int, None] = {}
        self._standing: dict[Copy, Standing] = {}
        self._writes: dict[int, int] = {}
        """number: writes of it that are under way, each of which keeps its memory"""
        self._parts: dict[int, _Part] = {}

    @property
    def next_number(self) -> int:
        return self._next

    def copies_of(self, checkpoint: int) -> tuple[Copy, ...]:
        """What a checkpoint has of this channel, in order."""
        return tuple(self._part(checkpoint).copies)

    def came(self) -> list[Effect]:
        """A buffer came, and has `next_number`; until its own barrier comes a checkpoint that has begun needs it."""
        number, self._next = self._next, self._next + 1
        self._in_flight[number] = None
        effects: list[Effect] = []
        for checkpoint, part in self._parts.items():
            if part.open:
                effects += self._need(checkpoint, part, number)
        if self._way.spills_after_us == 0:
            effects += self._spill(Copy(0, number))
        return effects

    def waited(self, number: int) -> list[Effect]:
        """A buffer has lain here as long as one may."""
        return self._spill(Copy(0, number)) if number in self._in_flight else []

    def processed(self, number: int) -> list[Effect]:
        """The task is done with a buffer."""
        if number not in self._in_flight:
            raise ProtocolViolated(f"buffer {number} is not in flight")
        del self._in_flight[number]
        return [] if self._writes.get(number) else [Free(number)]

    def snapshot(self, checkpoint: int, overtaken: list[int], *, closed: bool) -> list[Effect]:
        """The task took its snapshot, ahead of these buffers; not `closed`: the channel's barrier is still to come."""
        part = self._parts[checkpoint] = _Part(next(iter(self._in_flight), self._next))
        effects: list[Effect] = []
        for number in overtaken:
            effects += self._need(checkpoint, part, number)
        return effects + (self.barrier(checkpoint) if closed else [])

    def barrier(self, checkpoint: int) -> list[Effect]:
        """The channel's barrier came: nothing more belongs to its part."""
        part = self._part(checkpoint)
        part.open = False
        if self._is_safe(part):
            return self._report_complete(checkpoint, part)
        return [Flush()]

    def written(self, copy: Copy) -> list[Effect]:
        """A copy has left memory."""
        self._advance(copy, Standing.written)
        remaining = self._writes[copy.number] = self._writes[copy.number] - 1
        effects: list[Effect] = []
        if not remaining:
            del self._writes[copy.number]
            if copy.number not in self._in_flight:
                effects.append(Free(copy.number))
        return effects + self._look()

    def flushed(self, copies: list[Copy]) -> list[Effect]:
        """These survive a crash from now on."""
        for copy in copies:
            self._advance(copy, Standing.durable)
        return self._look()

    def completed(self, checkpoint: int) -> list[Effect]:
        """All tasks' parts are safe: older checkpoints and what only they needed can go."""
        oldest = self._part(checkpoint).oldest_needed
        for older in [number for number in self._parts if number < checkpoint]:
            del self._parts[older]
        released = [copy for copy in self._standing if self._goes(copy, checkpoint, oldest)]
        return self._drop(released)

    def rewind(self, checkpoint: int | None) -> tuple[list[Copy], list[Effect]]:
        """Back to a checkpoint, or to the beginning: what is to be read again, in order; everything else is dropped."""
        part = self._parts.get(checkpoint) if checkpoint is not None else None
        kept = list(part.copies) if part else []
        self._parts = {checkpoint: part} if part and checkpoint is not None else {}
        needed = dict.fromkeys(kept)
        self._in_flight = {copy.number: None for copy in kept}
        self._writes = {}
        return kept, self._drop([copy for copy in self._standing if copy not in needed])

    def lost(self, number: int) -> None:
        """What was to be read again is not there."""
        self._in_flight.pop(number, None)

    # -- inside ------------------------------------------------------------------

    def _need(self, checkpoint: int, part: _Part, number: int) -> list[Effect]:
        copy = Copy(0 if self._way.keeps_channels else checkpoint, number)
        part.copies.append(copy)
        return self._spill(copy)

    def _spill(self, copy: Copy) -> list[Effect]:
        if copy in self._standing:
            return []
        self._standing[copy] = Standing.ordered
        self._writes[copy.number] = self._writes.get(copy.number, 0) + 1
        return [Spill(copy)]

    def _advance(self, copy: Copy, standing: Standing) -> None:
        if copy in self._standing and self._standing[copy] < standing:
            self._standing[copy] = standing

    def _part(self, checkpoint: int) -> _Part:
        if checkpoint not in self._parts:
            raise ProtocolViolated(f"there is no part of checkpoint {checkpoint}")
        return self._parts[checkpoint]

    def _is_safe(self, part: _Part) -> bool:
        return all(self._completeness.counts(self._standing[copy]) for copy in part.copies)

    def _look(self) -> list[Effect]:
        effects: list[Effect] = []
        for checkpoint, part in self._parts.items():
            if not part.open and not part.reported and self._is_safe(part):
                effects += self._report_complete(checkpoint, part)
        return effects

    def _report_complete(self, checkpoint: int, part: _Part) -> list[Effect]:
        part.reported = True
        return [Complete(checkpoint)]

    def _goes(self, copy: Copy, checkpoint: int, oldest: int) -> bool:
        if copy.checkpoint:
            return copy.checkpoint < checkpoint
        return self._trimming.goes(copy.number, oldest, copy.number in self._in_flight)

    def _drop(self, copies: list[Copy]) -> list[Effect]:
        for copy in copies:
            del self._standing[copy]
        return [Drop(tuple(copies))] if copies else []
