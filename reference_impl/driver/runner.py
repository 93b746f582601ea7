"""Drives one attempt of one task: feeds its machine, carries out its effects.

A task does one thing at a time.  Control messages come first, then its mailbox, then
output that waits to be sent, then input: the element that arrived first among the
channels that are not blocked.  While an output is full the task takes no input; that is
all there is to backpressure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from .. import observed as o
from ..core.job.split_log import place_of
from ..core.protocol.source import SourceTask
from ..core.protocol.task import Task
from ..core.vocabulary import effects as e
from ..core.vocabulary.causes import AnyCause, SplitTaken, raised
from ..core.vocabulary.effects import Effect, SavePosition, Send
from ..core.vocabulary.events import (
    Arrived,
    BarrierOvertook,
    Event,
    Mailed,
    OutputsOvertaken,
    PersistFailed,
    Poll,
    Ticked,
)
from ..core.vocabulary.formats import text
from ..core.vocabulary.ids import CheckpointId
from ..core.vocabulary.messages import Ack, Barrier, Element, EndOfData, EndOfPartition, Record, Running
from ..core.vocabulary.state import END_OF_TIME
from ..trace import TaskLog
from .asking import ask
from .durable.input_log import InputLog
from .durable.sessions import Sessions
from .durable.shipping import ship
from .durable.spills import Spills
from .durable.state_files import STATE_FILES
from .durable.stores import Stores
from .mailbox import Mailbox, WakeUp
from .ports import Faults, Inbound, Outbound, Reports, Site
from .queues import NEVER, first_to_arrive, most_urgent
from .timeline import show_taken
from .timers import MachineTimers

REPORTED_AT: dict[type, str] = {Ack: "ack-sent", Running: "task-running"}
"""By type of message to the coordinator, the protocol point at which it is sent; the others have none."""
ANNOUNCED = (Barrier, EndOfData, EndOfPartition)  # they reach a protocol point when they are sent
POLL = Poll()


class TaskWorld(Site, Faults, Protocol):
    """What the tasks of a world share."""

    stores: Stores
    sessions: Sessions
    spills: Spills

    @property
    def control(self) -> Reports: ...

    def task_failed(self, runner: TaskRunner, cause: AnyCause, fault: int | None) -> None:
        """A task's attempt has failed by itself."""


