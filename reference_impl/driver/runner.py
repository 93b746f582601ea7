"""Drives one attempt of one task: feeds its machine, carries out its effects.

A task does one thing at a time.  Control messages come first, then its mailbox, then
output that waits to be sent, then input: the element that arrived first among the
channels that are not blocked.  While an output is full the task takes no input; that is
all there is to backpressure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import observed as o
from ..core.operators.watermarks import END_OF_TIME
from ..core.protocol.source import SourceTask
from ..core.protocol.task import NO_CHECKPOINT, Task
from ..core.vocabulary.causes import raised
from ..core.vocabulary.effects import (
    Advanced,
    Block,
    Effect,
    Fail,
    Load,
    LoadPositions,
    Mail,
    Open,
    Overtake,
    Persist,
    PollAgain,
    Refill,
    Report,
    Rest,
    Restored,
    SavePosition,
    Send,
    SetTimer,
    Ship,
    Taken,
    TimeEnded,
    Transact,
    Trim,
    Unblock,
    WakeAt,
)
from ..core.vocabulary.events import Arrived, Event, Mailed, Poll
from ..core.vocabulary.messages import Barrier, Element, EndOfData, Record
from ..trace import TaskLog
from .asking import ask, put_back
from .input_log import InputLog
from .overtaking import Overtaking
from .queues import NEVER, first_to_arrive
from .timeline import note_read, show_taken
from .timer_queue import TimerQueue
from .timers import Timers
from .words import Words

if TYPE_CHECKING:
    from .ports import Inbound, Outbound, World


class TaskRunner:
    """One attempt of one task, alive until it is killed, cancelled or fails."""

    # CPython does not give objects with more than 30 attributes one layout per class; each step would cost 6 % more.
    __slots__ = (
        "_apply_cost",
        "_busy_until",
        "_carry_out",
        "_inbox",
        "_input_log",
        "_late",
        "_mail",
        "_next_poll",
        "_outbox",
        "_overtaken",
        "_overtaking",
        "_read_interval",
        "_timer_queue",
        "_wake_at",
        "_watched",
        "alive",
        "applied",
        "attempt",
        "blame",
        "blocked",
        "frozen",
        "how",
        "inputs",
        "log",
        "name",
        "newest_mark",
        "opened",
        "outputs",
        "paused",
        "polling",
        "received",
        "sent",
        "task",
        "words",
        "world",
    )  # fmt: skip

    def __init__(
        self,
        world: World,
        task: Task,
        log: TaskLog,
        inputs: Sequence[Inbound],
        outputs: Sequence[Outbound],
    ) -> None:
        self.world = world
        self.task = task
        self.name = task.spec.task
        self.attempt = task.spec.attempt
        self.log = log
        self.inputs = inputs
        self.outputs = outputs
        self.blocked = [False] * len(inputs)
        self.received = [0] * len(inputs)
        self.sent = [0] * len(outputs)
        self.alive = True
        self.paused = False
        self.frozen = False
        self.opened = False
        self.polling = isinstance(task, SourceTask)
        self.applied = 0
        self._timer_queue = TimerQueue(self)
        self.how = "alive"
        self.newest_mark = (NO_CHECKPOINT, 0)
        """the checkpoint of its last snapshot, and how much work it had done by then"""
        self.blame: int | None = None
        """the fault that explains its next failure"""
        self._outbox: deque[tuple[Outbound, Element]] = deque()
        self._inbox: deque[Event] = deque()
        self._mail: deque[Mailed] = deque()
        self._wake_at = NEVER
        self._busy_until = 0
        self._next_poll = 0
        self._read_interval = world.settings.read_interval_us
        self._apply_cost = world.settings.apply_cost_us
        self._late = world.decisions.of(f"step {self.name}")
        self._input_log = input_log = InputLog(self) if task.keeps_logs else None
        self._overtaking = Overtaking(self, self._outbox, input_log)
        self._overtaken = task.spec.overtaken
        self._watched = world.watches("record-applied") or world.watches("record-read")
        self.words = words = Words(self)
        self._carry_out: dict[type, Callable[[Any], None]] = {
            Block: self._block,
            Unblock: self._unblock,
            Overtake: self._overtaking.put,
            Refill: lambda effect: ask(self, partial(put_back, inputs[effect.channel], effect)),
            Open: self._open,
            Rest: self._rest,
            PollAgain: self._poll_again,
            Mail: self._timer_queue.post,
            Restored: words.restored,
            SavePosition: lambda effect: world.stores.save_position(self, effect),
            Trim: lambda effect: world.stores.jobs.trim(effect.split, effect.offset),
            SetTimer: Timers(world.loop, self.deliver).set,
            Report: words.report,
            Fail: lambda effect: world.task_failed(self, effect.cause, None),
            Taken: self._taken,
            Advanced: lambda effect: world.observer.saw(o.TimeAdvanced(log.run, effect.time)),
            TimeEnded: lambda effect: world.observer.saw(o.Ticked(log.run, END_OF_TIME)),
            WakeAt: self._timer_queue.set,
            Persist: self._persist,
            Ship: self._ship,
            Load: lambda effect: world.stores.load(self, effect.handle),
            LoadPositions: lambda effect: world.stores.load_positions(self),
            **world.spills.of(self),
            Transact: lambda effect: world.sessions.send(self, effect.number, effect.request),
        }

    @property
    def done(self) -> int:
        """How many records it has read and applied, plus how often a timer woke it."""
        return self.applied + len(self.log.reads) + self._timer_queue.fired

    @property
    def has_work(self) -> bool:
        """It may go on working without another event."""
        waiting = self._outbox or self._mail or self._inbox or any(channel.queue for channel in self.inputs)
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
            self.world.loop.at(time, self._wake, time)

    def _wake(self, time: int, _: None) -> None:
        if time != self._wake_at:
            return
        self._wake_at = NEVER
        if not self.alive or self.paused or self.frozen:
            return
        now = self.world.loop.now
        if self._input_log is not None:
            self._input_log.report_arrivals(now)
        if now < self._busy_until:
            self.schedule(self._busy_until)
            return
        if self._late is not None:
            late = self._late.next()
            if late:
                self._busy_until = now + late
                self.schedule(self._busy_until)
                return
        if self._overtaken and self.opened and self._overtaking.take(now):
            return
        if self._mail:
            self._busy_until = now + self._apply_cost
            self._timer_queue.open(self._mail.popleft())
            self.schedule(self._busy_until)
        elif self.opened and not self._outbox:
            self._work(now)

    def _work(self, now: int) -> None:
        if self.polling:
            self._poll(now)
        else:
            self._take(now)

    def deliver(self, event: Event) -> None:
        """Feed a control message, a timer or an answer: at once, unless the task stands still."""
        if not self.alive:
            return
        if self.paused or self.frozen:
            self._inbox.append(event)
        else:
            self.feed(event)

    def feed(self, event: Event) -> None:
        self.perform(self._step(event))

    def _step(self, event: Event) -> list[Effect]:
        """The machine's effects; an exception in it is a failure of the engine, and shows like any other failure."""
        try:
            return self.task.step(event)
        except Exception as error:
            self.world.task_failed(self, raised(error), None)
            return []

    # -- input -----------------------------------------------------------------------

    def _poll(self, now: int) -> None:
        if now < self._next_poll:
            self.schedule(self._next_poll)
            return
        self._next_poll = now + self._read_interval
        if self._watched and not self.world.point("record-read", self.name, "before", self):
            return
        effects = self._step(POLL)
        note_read(self, effects)
        self.perform(effects)
        if self._watched:
            self.world.point("record-read", self.name, "after", self)
        self.schedule(self._next_poll)

    def _take(self, now: int) -> None:
        """Take the element that arrived first, if there is one, and look again when it is processed."""
        arrival, chosen = first_to_arrive(self.inputs, self.blocked)
        if arrival > now:
            if arrival < NEVER:
                self.schedule(arrival)
            return
        channel = self.inputs[chosen]
        element = channel.queue[0][1]
        if self._watched and not self._may_take(channel, element):
            return
        channel.queue.popleft()
        channel.taken += 1
        if channel.sender is not None:
            channel.sender.drain()
        self._busy_until = now + self._apply_cost
        if type(element) is Record:
            self._take_record(chosen, channel, element)
        else:
            self._take_other(chosen, channel, element)
        if any(other.queue for other in self.inputs):
            self.schedule(self._busy_until)

    def _take_record(self, number: int, channel: Inbound, record: Record) -> None:
        if self.task.clocked and not self._timer_queue.tick():
            return
        self.received[number] += 1
        self.applied += 1
        self.log.applies.append((number, record.origin))
        if self.world.detailed:
            show_taken(self, "record-applied", channel, record)
        self.perform(self._step(Arrived(number, record)))
        if self._watched:
            self.world.point("record-applied", self.name, "after", self)

    def _may_take(self, channel: Inbound, element: Element) -> bool:
        """Whether the task, and the channel's content, survive the faults that wait for this point."""
        if type(element) is not Record:
            return True
        return self.world.point("record-applied", self.name, "before", self) and bool(channel.queue)

    def _take_other(self, number: int, channel: Inbound, element: Element) -> None:
        what = "barrier-received" if isinstance(element, Barrier) else ""
        if isinstance(element, Barrier):
            channel.timed_barriers -= element.alignment_timeout_us is not None
        if isinstance(element, EndOfData):
            self.world.observer.saw(o.InputEnded(self.log.run))
        if self.world.detailed:
            show_taken(self, what or "control-received", channel, element)
        if what and not self.world.point(what, self.name, "before", self):
            return
        self.feed(Arrived(number, element))
        if what:
            self.world.point(what, self.name, "after", self)

    # -- effects ---------------------------------------------------------------------

    def perform(self, effects: list[Effect] | tuple[Effect, ...]) -> None:
        """Carry out effects in order, for as long as the task lives."""
        for effect in effects:
            if not self.alive:
                return
            if type(effect) is Send:
                self._send(effect.channel, effect.element)
            else:
                self._carry_out[type(effect)](effect)

    def _send(self, number: int, element: Element) -> None:
        channel = self.outputs[number]
        if type(element) is Record:
            self.sent[number] += 1
        elif not self.words.announce(element):
            return
        if self._outbox or channel.is_full:
            self._outbox.append((channel, element))
        else:
            channel.push(element)
        if type(element) is Barrier:
            self.world.point("barrier-sent", self.name, "after", self)

    def drain(self) -> None:
        """Some output has room again: send the waiting elements, in order."""
        if not self._outbox or not self.alive or self.paused:
            return
        while self._outbox and not self._outbox[0][0].is_full:
            channel, element = self._outbox.popleft()
            channel.push(element)
        if not self._outbox:
            self.schedule(max(self.world.loop.now, self._busy_until))

    def _open(self, effect: Open) -> None:
        self.opened = True
        self.schedule(self.world.loop.now)

    def _rest(self, effect: Rest) -> None:
        self.polling = False

    def _poll_again(self, effect: PollAgain) -> None:
        self.polling = True
        self.schedule(max(self.world.loop.now, self._busy_until))

    def _block(self, effect: Block) -> None:
        self.blocked[effect.channel] = True

    def _unblock(self, effect: Unblock) -> None:
        self.blocked[effect.channel] = False
        self.schedule(max(self.world.loop.now, self._busy_until))

    def take_mail(self, mail: Mailed) -> None:
        self._mail.append(mail)
        self.schedule(max(self.world.loop.now, self._busy_until))

    def _taken(self, effect: Taken) -> None:
        if self.world.point("snapshot-taken", self.name, "before", self):
            mark = o.Marked(self.log.run, effect.checkpoint, tuple(self.received), tuple(self.sent))
            self.world.observer.saw(mark)
            self.newest_mark = (effect.checkpoint, self.done)
            self.world.point("snapshot-taken", self.name, "after", self)

    def _persist(self, effect: Persist) -> None:
        self.frozen = effect.synchronous
        self.world.stores.persist(self, effect)

    def _ship(self, effect: Ship) -> None:
        self.frozen = effect.synchronous
        self.world.stores.ship(self, effect)

    # -- standing still and dying ------------------------------------------------------

    def thaw(self) -> None:
        """Its synchronous snapshot is written: take one element, then the events that waited.  Otherwise snapshots
        that come faster than they are written would leave no time for records."""
        self.frozen = False
        now = self.world.loop.now
        if self._input_log is not None:
            self._input_log.report_arrivals(now)
        if self.opened and not self.paused and not self._outbox and not self._mail and now >= self._busy_until:
            self._work(now)
        self._go_on()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._go_on()

    def _go_on(self) -> None:
        while self._inbox and self.alive and not self.paused and not self.frozen:
            self.feed(self._inbox.popleft())
        self.drain()
        self.schedule(max(self.world.loop.now, self._busy_until))

    def end(self, how: str) -> None:
        """The attempt has ended, and its unwritten snapshots are lost."""
        if self.alive:
            self.alive = False
            self.how = how
            self.world.observer.saw(o.RunEnded(self.log.run, how))
            self.world.stores.forget(self, orderly=how in ("cancelled", "finished"))
            self.world.spills.forget(self)


POLL = Poll()
