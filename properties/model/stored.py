"""What a snapshot holds, in a layout of no engine: of a task, and of the enumerator of an input."""

from __future__ import annotations

import msgspec

from .workload import BEGINNING

Passing = tuple[int | None, ...]
"""An element in flight: a record (key, value, tag, tag2, origin, event time), a watermark (time,), or an idle mark
()."""


class StoredState(msgspec.Struct, kw_only=True):
    """The neutral layout of a task's snapshot.

    `entries` are (side, key, a, b) by operator: count (0, key, n, 0), or (0,
    key, n, sum of tags) where it is signed, sum (0, key, sum, sum of tags),
    greater (0, key, last value, 0), dedup (0, key, 0, 0), join (0 left or 1
    right, key, value, tag), a window that is open (its start, key, count or
    sum, sum of tags).  `transactions` are (name,
    checkpoint) of a sink's sealed, uncommitted transactions.  Of a
    batch `listed` has each row that waits as ("rows", [key, value, tag, tag2,
    origin, event time]), of a tally `shared` has ("counts", [key, n]), of rules
    `broadcast` has ("rules", [key, value, tag]); a model has (0, key, level, number
    of values learnt) among the entries.  Fields that are not named here belong to the engine and are not judged.
    """

    positions: dict[int, int] = {}
    """split: next offset to read"""
    entries: list[tuple[int, int | None, int | None, int]] = []
    transactions: list[tuple[str, int]] = []
    watermark: int = BEGINNING
    """the task's event time; left out before there is any"""
    times: list[int] = []
    idle: list[int] = []
    """the watermarks of its input channels, in their order; the idle ones among them, or of a source's splits"""
    maxima: dict[int, int] = {}
    """split: the greatest event time read of it"""
    timers: list[tuple[int, int | None, int]] = []
    """(event time, key, start of the window) of each timer that is pending"""
    alarms: list[tuple[int, int | None, int]] = []
    """(processing time in µs, key, start) of each timer in processing time that is pending"""
    held: list[tuple[int | None, str, str]] = []
    """(key, name, JSON) of what a user's function holds"""
    listed: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    """(name, JSON) of an operator's items that belong to no key: of lists, and of unions"""
    broadcast: list[tuple[str, str]] = []
    """(name, JSON) of the items of broadcast state, of which each subtask has all"""

    queued: dict[int, list[Passing]] = {}
    unsent: dict[int, list[Passing]] = {}
    """in flight, by channel number of the task: `queued` is what lay in an input channel, `unsent` what was still to be
    sent into an output channel"""
    replays: dict[int, list[int]] = {}
    """of the first elements `queued` in a channel: how many restores have put each back before; those with more
    restores come first when the job is rescaled"""

    spilled: dict[int, list[tuple[str, int, int]]] = {}
    """where the store has `queued` in logs of persistent channels: (log, first number, the number behind the last)"""

    @property
    def holds_something(self) -> bool:
        kept = self.entries or self.held or self.transactions or self.listed or self.shared or self.broadcast
        return bool(kept or self.queued or self.unsent) or any(self.positions.values())


class Enumerated(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a completed checkpoint says of an enumerated input: the next offset of each split that
    nobody had, and the task that had each of the others."""

    unassigned: dict[int, int] = {}
    assigned: dict[int, str] = {}