class TaskRunner:
    """One attempt of one task, alive until it is killed, cancelled or fails."""

    # CPython does not give objects with more than 30 attributes one layout per class; each step would cost 6 % more.
    __slots__ = ("_apply_cost", "_busy_until", "_carry_out", "_clocked", "_detailed", "_inbox", "_input_log",
                 "_late", "_loop", "_mailbox", "_next_poll", "_outbox", "_overtaken", "_owed_to", "_points",
                 "_read_interval", "_rings", "_timers", "_wake_at", "_watched", "alive", "applied", "attempt",
                 "blocked", "frozen", "inputs", "log", "name", "newest_mark", "opened",
                 "outputs", "paused", "polling", "received", "sent", "task", "world")  # fmt: skip

    def __init__(
        self,
        world: TaskWorld,
        task: Task,
        log: TaskLog,
        inputs: Sequence[Inbound],
        outputs: Sequence[Outbound],
    ) -> None:
        spec, settings, watched = task.spec, world.settings, world.points.watched
        self.world = world
        self.task = task
        self.name = spec.task
        self.attempt = spec.attempt
        self.log = log
        self.inputs = inputs
        self.outputs = outputs
        self.blocked = [False] * len(inputs)
        self.received = [0] * len(inputs)
        self.sent = [0] * len(outputs)
        self.alive = True
        self.paused = self.frozen = self.opened = False
        self.polling = isinstance(task, SourceTask)
        self.applied = 0
        self.newest_mark: tuple[CheckpointId, int] | None = None
        """the checkpoint of its last snapshot, if it has taken one, and how much work it had done by then"""
        self._owed_to: int | None = None
        """the fault to which it is owed if the attempt fails now"""
        self._loop = world.loop
        self._points = world.points
        self._detailed = world.detailed
        self._outbox: deque[tuple[Outbound, Element]] = deque()
        self._inbox: deque[tuple[Event, int | None]] = deque()
        self._mailbox = Mailbox(world.loop, settings.mailbox_us, self._schedule_when_free)
        self._rings = 0
        """how often a timer in processing time has woken it"""
        self._timers: MachineTimers | None = None
        self._wake_at = NEVER
        self._busy_until = 0
        self._next_poll = 0
        self._read_interval = settings.read_interval_us
        self._apply_cost = settings.apply_cost_us
        self._late = world.perturbations.of(f"step {self.name}")
        self._input_log = InputLog(inputs, world.loop, self._look_for_arrivals) if task.keeps_logs else None
        self._overtaken = spec.overtaken
        self._watched = "record-applied" in watched or "record-read" in watched
        self._carry_out = self.handlers
        self._clocked = task.clocked

    @property
    def done(self) -> int:
        """How many records it has read and applied, plus how often a timer woke it."""
        return self.applied + len(self.log.reads) + self._rings

    @property
    def has_work(self) -> bool:
        """It may go on working without another event."""
        waiting = self._outbox or self._mailbox.waiting or self._inbox or any(channel.queue for channel in self.inputs)
        return bool(waiting) or self.awaits_more

    @property
    def awaits_more(self) -> bool:
        """An event may still come by itself: input to read, splits, a timer."""
        return self.polling or self.task.awaits_splits or self.task.awaits_time

    # -- being scheduled -------------------------------------------------------------

    def schedule(self, time: int) -> None:
        """Look for work at `time`, unless an earlier look is scheduled."""
        if time < self._wake_at and self.alive:
            self._wake_at = time
            self._loop.at(time, self._wake, time)

    def _schedule_when_free(self) -> None:
        """Look for work as soon as the work at hand is done."""
        now = self._loop.now
        self.schedule(now if now > self._busy_until else self._busy_until)

    def _wake(self, time: int, _: None) -> None:
        if time != self._wake_at:
            return
        self._wake_at = NEVER
        if not self.alive or self.paused or self.frozen:
            return
        now = self._loop.now
        if self._input_log is not None:
            self._report_arrivals(self._input_log)
        if now < self._busy_until:
            self.schedule(self._busy_until)
            return
        late = self._late.next() if self._late is not None else 0
        if late:
            self._busy_until = now + late
            self.schedule(self._busy_until)
            return
        if self._overtaken and self.opened:
            for channel in self.inputs:
                if channel.timed_barriers:
                    if self._take_overtaking(now):
                        return
                    break
        if self._mailbox.waiting:
            self._busy_until = now + self._apply_cost
            self._open_mail(self._mailbox.waiting.popleft())
            self.schedule(self._busy_until)
        elif self.opened and not self._outbox:
            self._work(now)

    def _work(self, now: int) -> None:
        """Read a record, or take the element that arrived first; look again when it is processed."""
        if self.polling:
            self._poll(now)
            return
        if (first := first_to_arrive(self.inputs, self.blocked)) is None:
            return
        arrival, chosen = first
        if arrival > now:
            self.schedule(arrival)
            return
        channel = self.inputs[chosen]
        queue = channel.queue
        element = queue[0][1]
        if self._watched and not self._may_take(channel, element):
            return
        queue.popleft()
        channel.taken += 1
        sender = channel.sender
        if sender is not None:
            sender.drain()
        self._busy_until = now + self._apply_cost
        if type(element) is Record:
            self._take_record(chosen, channel, element)
        else:
            self._take_other(chosen, channel, element)
        if self._wake_at > self._busy_until:
            for channel in self.inputs:
                if channel.queue:
                    self.schedule(self._busy_until)
                    return

    def deliver(self, event: Event, owed_to: int | None = None) -> None:
        """Feed a control message, a timer or an answer: at once, unless the task stands still.  `owed_to`: see
        `ports.Actor`."""
        if not self.alive:
            return
        if self.paused or self.frozen:
            self._inbox.append((event, owed_to))
        elif owed_to is None:
            self.feed(event)
        else:
            self._feed_owed(event, owed_to)

    def _feed_owed(self, event: Event, owed_to: int | None) -> None:
        """If the attempt fails of this event, its failure is owed to a fault."""
        self._owed_to = owed_to
        self.feed(event)
        self._owed_to = None

    def feed(self, event: Event) -> None:
        """The machine takes an event; an exception in it is a failure of the engine, and shows like any other."""
        try:
            effects = self.task.step(event)
        except Exception as error:
            self.fail(raised(error))
            return
        if effects:
            self.perform(effects)

    def fail(self, cause: AnyCause) -> None:
        self.world.task_failed(self, cause, self._owed_to)

    def owe(self, fault: int) -> None:
        """A fault makes its user function raise, of which the attempt fails."""
        self._owed_to = fault

    def _reaches(self, point: str, side: str) -> bool:
        """A protocol point is reached; returns whether the task survives it."""
        return point not in self._points.watched or self._points.reach(point, self.name, side, self)

    # -- input -----------------------------------------------------------------------

    def _poll(self, now: int) -> None:
        if now < self._next_poll:
            self.schedule(self._next_poll)
            return
        self._next_poll = now + self._read_interval
        if self._watched and not self._reaches("record-read", "before"):
            return
        try:
            effects = self.task.step(POLL)
        except Exception as error:
            self.fail(raised(error))
            effects = []
        for effect in effects:
            sent = effect.then[0] if type(effect) is SavePosition and effect.then else effect
            if type(sent) is Send and type(sent.element) is Record:
                self._note_read(sent.element)
                break
        self.perform(effects)
        if self._watched:
            self._reaches("record-read", "after")
        self.schedule(self._next_poll)

    def _note_read(self, record: Record) -> None:
        self.log.reads.append(place_of(record.origin))
        if self._detailed:
            self.world.observer.saw(o.Timed("record-read", self.name, self.attempt, origin=record.origin))

    def _take_record(self, number: int, channel: Inbound, record: Record) -> None:
        if self._clocked and not self._tick():
            return
        self.received[number] += 1
        self.applied += 1
        self.log.applies.append((number, record.origin))
        if self._detailed:
            show_taken(self.world.observer, self, "record-applied", channel, record, channel.last_position)
        try:  # as `feed`, whose call each record would cost
            effects = self.task.step(Arrived(number, record))
        except Exception as error:
            self.fail(raised(error))
        else:
            if effects:
                self.perform(effects)
        if self._watched:
            self._reaches("record-applied", "after")

    def _may_take(self, channel: Inbound, element: Element) -> bool:
        """Whether the task, and the channel's content, survive the faults that wait for this point."""
        return type(element) is not Record or (self._reaches("record-applied", "before") and bool(channel.queue))

    def _take_other(self, number: int, channel: Inbound, element: Element) -> None:
        if type(element) is Barrier:
            channel.timed_barriers -= element.alignment_timeout_us is not None
            if self._detailed:
                show_taken(self.world.observer, self, "barrier-received", channel, element, channel.last_position)
            if self._reaches("barrier-received", "before"):
                self.feed(Arrived(number, element))
                self._reaches("barrier-received", "after")
            return
        if type(element) is EndOfData:
            self.world.observer.saw(o.InputEnded(self.log.run))
        if self._detailed:
            show_taken(self.world.observer, self, "control-received", channel, element, channel.last_position)
        self.feed(Arrived(number, element))

    def _report_arrivals(self, log: InputLog) -> None:
        """Report the elements that have arrived in persistent channels."""
        if self.opened:
            for came in log.arrived():
                self.feed(came)
                if not self.alive:
                    return

    def _look_for_arrivals(self) -> None:
        if self._input_log is not None and self.alive and not self.paused and not self.frozen:
            self._report_arrivals(self._input_log)

    def _take_overtaking(self, now: int) -> bool:
        """Take a barrier whose alignment timeout is over, also when an output is full (FLIP-76).

        That takes no time.  Otherwise barriers that come faster than records are processed would leave no time for
        records.
        """
        if (urgent := most_urgent(self.inputs)) is None:
            return False
        due, chosen, place = urgent
        if due > now:
            self.schedule(due)
            return False
        channel = self.inputs[chosen]
        barrier = channel.queue[place][1]
        assert isinstance(barrier, Barrier)
        if not self._reaches("barrier-received", "before") or not channel.queue:
            return True
        passed = tuple(channel.queue[number][1] for number in range(place))
        if self._detailed:
            show_taken(self.world.observer, self, "barrier-received", channel, barrier, channel.position(place))
        channel.take_overtaking(place)
        if self._input_log is not None:
            self._input_log.overtook(chosen)
        self.feed(BarrierOvertook(chosen, barrier, passed))
        self._reaches("barrier-received", "after")
        self.schedule(now)
        return True

    # -- its mailbox, and ticks of processing time ---------------------------------------

    def _open_mail(self, mail: Mailed | WakeUp) -> None:
        """Once all its input has ended, the task gets no tick any more."""
        if not isinstance(mail, WakeUp):
            self.feed(mail)
        elif not self.task.input_ended:
            self._rings += 1
            self._tick()

    def _tick(self) -> bool:
        """Feed a tick: before each record, and at the times for which the task asked; False if it has failed."""
        now = self._loop.now
        self.world.observer.saw(o.Ticked(self.log.run, now))
        self.feed(Ticked(now))
        return self.alive

    # -- effects ---------------------------------------------------------------------

    def perform(self, effects: list[Effect] | tuple[Effect, ...]) -> None:
        """Carry out effects in order, for as long as the task lives."""
        for effect in effects:
            if not self.alive:
                return
            kind = type(effect)
            if kind is Send:
                self._send(effect.channel, effect.element)  # type: ignore[attr-defined]
            else:
                self._carry_out[kind](self, effect)

    def _send(self, number: int, element: Element) -> None:
        channel = self.outputs[number]
        kind = type(element)
        if kind is Record:
            self.sent[number] += 1
        elif kind in ANNOUNCED and not self._announce(element):
            return
        if self._outbox or channel.is_full:
            self._outbox.append((channel, element))
        else:
            channel.push(element)
        if kind is Barrier and "barrier-sent" in self._points.watched:
            self._reaches("barrier-sent", "after")

    def _announce(self, element: Element) -> bool:
        """Reach the protocol point of an element about to be sent; False if the task dies there."""
        kind = type(element)
        if kind is Barrier:
            return "barrier-sent" not in self._points.watched or self._reaches("barrier-sent", "before")
        if kind is EndOfData:
            if not self._reaches("end-of-data-sent", "before"):
                return False
            self.world.observer.saw(o.InputEnded(self.log.run))
            return self._reaches("end-of-data-sent", "after")
        if kind is EndOfPartition:
            return self._reaches("end-of-partition-sent", "before") and self._reaches("end-of-partition-sent", "after")
        return True

    def drain(self) -> None:
        """Some output has room again: send the waiting elements, in order."""
        outbox = self._outbox
        if not outbox or not self.alive or self.paused:
            return
        while outbox and not outbox[0][0].is_full:
            channel, element = outbox.popleft()
            channel.push(element)
        if not outbox:
            self._schedule_when_free()

    def _overtake(self, effect: e.Overtake) -> None:
        """Put barriers into the outputs in front of the waiting elements, and report these to the machine."""
        passed: dict[int, tuple[Element, ...]] = {}
        for number in effect.channels:
            if not self._announce(effect.barrier):
                return
            channel = self.outputs[number]
            passed[number] = tuple(element for into, element in self._outbox if into is channel)
            channel.push(effect.barrier)
            if not self._reaches("barrier-sent", "after"):
                return
        self.feed(OutputsOvertaken(effect.barrier.checkpoint, passed))

    def _open(self, effect: e.Open) -> None:
        self.opened = True
        self.schedule(self._loop.now)

    def _rest(self, effect: e.Rest) -> None:
        self.polling = False

    def _poll_again(self, effect: e.PollAgain) -> None:
        self.polling = True
        self._schedule_when_free()

    def _block(self, effect: e.Block) -> None:
        self.blocked[effect.channel] = True

    def _unblock(self, effect: e.Unblock) -> None:
        self.blocked[effect.channel] = False
        self._schedule_when_free()

    def _refill(self, effect: e.Refill) -> None:
        channel, capture = self.inputs[effect.channel], self.task.parts.capture
        ask(self, lambda: channel.refill(effect.elements, capture.handed_over, effect.replays))

    def _set_timer(self, effect: e.SetTimer) -> None:
        if self._timers is None:
            self._timers = MachineTimers(self._loop, self.deliver)
        self._timers.set(effect)

    def _taken(self, effect: e.SnapshotTaken) -> None:
        if self._reaches("snapshot-taken", "before"):
            mark = o.Marked(self.log.run, effect.checkpoint, tuple(self.received), tuple(self.sent))
            self.world.observer.saw(mark)
            self.newest_mark = (effect.checkpoint, self.done)
            self._reaches("snapshot-taken", "after")

    def _restored(self, effect: e.Restored) -> None:
        if self._reaches("state-loaded", "before"):
            self.world.observer.saw(o.StateRestored(self.log.run, effect.checkpoint, text(effect.state)))
            self._reaches("state-loaded", "after")

    def _report(self, effect: e.Report) -> None:
        point = REPORTED_AT.get(type(effect.message))
        if point is None or point not in self._points.watched:
            self.world.control.to_coordinator(self.name, effect.message)
        elif self._reaches(point, "before"):
            self.world.control.to_coordinator(self.name, effect.message)
            self._reaches(point, "after")

    def _persist(self, effect: e.Persist) -> None:
        self.frozen = effect.synchronous
        self.world.stores.persist(self, effect)

    def _ship(self, effect: e.Ship) -> None:
        self.frozen = effect.synchronous
        ship(self, effect)

    def written(self, snapshot: e.Persist, failed: PersistFailed | None) -> None:
        if snapshot.synchronous:
            self.thaw()
        if failed is None:
            self.perform(snapshot.then)
        else:
            self.deliver(failed)

    def _save_position(self, effect: SavePosition) -> None:
        if self.world.stores.save_position(effect, self.attempt):
            self.perform(effect.then)
        else:  # a newer attempt reads the split: the record that was read last does not count
            self.log.reads.pop()
            self.fail(SplitTaken())

    handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        e.Block: _block,
        e.Unblock: _unblock,
        e.Overtake: _overtake,
        e.Refill: _refill,
        e.Open: _open,
        e.Rest: _rest,
        e.PollAgain: _poll_again,
        e.Mail: lambda self, effect: self._mailbox.post(effect),
        e.WakeAt: lambda self, effect: self._mailbox.wake_at(effect),
        e.SetTimer: _set_timer,
        e.SnapshotTaken: _taken,
        e.Restored: _restored,
        e.Report: _report,
        e.Persist: _persist,
        e.Ship: _ship,
        **STATE_FILES,
        e.LoadPositions: lambda self, effect: self.world.stores.load_positions(self, effect.splits),
        e.AppendToLog: lambda self, effect: self.world.spills.append(self, effect),
        e.Sync: lambda self, effect: self.world.spills.sync(self, effect),
        e.TrimLog: lambda self, effect: self.world.spills.trim(effect),
        e.Fetch: lambda self, effect: self.world.spills.fetch(self.deliver, effect),
        SavePosition: _save_position,
        e.Trim: lambda self, effect: self.world.stores.trim(effect),
        e.Fail: lambda self, effect: self.fail(effect.cause),
        e.Advanced: lambda self, effect: self.world.observer.saw(o.TimeAdvanced(self.log.run, effect.time)),
        e.TimeEnded: lambda self, effect: self.world.observer.saw(o.Ticked(self.log.run, END_OF_TIME)),
        e.Load: lambda self, effect: self.world.stores.load(self, effect.handle),
        e.Transact: lambda self, effect: self.world.sessions.send(self, effect.number, effect.request, self.applied),
    }
    """The effects, except `Send`."""

    # -- standing still and dying ------------------------------------------------------

    def thaw(self) -> None:
        """Its synchronous snapshot is written: take one element, then the events that waited.  Otherwise snapshots
        that come faster than they are written would leave no time for records."""
        self.frozen = False
        now = self._loop.now
        if self._input_log is not None:
            self._report_arrivals(self._input_log)
        is_free = not self._outbox and not self._mailbox.waiting and now >= self._busy_until
        if self.opened and not self.paused and is_free:
            self._work(now)
        self._go_on()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._go_on()

    def _go_on(self) -> None:
        while self._inbox and self.alive and not self.paused and not self.frozen:
            self._feed_owed(*self._inbox.popleft())
        self.drain()
        self._schedule_when_free()

    def let_go(self) -> None:
        """Drop what refers back to it; it is done with."""
        self.inputs = self.outputs = ()
        self._input_log = self._timers = None
        self._outbox.clear()
        self.task.let_go()
        del self._mailbox, self.task

    def end_in_order(self) -> None:
        self.end(o.RunEnd.FINISHED if self.task.finished else o.RunEnd.CANCELLED)

    def end(self, how: o.RunEnd) -> None:
        """The attempt has ended, and its unwritten snapshots are lost."""
        if self.alive:
            self.alive = False
            self.world.observer.saw(o.RunEnded(self.log.run, how))
            self.world.stores.forget(self, orderly=how.is_orderly)
            self.world.spills.forget(self)
