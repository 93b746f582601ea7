"""Tasks with inputs: they align barriers, and hand each record to their work.

Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (arXiv:1506.08603), section 4.2: a
task with several inputs blocks each channel that has delivered the barrier.  Once all have, it takes its snapshot,
sends the barrier in each output, and unblocks its inputs (ABS-2).  When it does so is the table of `barrier_alignment`;
this file carries out what the table says.  A task that has seen the end of its data takes part in
checkpoints as before.  Once all its senders have finished, the coordinator triggers it like a source (FIN-1; FLIP-147).

The work is an operator (`extensions.operator_work`), a sink (`protocol.sink`, `extensions.sinks.direct_sink`), or a
part of a sink (`extensions.sinks.committing`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

from ..decisions.parts import Parts
from ..job.config import Config
from ..job.task_spec import TaskSpec
from ..operators.watermarks import InputTimes
from ..vocabulary.causes import AnyCause, OtherBarrierFirst, SnapshotUnfit
from ..vocabulary.effects import Block, Effect, Fail, Unblock
from ..vocabulary.errors import Handlers, ProtocolViolated, Refused
from ..vocabulary.events import (
    Answered,
    Arrived,
    BarrierOvertook,
    Came,
    Compacted,
    Event,
    LogsFound,
    Mailed,
    Ticked,
    TimerFired,
)
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import (
    Abort,
    Barrier,
    CancelBarrier,
    Committable,
    Complete,
    Element,
    EndOfData,
    EndOfPartition,
    Idle,
    Record,
    Settled,
    Terminate,
    Trigger,
    Watermark,
)
from ..vocabulary.state import Sealed, Snapshot, TaskState
from ..vocabulary.timeouts import RetryRequest
from ..vocabulary.views import View
from .barrier_alignment import (
    AbortCame,
    Alignment,
    BarrierCame,
    BlockChannel,
    CancelCame,
    PartitionEnded,
    SendCancelBarrier,
    Signal,
    TakeSnapshot,
    TriggerCame,
    UnblockChannels,
)
from .task import HasFinished, InFlightData, SnapshotFormats, StateReader, Task

Handler = Callable[..., list[Effect]]


class WorkFailed(Exception):
    """The task cannot go on; `effects` are those that the work had before, and the failure."""

    def __init__(self, cause: AnyCause, before: Sequence[Effect] = ()) -> None:
        super().__init__(str(cause))
        self.effects: list[Effect] = [*before, Fail(cause)]


class Work(Protocol):
    """What every task with inputs needs of its work, which uses the task's methods to write, emit and finish."""

    task: InputTask
    """for which it works"""

    def also_takes(self) -> Mapping[type, Handler]:
        """What it takes besides records: the method for each type of event, of timeout, and of element.  The method for
        an element is given the channel too.  The method for `EndOfPartition` is called after the task has dealt with
        that element."""
        ...

    def on_restored(self) -> list[Effect]:
        """The state is restored.  The task takes input from `open_inputs` on, here or later."""
        ...

    def on_record(self, record: Record, channel: int) -> list[Effect]: ...

    def on_end(self) -> list[Effect]:
        """All input has ended; `end_input` sends the end on.  Raises WorkFailed."""
        ...

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        """Emit the rows that are held back (ABS-2), take the snapshot, and have it persisted; the barrier follows.

        Raises WorkFailed."""
        ...

    def describe(self, state: TaskState) -> None:
        """Add its part to the state of a snapshot; not the working state by key."""
        ...

    def adopt(self, state: TaskState) -> None:
        """Make a restored state its own.  Raises Refused for one that it cannot use."""
        ...

    def on_terminate(self, checkpoint: CheckpointId | None) -> list[Effect]:
        """A complete checkpoint covers all its work: commit what is left, then finish."""
        ...


# -- what only some works do -------------------------------------------------------------


class OperatorState(Protocol):
    """It keeps state by key."""

    def view(self) -> View:
        """The working state by key of this moment, which no later record changes (ABS-8)."""
        ...


