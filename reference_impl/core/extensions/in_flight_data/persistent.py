"""Persistent channels: a task appends the elements of each input channel to a log (FLIP-76, UNA-2).

With continuous spilling each element is appended as it comes.  With a buffer timeout an
element is appended when it has lain unprocessed for so long, or when a snapshot needs it.
A snapshot holds references to the log instead of rows, and is written when the elements
that it refers to are durable.  A restore reads these and goes on as if the rows had been
in the snapshot.

A log belongs to one channel of one attempt of the whole dataflow.  Its only writer is the
receiver; a locally recovered task goes on with the logs of the attempt before it (UNA-4).
Elements are numbered from 0 in the order in which they are received, restored ones first.
Barriers have no number, since they may come at other places in a replay; ends of data have
none, since their senders send them again.  The log keeps all elements from the first that
the oldest restorable checkpoint had not taken, until that checkpoint is subsumed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...decisions.persisting import Persisting
from ...vocabulary.effects import AppendToLog, Effect, SetTimer, Sync, TrimLog
from ...vocabulary.ids import CheckpointId
from ...vocabulary.messages import Complete, Element, Idle, Record, Watermark
from ...vocabulary.state import Ref
from ...vocabulary.timeouts import BufferTimeout

IN_FLIGHT_KINDS = (Record, Watermark, Idle)
"""What can be in flight, and has a number."""


class Durable(msgspec.Struct, frozen=True):
    """It was durable before this attempt."""


class DurableAfter(msgspec.Struct, frozen=True):
    """It was appended to the log, and is durable once this sync is done."""

    sync: int


Logged = Durable | DurableAfter
"""What is in the log: an element, or all that a snapshot refers to."""
DURABLE = Durable()


class LedgerEntry:
    """One element of an input channel."""

    __slots__ = ("element", "logged", "number")

    def __init__(self, number: int, element: Element) -> None:
        self.number = number
        self.element = element
        self.logged: Logged | None = None
        """None: it was not appended"""


class Ledger:
    """The numbers of one task's inputs: which elements came, were taken, and are in the logs.

    `after_us` is how long an element may wait before it is spilled; with 0 it is spilled as it comes.
    """

    def __init__(self, logs: Sequence[str], part: Persisting, after_us: int) -> None:
        self.logs = list(logs)
        self._part = part
        self._after_us = after_us
        self.waiting: list[deque[LedgerEntry]] = [deque() for _ in logs]
        """by channel: the elements that came and were not taken"""
        self._next = [0] * len(logs)
        self._logged = [0] * len(logs)
        """by channel: the number below which all elements are in the log already, if the task goes on with a log"""
        self._trimmed = [0] * len(logs)
        self._positions: dict[CheckpointId, tuple[int, ...]] = {}
        """by checkpoint, by channel: the first element that was not taken before the task's snapshot"""
        self._appended = DurableAfter(1)
        """what is appended now"""
        self._synced = 0
        self._timer_set_at: list[int] | None = None
        """by channel: the next number when the timer was set; None while no timer is set"""

    def resume(self, channel: int, number: int, logged: int) -> None:
        """Go on with an existing log: the next element has this number, and those below `logged` are in the log."""
        self._next[channel], self._logged[channel] = number, logged

    def remember(self, positions: Mapping[CheckpointId, Sequence[int]]) -> None:
        """Take over where an earlier attempt took its snapshots in these logs, by channel."""
        self._positions = {checkpoint: tuple(where) for checkpoint, where in positions.items()}

    def first(self, channel: int) -> int:
        """The number of the element to be taken next."""
        waiting = self.waiting[channel]
        return waiting[0].number if waiting else self._next[channel]

    # -- coming and going ------------------------------------------------------------

    def came(self, channel: int, element: Element) -> list[Effect]:
        """An element has entered an input."""
        if type(element) not in IN_FLIGHT_KINDS:
            return []
        one = LedgerEntry(self._next[channel], element)
        self._next[channel] += 1
        self.waiting[channel].append(one)
        if self._after_us == 0:
            return self._append(channel, one)
        if self._timer_set_at is not None:
            return []
        self._timer_set_at = list(self._next)
        return [SetTimer(BufferTimeout(), self._after_us)]

    def took(self, channel: int, element: Element) -> LedgerEntry | None:
        """The task takes the next element; None for what has no number."""
        if type(element) not in IN_FLIGHT_KINDS:
            return None
        waiting = self.waiting[channel]
        if waiting:
            return waiting.popleft()
        self._next[channel] += 1
        return LedgerEntry(self._next[channel] - 1, element)

    def passed(self, channel: int, passed: Sequence[Element]) -> list[LedgerEntry | None]:
        """The entries of elements that a barrier overtook in an input; None for one without a number."""
        entries = iter(self.waiting[channel])
        return [next(entries, None) if isinstance(one, IN_FLIGHT_KINDS) else None for one in passed]

    def timer(self) -> list[Effect]:
        """Spill the elements that were in the inputs when the timer was set and still are."""
        set_at, self._timer_set_at = self._timer_set_at or [], None
        effects = [
            effect
            for channel, number in enumerate(set_at)
            for one in self.waiting[channel]
            if one.number < number
            for effect in self._append(channel, one)
        ]
        if any(one.logged is None for waiting in self.waiting for one in waiting):
            self._timer_set_at = list(self._next)
            effects.append(SetTimer(BufferTimeout(), self._after_us))
        return effects

    def _append(self, channel: int, one: LedgerEntry) -> list[Effect]:
        if one.logged is not None:
            return []
        if one.number < self._logged[channel]:
            one.logged = DURABLE
            return []
        one.logged = self._appended
        return [AppendToLog(self.logs[channel], one.number, one.element)]

    # -- snapshots -------------------------------------------------------------------

    def mark(self, checkpoint: CheckpointId) -> None:
        """The task takes its snapshot of a checkpoint here."""
        self._positions[checkpoint] = tuple(self.first(channel) for channel in range(len(self.logs)))

    def secure(self, spilled: Mapping[int, Sequence[LedgerEntry]]) -> tuple[Logged, list[Effect]]:
        """Have these elements made durable, by channel; returns when they are, and the effects for it."""
        effects = [e for channel, entries in spilled.items() for one in entries for e in self._append(channel, one)]
        logged = (one.logged for entries in spilled.values() for one in entries)
        syncs = [one.sync for one in logged if isinstance(one, DurableAfter)]
        last: Logged = DurableAfter(max(syncs)) if syncs else DURABLE
        return last, [*effects, *(self.sync() if last == self._appended else ())]

    def sync(self) -> list[Effect]:
        """Have everything made durable that was appended so far."""
        sync = self._appended.sync
        self._appended = DurableAfter(sync + 1)
        return [Sync(sync)]

    def synced(self, serial: int) -> None:
        """Everything that was appended before this sync is durable."""
        self._synced = max(serial, self._synced)

    def is_safe(self, logged: Logged) -> bool:
        """Whether a snapshot may be written that refers to this."""
        return isinstance(logged, Durable) or self._part.is_safe(logged.sync, self._synced)

    def refs(self, spilled: Mapping[int, Sequence[LedgerEntry]]) -> dict[int, list[Ref]]:
        """References to these elements, by channel; one for each run of consecutive numbers."""
        return {channel: _runs(self.logs[channel], entries) for channel, entries in spilled.items() if entries}

    def trim(self, complete: Complete) -> list[Effect]:
        """Trim the logs of elements that no restorable checkpoint needs."""
        needed = self._part.needed_from(tuple(self._positions), complete)
        if needed is None:
            return []
        self._positions = {one: where for one, where in self._positions.items() if one >= needed}
        effects: list[Effect] = []
        for channel, position in enumerate(self._positions[needed]):
            if position > self._trimmed[channel]:
                self._trimmed[channel] = position
                effects.append(TrimLog(self.logs[channel], position))
        return effects


def _runs(log: str, entries: Iterable[LedgerEntry]) -> list[Ref]:
    runs: list[Ref] = []
    for one in entries:
        if runs and runs[-1].end == one.number:
            runs[-1] = Ref(log, runs[-1].first, one.number + 1)
        else:
            runs.append(Ref(log, one.number, one.number + 1))
    return runs
