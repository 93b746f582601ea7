"""Tasks with inputs: they align barriers and work on records."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..decisions.parts import Parts
from ..extensions.local_recovery import called_off
from ..job.config import Config
from ..operators.operator_state import Item, Place
from ..operators.operators import Operator
from ..operators.timers import Timer
from ..operators.watermarks import END_OF_TIME, InputTimes
from ..vocabulary.effects import Advanced, Block, Effect, Fail, Mail, SetTimer, TimeEnded, Unblock, WakeAt
from ..vocabulary.errors import ProtocolViolated, Refused
from ..vocabulary.events import Arrived, BarrierOvertook, Came, LogsFound, Mailed, Ticked, TimerFired
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import (
    Abort,
    Barrier,
    CancelBarrier,
    Complete,
    Deploy,
    EndOfPartition,
    Idle,
    Record,
    Trigger,
    Watermark,
)
from ..vocabulary.state import Snapshot, TaskState
from ..vocabulary.timeouts import AlignmentTimeout, BufferTimeout
from .barrier_alignment import (
    AbortCame,
    Action,
    Aligning,
    BarrierCame,
    Begin,
    BlockChannel,
    CancelCame,
    GiveUp,
    OvertakingCame,
    PartitionEnded,
    Signal,
    State,
    TriggerCame,
    WaitedEnough,
)
from .task import NO_CHECKPOINT, Task, TaskSpec


class InputTask(Task):
    """A task with inputs: it aligns barriers and works on records."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        super().__init__(spec, config, parts)
        self._open = list(range(len(spec.gates)))
        """channels whose sender has not finished"""
        self._unended = len(spec.gates)
        """channels in which data may follow"""
        self._triggered: tuple[CheckpointId, ...] = ()
        """checkpoints that the coordinator triggered here, before the task had seen the ends of all senders"""
        self.alignment = parts.alignment.initial(config.blocking, NO_CHECKPOINT)
        self.times = InputTimes(len(spec.gates))
        self._handlers[BarrierOvertook] = self._on_barrier_overtook
        self._handlers[Came] = self._on_came
        self._handlers[LogsFound] = self._on_logs_found

    def on_arrived(self, event: Arrived) -> list[Effect]:
        element = event.element
        if self.in_flight.listening:
            self.in_flight.took(event.channel, element)
        if type(element) is Record:
            if self.times.idle:
                return [*self._awake(event.channel), *self.on_record(element, event.channel)]
            return self.on_record(element, event.channel)
        if type(element) is Watermark:
            return self._on_watermark(event.channel, element.time)
        if type(element) is Idle:
            return self._on_idle(event.channel)
        if type(element) is Barrier:
            return self._on_barrier(element, event.channel)
        if type(element) is CancelBarrier:
            self.in_flight.drop(element.checkpoint)
            return self._signal(CancelCame(element.checkpoint, event.channel))
        if type(element) is EndOfPartition:
            return self._on_partition_ended(event.channel)
        self._unended -= 1
        return [] if self._unended or self.input_ended else self.end_input()

    def _on_came(self, event: Came) -> list[Effect]:
        ledger = self.in_flight.ledger
        return ledger.came(event.channel, event.element) if ledger is not None else []

    def _on_logs_found(self, event: LogsFound) -> list[Effect]:
        ledger = self.in_flight.ledger
        if ledger is not None:
            ledger.remember(event.positions)
            for channel, (number, logged) in enumerate(event.logs):
                ledger.resume(channel, number, logged)
        return []

    def on_complete(self, message: Complete) -> list[Effect]:
        ledger = self.in_flight.ledger
        return ledger.trim(message) if ledger is not None else []

    def _on_partition_ended(self, channel: int) -> list[Effect]:
        self._open.remove(channel)
        self.in_flight.ended(channel)
        effects = [*self._signal(PartitionEnded(channel)), *self.write_whole()]
        return effects if self._open else [*effects, *self._begin_triggered()]

    def on_trigger(self, message: Trigger) -> list[Effect]:
        """Every sender has finished; elements that they sent before may still be on their way."""
        self._triggered = (*self._triggered, message.checkpoint)
        self.alignment_timeouts_us[message.checkpoint] = message.alignment_timeout_us
        return [] if self._open else self._begin_triggered()

    def _begin_triggered(self) -> list[Effect]:
        triggered, self._triggered = self._triggered, ()
        return [effect for checkpoint in sorted(triggered) for effect in self._signal(TriggerCame(checkpoint))]

    # -- barriers ------------------------------------------------------------------

    def _on_deploy(self, message: Deploy) -> list[Effect]:
        if self.deployed or message.given_up is None:
            return super()._on_deploy(message)
        self.alignment = self.parts.alignment.initial(self.config.blocking, message.given_up)
        cancels = [effect for one in called_off(message) for effect in self.broadcast(one)]
        return [*cancels, *super()._on_deploy(message)]

    def _on_barrier(self, barrier: Barrier, channel: int) -> list[Effect]:
        """A barrier arrives at the head of its channel."""
        self.alignment_timeouts_us.setdefault(barrier.checkpoint, barrier.alignment_timeout_us)
        before = self.alignment
        effects = self._signal(BarrierCame(barrier.checkpoint, channel))
        self.in_flight.delivered(barrier.checkpoint, channel)
        return [*effects, *self._set_alignment_timer(barrier, before), *self.write_whole()]

    def _set_alignment_timer(self, barrier: Barrier, before: State) -> list[Effect]:
        """A barrier that begins an alignment sets the timer of its alignment timeout."""
        now = self.alignment
        begun = isinstance(now, Aligning) and not (isinstance(before, Aligning) and before.checkpoint == now.checkpoint)
        if not begun or barrier.alignment_timeout_us is None:
            return []
        if not self.parts.capture.may_time_out(self.spec.overtaken):
            return []
        return [SetTimer(AlignmentTimeout(barrier.checkpoint), barrier.alignment_timeout_us)]

    def _on_barrier_overtook(self, event: BarrierOvertook) -> list[Effect]:
        """A barrier overtook elements that are still in the channel's queue."""
        checkpoint = event.barrier.checkpoint
        self.alignment_timeouts_us[checkpoint] = 0
        effects = self._signal(OvertakingCame(checkpoint, event.channel))
        self.in_flight.delivered(checkpoint, event.channel, event.passed)
        return [*effects, *self.write_whole()]

    def on_timer(self, event: TimerFired) -> list[Effect]:
        timeout = event.timeout
        if isinstance(timeout, BufferTimeout) and self.in_flight.ledger is not None:
            return self.in_flight.ledger.timer()
        if not isinstance(timeout, AlignmentTimeout):
            return super().on_timer(event)
        checkpoint = timeout.checkpoint
        if isinstance(self.alignment, Aligning) and self.alignment.checkpoint == checkpoint:
            self.alignment_timeouts_us[checkpoint] = 0
        return self._signal(WaitedEnough(checkpoint))

    # -- event time ----------------------------------------------------------------

    def _on_watermark(self, channel: int, time: int) -> list[Effect]:
        awake = self._awake(channel)
        self.times.received(channel, time)
        # The task may have waited for this input last; the tasks downstream must not wait for this task then.
        news = self.broadcast(Idle()) if self.times.is_idle else self._advance()
        return [*awake, *news]

    def _on_idle(self, channel: int) -> list[Effect]:
        """The channel is idle; when all that have not ended are idle, the task sends that it is idle downstream."""
        self.times.sleeps(channel)
        return self.broadcast(Idle()) if self.times.is_idle else self._advance()

    def _awake(self, channel: int) -> list[Effect]:
        """An element came from a channel: the channel is active again, and so is this task for the tasks downstream."""
        was_idle = self.times.is_idle
        self.times.idle = self.parts.watermarks.still_idle(self.times.idle, channel)
        return self.broadcast(Watermark(self.times.time)) if was_idle else []

    def _advance(self) -> list[Effect]:
        if self.times.is_idle:
            return []
        time = self.parts.watermarks.of_inputs(self.times.waited_for())
        if time <= self.times.time:
            return []
        self.times.time = time
        return [Advanced(time), *self.on_time(time)]

    def on_time(self, time: int) -> list[Effect]:
        """The task's watermark has advanced."""
        return self.broadcast(Watermark(time))

    def take_over(self, state: TaskState) -> None:
        self.times.restore(state.watermark, state.times, state.idle)

    def fixed_state(self) -> TaskState:
        state = super().fixed_state()
        if self.times.is_known:
            state.watermark = self.times.time
            state.times = self.parts.watermarks.of_channels(self.times.times)
            state.idle = list(self.times.idle)
        return state

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        """Work on one record."""
        raise ProtocolViolated(f"{self.spec.task} takes no records")

    def on_abort(self, message: Abort) -> list[Effect]:
        self.in_flight.drop(message.checkpoint)
        return self._signal(AbortCame(message.checkpoint))

    def _signal(self, signal: Signal) -> list[Effect]:
        if self.finished:
            return []
        self.alignment, actions = self.parts.alignment.step(self.alignment, signal, len(self._open))
        return [effect for action in actions for effect in self._perform(action)]

    def _perform(self, action: Action) -> list[Effect]:
        if isinstance(action, Begin):
            return self._begin(action)
        if isinstance(action, BlockChannel):
            return [Block(action.channel)]
        if isinstance(action, GiveUp):
            effects = self.broadcast(CancelBarrier(action.checkpoint))
            return [*effects, self.decline(action.checkpoint, "given up upstream")] if action.declined else effects
        return [Unblock(channel) for channel in action.channels]

    def _begin(self, begin: Begin) -> list[Effect]:
        """Elements that the channels in `missing` deliver before their barriers are in flight."""
        waited_for = begin.delivered is None
        missing = () if waited_for else tuple(one for one in self._open if one not in (begin.delivered or ()))
        if self.in_flight.ledger is not None:
            self.in_flight.ledger.mark(begin.checkpoint)
        self.begin_in_flight(begin.checkpoint, missing)
        effects = self.cut(begin.checkpoint)
        self.alignment_timeouts_us = {
            one: how for one, how in self.alignment_timeouts_us.items() if one > begin.checkpoint
        }
        return effects

    def cut(self, checkpoint: CheckpointId) -> list[Effect]:
        """Take the snapshot and send the barrier on, in one step."""
        return [*self.record(checkpoint), *self.barrier(checkpoint)]