class ProcessingTimers(Protocol):
    """It has timers in processing time."""

    clocked: bool
    """it uses processing time, and needs ticks"""

    @property
    def awaits_time(self) -> bool:
        """Some timer is pending."""
        ...


class TransactionHolder(Protocol):
    """It commits transactions when their checkpoint is complete (ABS-11)."""

    @property
    def sealed(self) -> Sequence[Sealed]:
        """Those that it has neither committed nor left to another task."""
        ...

    def on_complete(self, checkpoint: CheckpointId) -> list[Effect]: ...


class InputTime(Protocol):
    """The event time of a task with inputs (OPS-1); see `event_time`."""

    @property
    def times(self) -> InputTimes: ...

    def step(self, element: Element, channel: int, task: InputTask) -> list[Effect]:
        """A watermark came, or the mark of an idle channel."""
        ...

    def awake(self, channel: int, task: InputTask) -> list[Effect]:
        """Another element came, while some channel is idle."""
        ...

    def describe(self, state: TaskState) -> None: ...

    def restore(self, state: TaskState) -> None: ...


# -- in-flight data -------------------------------------------------------------------


class InFlightElements(Protocol):
    """The elements that a task takes, of which some are in-flight data of a snapshot."""

    listening: bool
    """it must be told of each element that is taken"""

    def took(self, channel: int, element: Element) -> None: ...


class InputInFlightData(InFlightData, Protocol):
    """What a task with inputs does in checkpoints with in-flight data, and the in-flight data of its inputs."""

    @property
    def elements(self) -> InFlightElements: ...

    def on_barrier(self, barrier: Barrier, channel: int, task: InputTask) -> list[Effect]:
        """A barrier arrives at the head of its channel."""
        ...

    def aborted(self, checkpoint: CheckpointId) -> None:
        """The task cancelled the checkpoint, or the coordinator aborted it."""
        ...

    def ended(self, channel: int) -> None:
        """A channel has ended, and all of it has been taken."""
        ...

    def write_complete(self, task: InputTask) -> list[Effect]:
        """Have the snapshots persisted whose in-flight data is complete now."""
        ...

    def completed(self, message: Complete) -> list[Effect]:
        """A checkpoint is complete."""
        ...


