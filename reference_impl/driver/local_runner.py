"""Drives a task with local recovery (UNA-4): no output leaves before the determinants on which it depends are durable,
and a locally recovered attempt takes its input again in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..core.decisions.local_recovery import Determinant, End, Resumption
from ..core.extensions.local_recovery import ENDS, LogPlace, element_of, is_numbered
from ..core.protocol.task import Task
from ..core.vocabulary.causes import DeterminantsUnusable, ElementGone, PlaceForgotten
from ..core.vocabulary.effects import (
    AppendToLog,
    Effect,
    Open,
    Persist,
    Refill,
    Report,
    Restored,
    Ship,
    SnapshotTaken,
    Sync,
    TrimLog,
)
from ..core.vocabulary.events import Came, Event, LogsFound, Received
from ..core.vocabulary.ids import CheckpointId
from ..core.vocabulary.messages import Barrier, Complete, Element, Record, Running
from ..trace import TaskLog
from .durable.shipping import ship
from .numbered import DurableDeterminants, NumberedIn, NumberedOut
from .ports import Outbound
from .runner import TaskRunner, TaskWorld


class LocalRunner(TaskRunner):
    """One attempt of a task between persistent channels.

    `returns`: the attempt recovers locally.  It takes its input again in the order of its determinants; a source
    reads again.  It reports that it runs when it has sent again all that was sent before.
    """

    __slots__ = ("_behind", "_ended", "_flushing", "_held", "_inlets", "_needs", "_order", "_outlets", "_recovery",
                 "_replay", "_running", "returns")  # fmt: skip

    def __init__(
        self,
        world: TaskWorld,
        task: Task,
        log: TaskLog,
        inlets: Sequence[NumberedIn],
        outlets: Sequence[NumberedOut],
        order: DurableDeterminants,
        *,
        returns: bool,
    ) -> None:
        super().__init__(world, task, log, inlets, outlets)
        self._inlets, self._outlets = tuple(inlets), tuple(outlets)
        self._recovery = task.parts.local_recovery
        self._order = order
        self.returns = returns
        self._behind = returns
        """it has not yet repeated all work of the lost attempt"""
        self._replay: deque[Determinant] = deque()
        self._ended: list[tuple[int, End]] = []
        self._needs: deque[int] = deque()
        """for each element of the outbox: how many determinants were logged before it"""
        self._held: deque[tuple[int, Persist | Ship]] = deque()
        """snapshots, each with how many determinants must be durable before it may be written"""
        self._flushing = False
        self._running: Report | None = None
        if not returns:
            order.mark(None, self._place())

    def _place(self, still_to_be_sent: Sequence[int] = ()) -> LogPlace:
        next_numbers = still_to_be_sent or tuple(outlet.next_number for outlet in self._outlets)
        return LogPlace(
            determinants=self._order.end,
            taken=tuple(inlet.next_number for inlet in self._inlets),
            sent=tuple(next_numbers),
            ended=tuple(self._ended),
        )

    def detach(self) -> None:
        """Another attempt has replaced this one: nothing that it still does has an effect."""
        for inlet in self._inlets:
            inlet.close()
        for outlet in self._outlets:
            outlet.close()
        self._order = DurableDeterminants()
        self.world.spills.forget(self)
        in_vain: dict[type, Callable[[Any, Any], None]] = dict.fromkeys(
            (AppendToLog, Sync, TrimLog, Restored, Refill, Open), _in_vain
        )
        self._carry_out = {**self._carry_out, **in_vain}

    # -- determinants ----------------------------------------------------------------

    def _take_down(self, determinant: Determinant) -> None:
        self._order.take_down(determinant)
        self._flush()

    def _flush(self) -> None:
        if not self._flushing and self._order.durable < self._order.end:
            self._flushing = True
            try:
                self._order.write()
            except OSError as error:
                self.fail(DeterminantsUnusable("written", str(error)))
                return
            self._loop.after(self.world.settings.determinant_us, self._flushed, self._order, self._order.end)

    def _flushed(self, order: DurableDeterminants, end: int) -> None:
        self._flushing = False
        if not self.alive or order is not self._order:
            return
        try:
            if not order.settle(end):
                return
        except OSError as error:
            self.fail(DeterminantsUnusable("flushed", str(error)))
            return
        while self._held and self._held[0][0] <= order.durable and self.alive:
            self._write(self._held.popleft()[1])
        self.drain()
        self._flush()

    def _write_when_durable(self, snapshot: Persist | Ship) -> None:
        """Have a snapshot written when the order of all input that it covers is durable."""
        self.frozen = snapshot.synchronous
        if self._order.end <= self._order.durable:
            self._write(snapshot)
        else:
            self._held.append((self._order.end, snapshot))
            self._flush()

    def _write(self, snapshot: Persist | Ship) -> None:
        if isinstance(snapshot, Persist):
            self.world.stores.persist(self, snapshot)
        else:
            ship(self, snapshot)

    def _take_record(self, number: int, channel: NumberedIn, record: Record) -> None:  # type: ignore[override]
        self._take_down((number, channel.took()))
        if channel.sender is not None:
            channel.sender.drain()
        super()._take_record(number, channel, record)

    def _take_other(self, number: int, channel: NumberedIn, element: Element) -> None:  # type: ignore[override]
        if is_numbered(element):
            self._take_down((number, channel.took()))
            if channel.sender is not None:
                channel.sender.drain()
        elif end := ENDS.get(type(element)):
            self._ended.append((number, end))
            self._take_down((number, end))
        super()._take_other(number, channel, element)

    # -- output ------------------------------------------------------------------------

    def _send(self, number: int, element: Element) -> None:
        outlet = self._outlets[number]
        if type(element) is Record:
            self.sent[number] += 1
        elif not self._announce(element):
            return
        self._outbox.append((outlet, element))
        self._needs.append(self._order.end)
        self._send_durable()
        if type(element) is Barrier:
            self._reaches("barrier-sent", "after")

    def _send_durable(self) -> None:
        durable, may_leave = self._order.durable, self._recovery.may_leave
        while self._outbox and may_leave(self._needs[0], durable) and self._has_room(*self._outbox[0]):
            outlet, element = self._outbox.popleft()
            self._needs.popleft()
            outlet.push(element)
        if not self._outbox:
            self._schedule_when_free()

    def _has_room(self, outlet: Outbound, element: Element) -> bool:
        """In a replay elements without a number need no room in a channel: the receiver may have blocked it for a
        checkpoint that was aborted, and only the cancel barrier unblocks it."""
        return not outlet.is_full or (self._behind and not is_numbered(element))

    def drain(self) -> None:
        if self._outbox and self.alive and not self.paused:
            self._send_durable()

    def _taken(self, effect: SnapshotTaken) -> None:
        super()._taken(effect)
        if self.alive:
            self._order.mark(effect.checkpoint, self._place(self._next_numbers()))

    def _next_numbers(self) -> tuple[int, ...]:
        """By output: the number of the next element, after those that wait to be sent."""
        waiting = dict.fromkeys((outlet.name for outlet in self._outlets), 0)
        for outlet, element in self._outbox:
            waiting[outlet.name] += is_numbered(element)
        return tuple(outlet.next_number + waiting[outlet.name] for outlet in self._outlets)

    def deliver(self, event: Event, owed_to: int | None = None) -> None:
        super().deliver(event, owed_to)
        if isinstance(event, Received) and isinstance(event.message, Complete) and event.message.oldest is not None:
            place = self._order.trim(event.message.oldest)
            for inlet, taken in zip(self._inlets, place.taken if place is not None else (), strict=False):
                inlet.trim(taken)

    # -- local recovery ------------------------------------------------------------------

    def _place_at(self, checkpoint: CheckpointId | None) -> LogPlace | None:
        """The place of the task's snapshot, or of its beginning; None if it is unknown, and the task fails, since it
        cannot repeat its work."""
        place = self._order.place(checkpoint)
        if place is None:
            self.fail(PlaceForgotten(checkpoint))
        return place

    def _restored(self, effect: Restored) -> None:
        unsent = effect.state.unsent
        still = [len(unsent.get(number, ())) for number in range(len(self._outlets))]
        if not self.returns:
            self._order.mark(effect.checkpoint, self._place(still))
        else:
            place = self._place_at(effect.checkpoint)
            if place is None:
                return
            for outlet, next_numbers, waits in zip(self._outlets, place.sent, still, strict=True):
                outlet.begin_at(next_numbers - waits)
        super()._restored(effect)

    def _refill(self, effect: Refill) -> None:
        """In a local recovery the in-flight data of its snapshot is in the channel's log, except the elements with
        which the channel began."""
        if not self.returns:
            super()._refill(effect)
            return
        place = self._place_at(self.task.starts_from)
        if place is None:
            return
        for number, element in enumerate(effect.elements, place.taken[effect.channel]):
            self._inlets[effect.channel].take_in(number, element)

    def _open(self, effect: Open) -> None:
        if self.task.finished:  # it had finished before its snapshot: there is nothing to repeat
            self._behind = False
        elif self.returns:
            self._begin_again()
        super()._open(effect)

    def _begin_again(self) -> None:
        place = self._place_at(self.task.starts_from)
        if place is None:
            return
        if self.task.starts_from is None:
            for outlet, next_numbers in zip(self._outlets, place.sent, strict=True):
                outlet.begin_at(next_numbers)
        resumed = [self._recovery.goes_on(taken) for taken in place.taken]
        for inlet, one in zip(self._inlets, resumed, strict=True):
            inlet.begin_at(one.takes)
        replayed = self._recovery.replayed(self._order.determinants, self._order.before(place))
        self._replay.extend((*place.ended, *replayed))
        for number, element in self._replay:
            if isinstance(element, End):
                self._inlets[number].has_ended(element)
        if self.task.keeps_logs:
            self.feed(self._logs(resumed))
        if not self._replay:
            self._catch_up()

    def _logs(self, resumed: Sequence[Resumption]) -> LogsFound:
        """How far its logs are durable: those elements need not be written again."""
        logs = [
            (one.appends, max(inlet.next_number, inlet.logged))
            for inlet, one in zip(self._inlets, resumed, strict=True)
        ]
        return LogsFound(tuple(logs), self._order.taken_at(self.task.starts_from))

    def _work(self, now: int) -> None:
        if not self._behind:
            super()._work(now)
        elif self.polling and any(outlet.is_behind for outlet in self._outlets):
            self._read_again(now)
        elif not self._replay:
            self._catch_up()
        else:
            number, taken = self._replay[0]
            if isinstance(taken, End) or self._is_here(self._inlets[number]):
                self._replay.popleft()
                self._take_again(now, number, taken)

    def _is_here(self, inlet: NumberedIn) -> bool:
        """Whether the element to be taken next has come; if its sender is lost too, the sender must send it again."""
        if inlet.next_number in inlet.received:
            return True
        if not inlet.is_expected(inlet.next_number):
            self.fail(ElementGone(inlet.name, inlet.next_number))
        return False

    def _take_again(self, now: int, number: int, taken: int | End) -> None:
        inlet = self._inlets[number]
        self._busy_until = now + self._apply_cost
        if isinstance(taken, End):
            self._ended.append((number, taken))
            super()._take_other(number, inlet, element_of(taken))
        else:
            element = inlet.received.pop(inlet.took())
            if self.task.keeps_logs:
                self.feed(Came(number, element))
            if type(element) is Record:
                super()._take_record(number, inlet, element)
            else:
                super()._take_other(number, inlet, element)
        if self.alive and not self._replay:
            self._catch_up()
        self.schedule(self._busy_until)

    def _read_again(self, now: int) -> None:
        self._next_poll = now
        super()._poll(now)
        self._busy_until = now + self._apply_cost
        self.schedule(self._busy_until)
        if self.alive and (not self.polling or not any(outlet.is_behind for outlet in self._outlets)):
            self._catch_up()

    def _catch_up(self) -> None:
        """The replay is over when all output is sent again: a barrier must not overtake elements that receivers have
        already.  A source goes on until it has sent everything that had been sent."""
        if self._outbox or not all(outlet.is_known for outlet in self._outlets):
            return
        if self.polling and any(outlet.is_behind for outlet in self._outlets):
            return
        self._behind = False
        now = self._loop.now
        for number, inlet in enumerate(self._inlets):
            inlet.open([end for channel, end in self._ended if channel == number])
            if inlet.sender is not None:
                inlet.sender.drain()
        self.schedule(max(now, self._busy_until))
        if self._running is not None:
            super()._report(self._running)

    def learned(self) -> None:
        """An output has received how many elements were sent into it before."""
        self.drain()
        if self.alive and self.opened and self._behind and not self._replay:
            self._catch_up()

    def _report(self, effect: Report) -> None:
        if self._behind and isinstance(effect.message, Running):
            self._running = effect
        else:
            super()._report(effect)

    handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        **TaskRunner.handlers,
        Restored: _restored,
        Refill: _refill,
        Open: _open,
        SnapshotTaken: _taken,
        Persist: _write_when_durable,
        Ship: _write_when_durable,
        Report: _report,
    }


def _in_vain(runner: LocalRunner, effect: Effect) -> None:
    """A superseded attempt writes no logs and takes no inputs: only its successor does."""
