"""Logs of persistent channels as a driver writes and reads them: durable only once a flush is done.

A log in groups is flushed without a request, one flush after the other, each with all that
was appended before it began.  A file is closed by a request.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Protocol

import msgspec

from ... import observed as o
from ...core.decisions.persisting import referred_to
from ...core.extensions.in_flight_data.in_flight import pack, with_rows
from ...core.vocabulary.causes import FlushTorn, LogUnusable
from ...core.vocabulary.effects import AppendToLog, ClearLogs, Fetch, Sync, TrimLog
from ...core.vocabulary.errors import CorruptSnapshot, EngineError
from ...core.vocabulary.events import Event, Fetched, LoadFailed, Synced
from ...core.vocabulary.messages import Element
from ...core.vocabulary.state import Passing, Ref, TaskState
from ..arms import Arms
from ..ports import Attempt, Faults, Site, SpillStore


class SpillsWorld(Site, Faults, Protocol):
    """What writers and readers of logs need of their world."""


class Pen:
    """The elements that one attempt of a task has appended and that are not known to be durable."""

    def __init__(self) -> None:
        self.logs: dict[str, None] = {}
        self.unflushed: dict[str, None] = {}
        """logs with elements appended since the last flush began"""
        self.asked: list[int] = []
        """syncs that wait for a flush"""
        self.flushing = False


class Spills:
    """All logs that the tasks of a world write and read.

    A writer may stand still, fail or end while a flush of its elements is under way; a reader is only answered.
    """

    def __init__(self, world: SpillsWorld, store: SpillStore, arms: Arms, *, by_itself: bool) -> None:
        """`by_itself`: a log is flushed without a request."""
        self.world = world
        self.store = store
        self.arms = arms
        self._pens: dict[Attempt, Pen] = {}
        self._opened: dict[str, None] = {}
        self._by_itself = by_itself
        self._flush_us = world.settings.spill_flush_us

    # -- writing -----------------------------------------------------------------------

    def append(self, runner: Attempt, effect: AppendToLog) -> None:
        pen = self._pens.setdefault(runner, Pen())
        if effect.log not in pen.logs:
            pen.logs[effect.log] = None
            self._open(effect.log, runner)
        try:
            self.store.append(effect.log, effect.number, effect.element)
        except OSError as error:
            runner.fail(LogUnusable("made", str(error)))
            return
        pen.unflushed[effect.log] = None
        if self._by_itself:
            self._flush(runner, pen)

    def _open(self, log: str, runner: Attempt) -> None:
        """A locally recovered task goes on with the existing log."""
        if log not in self._opened:
            self._opened[log] = None
            self.world.observer.saw(o.LogOpened(log, runner.name, runner.attempt))

    def sync(self, runner: Attempt, effect: Sync) -> None:
        pen = self._pens.setdefault(runner, Pen())
        pen.asked.append(effect.serial)
        self._flush(runner, pen)

    def _flush(self, runner: Attempt, pen: Pen) -> None:
        if pen.flushing:
            return
        pen.flushing = True
        asked, pen.asked = pen.asked, []
        try:
            marks = [(log, self.store.begin(log)) for log in pen.unflushed]
        except OSError as error:
            runner.fail(LogUnusable("written", str(error)))
            return
        pen.unflushed = {}
        self.world.loop.after(self._flush_us, self._flushed, runner, (pen, marks, asked))

    def _flushed(self, runner: Attempt, under_way: tuple[Pen, list[tuple[str, int]], list[int]]) -> None:
        pen, marks, asked = under_way
        if not runner.alive or self._pens.get(runner) is not pen:
            return
        if runner.paused:  # a stopped process does not go on writing either
            self.world.loop.after(self._flush_us, self._flushed, runner, under_way)
            return
        if marks and (asked or pen.asked) and self._torn(runner, marks):
            return
        try:
            for log, mark in marks:
                self.store.finish(log, mark)
        except OSError as error:
            runner.fail(LogUnusable("flushed", str(error)))
            return
        pen.flushing = False
        for serial in asked:
            runner.deliver(Synced(serial))
        if runner.alive and (pen.asked or (self._by_itself and pen.unflushed)):
            self._flush(runner, pen)

    def _torn(self, runner: Attempt, marks: list[tuple[str, int]]) -> bool:
        """Whether a fault kills the writer in the middle of a flush for which a snapshot waits: that is part of the
        snapshot's write."""
        fault = self.arms.take("tear-write", runner.name)
        if fault is None:
            return False
        for log, mark in marks:
            self.store.tear(log, mark)
        self.world.fired(fault, f"half of what {runner.name} flushes is written", runner.attempt, o.TornWrite())
        self.world.kill(runner, FlushTorn(), fault)
        return True

    def forget(self, runner: Attempt) -> None:
        """A writer has ended or was replaced, and its unflushed elements are lost."""
        pen = self._pens.pop(runner, None)
        for log in pen.logs if pen is not None else ():
            self.store.lose(log)

    # -- reading -----------------------------------------------------------------------

    def fetch(self, deliver: Callable[[Event], None], effect: Fetch) -> None:
        self.world.loop.after(self.world.settings.snapshot_write_us // 2, self._fetched, deliver, effect.refs)

    def _fetched(self, deliver: Callable[[Event], None], refs: tuple[Ref, ...]) -> None:
        try:
            answer: Fetched | LoadFailed = Fetched(tuple(all_elements(self.store, ref) for ref in refs))
        except (OSError, EngineError) as error:
            answer = LoadFailed(str(error))
        deliver(answer)

    def resolved(self, stored: str) -> str:
        """The text of a state as a reader of the stores sees it now: with the durable ones of the rows to which it
        refers."""
        if '"spilled":' not in stored:
            return stored
        state = msgspec.json.decode(stored, type=TaskState)
        queued = {channel: self._rows(refs) for channel, refs in state.spilled.items()}
        return msgspec.json.encode(msgspec.structs.replace(state, queued=state.queued | queued)).decode()

    def with_rows(self, state: TaskState) -> TaskState:
        return with_rows(state, iter([all_elements(self.store, ref) for ref in referred_to([state])]))

    def _rows(self, refs: list[Ref]) -> list[Passing]:
        return [one for ref in refs for one in pack(element for _, element in self.store.read(ref))]

    # -- trimming and deleting ---------------------------------------------------------

    def trim(self, effect: TrimLog) -> None:
        deleted = self.store.trim(effect.log, effect.before)
        if deleted:
            self.world.observer.saw(o.LogTrimmed(effect.log, deleted))

    def clear(self, effect: ClearLogs) -> None:
        keep, living = dict.fromkeys(effect.keep), dict.fromkeys(effect.living)
        deleted = [log for log in self.store.names() if log not in keep and log.rpartition("/")[0] not in living]
        for log in deleted:
            self.store.delete(log)
        if deleted:
            self.world.observer.saw(o.LogsCleared(tuple(deleted)))


def all_elements(store: SpillStore, ref: Ref) -> tuple[Element, ...]:
    """All elements that a reference names; raises CorruptSnapshot if some are missing."""
    found = store.read(ref)
    numbers = (number for number, _ in found)
    if not all(number == wanted for number, wanted in zip_longest(numbers, range(ref.first, ref.end))):
        raise CorruptSnapshot(f"{ref.log} holds {len(found)} of the elements {ref.first} to {ref.end - 1}")
    return tuple(element for _, element in found)