RELEASE = "release"
"""The mail that makes a task emit the rows that it held back."""


class OperatorTask(InputTask):
    """A task around a user's operator; it may hold rows back and emit them from a mail."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts, operator: Operator) -> None:
        super().__init__(spec, config, parts)
        self.operator = operator
        self.clocked = operator.clocked
        self._asked: int | None = None
        """the time of the next tick that it asked for"""
        operator.place = Place(spec.subtask, spec.parallelism, spec.key_groups)
        self._held: list[Record] = []
        self._restored: list[Item] = []
        """the items of lists that the task restored"""

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        effects = self.release() if self._held else []
        try:
            rows = self.operator.apply(record, self.spec.gates[channel])
        except Exception as error:  # whatever a user's function raises fails its task, not the engine
            return [self._raised(error)]
        if self.operator.holds_back:
            return [*effects, *self._hold(rows)]
        if self.clocked:
            return [*self.emit(rows), *self._ask(self.operator.alarms.earliest())]
        return [*effects, *self.emit(rows)] if effects else self.emit(rows)

    def _hold(self, rows: Iterable[Record]) -> list[Effect]:
        """Emit the first row, and the others when the mailbox reaches their mail."""
        waiting = list(rows)
        if not waiting:
            return []
        self._held.extend(waiting[1:])
        later = [Mail(RELEASE)] if self.parts.held_output.needs_mail(self._held) else []
        return [*self.emit(waiting[:1]), *later]

    def release(self) -> list[Effect]:
        """Emit the rows that are held back."""
        held, self._held = self._held, []
        return self.emit(held)

    def _release_before_barrier(self) -> list[Effect]:
        released = self.parts.held_output.before_barrier(self._held)
        self._held = self._held[len(released) :]
        return self.emit(released)

    def on_mail(self, event: Mailed) -> list[Effect]:
        return self.release()

    def cut(self, checkpoint: CheckpointId) -> list[Effect]:
        released = self._release_before_barrier() if self._held else []
        try:
            return [*released, *super().cut(checkpoint)]
        except Refused as error:
            return [*released, self._raised(error)]

    def end_input(self) -> list[Effect]:
        restored = bool(self._restored) and self.operator.listed() == self._restored
        try:
            last = list(self.operator.on_end()) if self.parts.held_output.at_end(restored) else []
        except Exception as error:
            return [self._raised(error)]
        ended = self._time_ends() if self.clocked else []
        released = self._release_before_barrier() if self._held else []
        return [*released, *self.emit(last), *ended, *super().end_input()]

    def on_time(self, time: int) -> list[Effect]:
        """Rows that are held back are emitted before the watermark; so are the panes of the windows that it ends."""
        held = self.release() if self._held else []
        timers = self.operator.timers
        due = timers.due(time)
        for timer in self.parts.firing.removed(due):
            timers.drop(timer)
        try:
            rows = self.operator.on_watermark(time, due)
        except Exception as error:
            return [self._raised(error)]
        return [*held, *self.emit(rows), *super().on_time(time)]

    # -- processing time -------------------------------------------------------------

    @property
    def awaits_time(self) -> bool:
        return self.operator.alarms.earliest() is not None

    def on_tick(self, event: Ticked) -> list[Effect]:
        if self._asked is not None and self._asked <= event.now:
            self._asked = None
        fired = self._fire_alarms(event.now, self.operator.alarms.take(event.now))
        return [*fired, *self._ask(self.operator.alarms.earliest())]

    def _time_ends(self) -> list[Effect]:
        """All input has ended, and no tick will come: fire what is pending."""
        return [TimeEnded(), *self._fire_alarms(END_OF_TIME, self.operator.alarms.take(END_OF_TIME))]

    def _fire_alarms(self, now: int, due: list[Timer]) -> list[Effect]:
        try:
            return self.emit(self.operator.on_clock(now, due))
        except Exception as error:
            return [self._raised(error)]

    def _ask(self, time: int | None) -> list[Effect]:
        """Ask for a tick at that time, unless an earlier one was asked for."""
        if time is None or (self._asked is not None and self._asked <= time):
            return []
        self._asked = time
        return [WakeAt(time)]

    def opened(self) -> list[Effect]:
        return [*super().opened(), *self._ask(self.parts.processing_time.wakes(self.operator.alarms.earliest()))]

    def _raised(self, error: Exception) -> Effect:
        name = f"{self.operator.function} " if self.operator.function else ""
        if isinstance(error, Refused):  # an error about what it returned or requested names it
            return Fail(f"the user function of {self.spec.task} is refused: {error}")
        return Fail(f"the user function {name}of {self.spec.task} raised {type(error).__name__}: {error}")

    def restore(self, state: TaskState | None) -> list[Effect]:
        try:
            return super().restore(state)
        except Refused as error:  # the snapshot was made by another user function
            return [Fail(f"{self.spec.task} cannot go on from its snapshot: {error}")]

    def take_over(self, state: TaskState) -> None:
        super().take_over(state)
        self._restored = state.listed
        mine = [item for item in state.shared if self.operator.keeps(item)]
        self.operator.resume(msgspec.structs.replace(state, shared=mine) if state.shared else state)

    def fixed_state(self) -> TaskState:
        state = super().fixed_state()
        state.timers = self.parts.firing.kept(self.operator.timers.pending())
        state.alarms = self.parts.processing_time.kept(self.operator.alarms.pending())
        state.panes = self.operator.lineage()
        state.held, state.declared = self.operator.held(), self.operator.declared()
        state.listed, state.shared = self.operator.listed(), self.operator.shared()
        state.broadcast = self.operator.broadcast()
        return state

    def snapshot_now(self) -> Snapshot:
        heap = self.parts.copying.copy(self.operator.heap)
        return Snapshot(self.fixed_state(), heap, self.operator.describe)