class InputTask(Task):
    """A task with inputs."""

    EVENTS: ClassVar[dict[type, str]] = Task.EVENTS | {
        Arrived: "on_arrived",
        BarrierOvertook: "_on_barrier_overtook",
        Answered: "_to_work",
        Ticked: "_to_work",
        Compacted: "_to_work",
        Came: "_on_in_flight",
        LogsFound: "_on_in_flight",
    }

    in_flight: InputInFlightData | None
    """narrower than a task's"""

    __slots__ = (
        "_aligner",
        "_also_takes",
        "_event_time",
        "_in_flight_elements",
        "_operator",
        "_timers",
        "_transactions",
        "_triggered",
        "_unended",
        "_unfinished_channels",
        "alignment",
        "clocked",
        "holds_end",
        "publishes",
        "times",
        "work",
    )

    def __init__(
        self,
        spec: TaskSpec,
        config: Config,
        parts: Parts,
        work: Work,
        aligner: Alignment,
        reading: StateReader,
        formats: SnapshotFormats,
        event_time: InputTime,
        in_flight: InputInFlightData | None = None,
        *,
        operator: OperatorState | None = None,
        timers: ProcessingTimers | None = None,
        transactions: TransactionHolder | None = None,
        publishes: bool = False,
        holds_end: bool = False,
    ) -> None:
        """`operator`, `timers`, `transactions`: each is `work` itself if the work has that part, or None.  `publishes`:
        it is a global committer, and receives committables of complete checkpoints alone.  `holds_end`: it sends the
        end of its data only when it finishes."""
        super().__init__(spec, config, parts, reading, formats, in_flight)
        self._in_flight_elements = in_flight.elements if in_flight is not None else None
        self.work = work
        work.task = self
        self._operator = operator
        self._timers = timers
        self._transactions = transactions
        self._also_takes = work.also_takes()
        self.holds_end = holds_end
        self.clocked = timers is not None and timers.clocked
        self.publishes = publishes
        self._unfinished_channels = list(spec.input_channels)
        """channels whose sender has not finished"""
        self._unended = len(self._unfinished_channels)
        """channels in which data may follow"""
        self._triggered: tuple[CheckpointId, ...] = ()
        """checkpoints that the coordinator triggered here, before the task had seen the ends of all senders"""
        self._aligner = aligner
        self.alignment = aligner.initial(config.blocking, last=None)
        self._event_time = event_time
        self.times = event_time.times

    @property
    def awaits_time(self) -> bool:
        return self._timers is not None and self._timers.awaits_time

    @property
    def sealed(self) -> Sequence[Sealed]:
        return self._transactions.sealed if self._transactions is not None else ()

    def let_go(self) -> None:
        del self.work.task

    def _handler(self, kind: type) -> Handler:
        """The work's own, for what only some works take."""
        handler = self._also_takes.get(kind)
        if handler is None:
            raise ProtocolViolated(f"{self.spec.task} takes no {kind.__name__}")
        return handler

    # -- input ---------------------------------------------------------------------

    def on_arrived(self, event: Arrived) -> list[Effect]:
        element = event.element
        elements = self._in_flight_elements
        if elements is not None and elements.listening:
            elements.took(event.channel, element)
        kind = type(element)
        if kind is Record:
            if self.times.idle:
                return [*self._event_time.awake(event.channel, self), *self.work.on_record(element, event.channel)]  # type: ignore[arg-type]
            return self.work.on_record(element, event.channel)  # type: ignore[arg-type]
        effects: list[Effect] = self._on_other[kind](self, element, event.channel)
        return effects

    def _on_end_of_data(self, end: object, channel: int) -> list[Effect]:
        self._unended -= 1
        if self._unended or self.life.after_end:
            return []
        try:
            return self.work.on_end()
        except WorkFailed as failed:
            return failed.effects

    def _on_partition_ended(self, end: EndOfPartition, channel: int) -> list[Effect]:
        self._unfinished_channels.remove(channel)
        if self.in_flight is not None:
            self.in_flight.ended(channel)
        effects = self.signal(PartitionEnded(channel))
        if self.in_flight is not None:
            effects += self.in_flight.write_complete(self)
        if not self._unfinished_channels:
            effects += self._signal_triggers()
        then = self._also_takes.get(EndOfPartition)
        return [*effects, *then(end, channel)] if then is not None else effects

    # -- barriers ------------------------------------------------------------------

    def skip_checkpoints(self, last: CheckpointId) -> None:
        self.alignment = self._aligner.initial(self.config.blocking, last)

    def on_trigger(self, message: Trigger) -> list[Effect]:
        """Every sender has finished; elements that they sent before may still be on their way."""
        self._triggered = (*self._triggered, message.checkpoint)
        self.formats.ask(message.checkpoint, message.format)
        if self.in_flight is not None:
            self.in_flight.triggered(message)
        return [] if self._unfinished_channels else self._signal_triggers()

    def _signal_triggers(self) -> list[Effect]:
        triggered, self._triggered = self._triggered, ()
        return [effect for checkpoint in sorted(triggered) for effect in self.signal(TriggerCame(checkpoint))]

    def _on_barrier(self, barrier: Barrier, channel: int) -> list[Effect]:
        """A barrier arrives at the head of its channel."""
        self.formats.ask(barrier.checkpoint, barrier.format)
        if self.in_flight is not None:
            return self.in_flight.on_barrier(barrier, channel, self)
        return self.signal(BarrierCame(barrier.checkpoint, channel))

    def _on_barrier_overtook(self, event: BarrierOvertook) -> list[Effect]:
        self.formats.ask(event.barrier.checkpoint, event.barrier.format)
        return self._on_in_flight(event)

    def _on_cancel(self, cancel: CancelBarrier, channel: int) -> list[Effect]:
        if self.in_flight is not None:
            self.in_flight.aborted(cancel.checkpoint)
        return self.signal(CancelCame(cancel.checkpoint, channel))

    def on_abort(self, message: Abort) -> list[Effect]:
        self.formats.aborted(message.checkpoint)
        if self.in_flight is not None:
            self.in_flight.aborted(message.checkpoint)
        return self.signal(AbortCame(message.checkpoint))

    def signal(self, signal: Signal) -> list[Effect]:
        """Carry out what the alignment says."""
        if type(self.life) is HasFinished:
            return []
        self.alignment, actions = self._aligner.step(self.alignment, signal, len(self._unfinished_channels))
        effects: list[Effect] = []
        for action in actions:
            match action:
                case TakeSnapshot():
                    effects += self._snapshot_and_barrier(action)
                case BlockChannel(channel):
                    effects.append(Block(channel))
                case UnblockChannels(channels):
                    effects += [Unblock(channel) for channel in channels]
                case SendCancelBarrier(checkpoint, declines):
                    effects += self.broadcast(CancelBarrier(checkpoint))
                    if declines:
                        effects.append(self.decline(checkpoint, OtherBarrierFirst()))
        return effects

    def _snapshot_and_barrier(self, action: TakeSnapshot) -> list[Effect]:
        """Take the snapshot and send the barrier on, in one step."""
        checkpoint = action.checkpoint
        if self.in_flight is not None:
            delivered = action.delivered
            missing = (
                () if delivered is None else tuple(one for one in self._unfinished_channels if one not in delivered)
            )
            self.in_flight.snapshot_taken(checkpoint, missing)
        try:
            return [*self.work.snapshot(checkpoint), *self.barrier(checkpoint)]
        except WorkFailed as failed:
            return failed.effects

    # -- state ---------------------------------------------------------------------

    def restore(self, state: TaskState | None) -> list[Effect]:
        try:
            return super().restore(state)
        except Refused as error:  # the snapshot was made by another user function
            return [Fail(SnapshotUnfit(self.spec.task, str(error)))]

    def adopt(self, state: TaskState) -> None:
        self._event_time.restore(state)
        self.work.adopt(state)

    def on_restored(self) -> list[Effect]:
        return self.work.on_restored()

    def unkeyed_state(self) -> TaskState:
        state = super().unkeyed_state()
        self._event_time.describe(state)
        self.work.describe(state)
        return state

    def current_snapshot(self) -> Snapshot:
        """The state of this moment; of the working state by key a view."""
        if self._operator is None:
            return super().current_snapshot()
        view = self._operator.view()
        return Snapshot(self.unkeyed_state(), view)

    # -- the world -----------------------------------------------------------------

    def on_complete(self, message: Complete) -> list[Effect]:
        self.formats.complete(message.checkpoint)
        trimmed = self.in_flight.completed(message) if self.in_flight is not None else []
        if self._transactions is None:
            return trimmed
        return [*trimmed, *self._transactions.on_complete(message.checkpoint)]

    def on_terminate(self, message: Terminate) -> list[Effect]:
        return self.work.on_terminate(message.checkpoint)

    def on_timer(self, event: TimerFired) -> list[Effect]:
        timeout = event.timeout
        if isinstance(timeout, RetryRequest):
            return self._handler(RetryRequest)(timeout)
        return super().on_timer(event)

    def on_mail(self, event: Mailed) -> list[Effect]:
        return self._to_work(event)

    def _to_work(self, event: Event) -> list[Effect]:
        return self._handler(type(event))(event)

    def _on_event_time(self, element: Element, channel: int) -> list[Effect]:
        return self._event_time.step(element, channel, self)

    def _element_to_work(self, element: Element, channel: int) -> list[Effect]:
        return self._handler(type(element))(element, channel)

    _on_other: ClassVar[Handlers] = Handlers(
        {
            Watermark: _on_event_time,
            Idle: _on_event_time,
            Barrier: _on_barrier,
            CancelBarrier: _on_cancel,
            EndOfData: _on_end_of_data,
            EndOfPartition: _on_partition_ended,
            Committable: _element_to_work,
            Settled: _element_to_work,
        }
    )
    """the method for each type of element but records"""
