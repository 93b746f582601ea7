"""A task: one attempt of one subtask, as a machine that takes an event and returns effects.

This file holds what all tasks share, and the tasks between sources and sinks.
A task is deployed, restores, opens its inputs, runs, and finishes when the
coordinator says that everything rests on a complete checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from .alignment import AbortCame, Action, BarrierCame, Begin, CancelCame, GiveUp, SetAside, Signal
from .config import Config
from .effects import Block, Effect, Fail, Load, Mail, Persist, Report, Restored, Send, SetTimer, Ship, Taken, Unblock
from .errors import Handlers, ProtocolViolated, require
from .events import Answered, Arrived, Event, LoadFailed, Mailed, PersistFailed, Received, SnapshotLoaded, TimerFired
from .ids import AttemptId, CheckpointId, TaskId
from .messages import (
    Abort,
    Ack,
    Barrier,
    CancelBarrier,
    Complete,
    Decline,
    Deploy,
    Element,
    EndOfData,
    Finished,
    InputEnded,
    Record,
    Running,
    Terminate,
    Trigger,
)
from .operators import Operator
from .parts import Parts
from .state import Snapshot, TaskState
from .topology import key_group, owner

NO_CHECKPOINT = CheckpointId(0)
"""Below every checkpoint's id."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """One outgoing edge of a task: its channels by number, in the order of the receivers."""

    partitioning: str
    channels: tuple[int, ...]


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who a task is and how it is wired; `gates` gives the operator's input by channel."""

    task: TaskId
    job: int
    attempt: AttemptId
    gates: tuple[int, ...] = ()
    outputs: tuple[Output, ...] = ()
    key_groups: int = 16


class Task:
    """What all tasks share: coming up, snapshots, routing, finishing."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        self.spec = spec
        self.config = config
        self.parts = parts
        self.deployed = False
        self.running = False
        self.finished = False
        self.input_ended = False
        self.rotations = [0] * len(spec.outputs)
        self._all_outputs = tuple(channel for output in spec.outputs for channel in output.channels)
        self._routes = [self._router(number, output) for number, output in enumerate(spec.outputs)]
        self._handlers = Handlers(
            {
                Arrived: self.on_arrived,
                Received: self._on_received,
                SnapshotLoaded: self._on_loaded,
                LoadFailed: self._on_load_failed,
                PersistFailed: self._on_persist_failed,
                Answered: self.on_answered,
                Mailed: self.on_mail,
                TimerFired: self.on_timer,
            }
        )
        self._messages = Handlers(
            {
                Deploy: self._on_deploy,
                Trigger: self.on_trigger,
                Complete: self.on_complete,
                Abort: self.on_abort,
                Terminate: self.on_terminate,
            }
        )

    def step(self, event: Event) -> list[Effect]:
        """What is to be done about an event, in this order."""
        effects: list[Effect] = self._handlers[type(event)](event)
        return effects

    # -- coming up -----------------------------------------------------------------

    def _on_received(self, event: Received) -> list[Effect]:
        require(event.message.attempt == self.spec.attempt, "a message of another attempt reached a task")
        effects: list[Effect] = self._messages[type(event.message)](event.message)
        return effects

    def _on_deploy(self, message: Deploy) -> list[Effect]:
        if self.deployed:
            return []
        self.deployed = True
        self._restoring = message
        effects = self.parts.startup.on_deploy()
        if message.handle is not None:
            return [*effects, Load(message.handle)]
        return [*effects, *self.restore(message.state)]

    def _on_loaded(self, event: SnapshotLoaded) -> list[Effect]:
        return self.restore(event.state)

    def _on_load_failed(self, event: LoadFailed) -> list[Effect]:
        checkpoint = self._restoring.checkpoint
        return [Fail(f"the snapshot of checkpoint {checkpoint} could not be read: {event.reason}")]

    def restore(self, state: TaskState | None) -> list[Effect]:
        """Take over a state (None: start from nothing), then open the inputs."""
        effects: list[Effect] = []
        if state is not None:
            if state.rotations:
                self.rotations = list(state.rotations)
            self.take_over(state)
            effects.append(Restored(self._restoring.checkpoint or NO_CHECKPOINT, self.snapshot_now().materialise()))
        return [*effects, *self.opened()]

    def take_over(self, state: TaskState) -> None:
        """Make a restored state one's own."""

    def opened(self) -> list[Effect]:
        """The state is restored: take input and say so."""
        self.running = True
        return [*self.parts.startup.on_restored(), Report(Running(attempt=self.spec.attempt, task=self.spec.task))]

    # -- snapshots -----------------------------------------------------------------

    def fixed_state(self) -> TaskState:
        """Everything of its state but the working state by key."""
        return TaskState(rotations=list(self.rotations))

    def snapshot_now(self) -> Snapshot:
        return Snapshot(self.fixed_state(), {}, lambda heap: [])

    def record(self, checkpoint: CheckpointId) -> list[Effect]:
        """Take the snapshot here, in the task's program order."""
        return [Taken(checkpoint), *self.snapshot(checkpoint)]

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        """Have the state as it is now written; acknowledge once that is durable (ABS-8)."""
        return self.write(checkpoint, self.snapshot_now())

    def write(self, checkpoint: CheckpointId, snapshot: Snapshot) -> list[Effect]:
        spec, synchronous = self.spec, self.config.synchronous
        handle = self.parts.naming.handle(spec.job, checkpoint, spec.task, spec.attempt)
        ack = Ack(attempt=spec.attempt, task=spec.task, checkpoint=checkpoint, handle=handle)
        if self.config.memory:
            return [Ship(snapshot, synchronous, ack)]
        return [Persist(checkpoint, handle, snapshot, synchronous, (Report(ack),))]

    def barrier(self, checkpoint: CheckpointId) -> list[Effect]:
        return self.broadcast(Barrier(checkpoint))

    def decline(self, checkpoint: CheckpointId, reason: str) -> Effect:
        spec = self.spec
        return Report(Decline(attempt=spec.attempt, task=spec.task, checkpoint=checkpoint, reason=reason))

    def _on_persist_failed(self, event: PersistFailed) -> list[Effect]:
        return [self.decline(event.checkpoint, event.reason)]

    # -- output --------------------------------------------------------------------

    def broadcast(self, element: Element) -> list[Effect]:
        return [Send(channel, element) for channel in self._all_outputs]

    def emit(self, rows: Iterable[Record]) -> list[Effect]:
        if len(self._routes) == 1:
            route = self._routes[0]
            return [Send(route(row), row) for row in rows]
        return [Send(route(row), row) for row in rows for route in self._routes]

    def _router(self, number: int, output: Output) -> Callable[[Record], int]:
        channels = output.channels
        if len(channels) == 1 or output.partitioning == "forward":
            return lambda row: channels[0]
        if output.partitioning == "hash":
            groups = self.spec.key_groups
            by_key: dict[int | None, int] = {}

            def by_group(row: Record) -> int:
                channel = by_key.get(row.key)
                if channel is None:
                    channel = channels[owner(key_group(row.key, groups), groups, len(channels))]
                    by_key[row.key] = channel
                return channel

            return by_group

        def in_turn(row: Record) -> int:
            turn = self.rotations[number]
            self.rotations[number] = (turn + 1) % len(channels)
            return channels[turn]

        return in_turn

    # -- the end -------------------------------------------------------------------

    def end_input(self) -> list[Effect]:
        """All its input has ended: tell those downstream, and the coordinator until it answers."""
        self.input_ended = True
        return [*self.broadcast(EndOfData()), *self._report_end()]

    def _report_end(self) -> list[Effect]:
        message = InputEnded(attempt=self.spec.attempt, task=self.spec.task)
        return [Report(message), SetTimer("ended", 4 * self.config.retry_us)]

    def on_terminate(self, message: Terminate) -> list[Effect]:
        return self.finish()

    def finish(self) -> list[Effect]:
        self.finished = True
        return [Report(Finished(attempt=self.spec.attempt, task=self.spec.task))]

    def on_timer(self, event: TimerFired) -> list[Effect]:
        if event.name == "ended" and not self.finished:
            return self._report_end()
        return []

    # -- what only some tasks do -----------------------------------------------------

    def on_arrived(self, event: Arrived) -> list[Effect]:
        raise ProtocolViolated(f"{self.spec.task} has no inputs")

    def on_trigger(self, message: Trigger) -> list[Effect]:
        raise ProtocolViolated(f"{self.spec.task} is not a source and cannot be triggered")

    def on_complete(self, message: Complete) -> list[Effect]:
        return []

    def on_abort(self, message: Abort) -> list[Effect]:
        return []

    def on_answered(self, event: Answered) -> list[Effect]:
        raise ProtocolViolated(f"{self.spec.task} asked nothing")

    def on_mail(self, event: Mailed) -> list[Effect]:
        effects: list[Effect] = event.mail.open(self)
        return effects


class InputTask(Task):
    """A task with inputs: it aligns barriers and works on records."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        super().__init__(spec, config, parts)
        self._inputs = len(spec.gates)
        self._ended_inputs = 0
        self.alignment = parts.alignment.initial(config.blocking, NO_CHECKPOINT)

    def on_arrived(self, event: Arrived) -> list[Effect]:
        element = event.element
        if type(element) is Record:
            return self.on_record(element, event.channel)
        if type(element) is Barrier:
            return self._signal(BarrierCame(element.checkpoint, event.channel))
        if type(element) is CancelBarrier:
            return self._signal(CancelCame(element.checkpoint, event.channel))
        self._ended_inputs += 1
        return self.end_input() if self._ended_inputs == self._inputs else []

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        """Work on one record."""
        raise ProtocolViolated(f"{self.spec.task} takes no records")

    def on_abort(self, message: Abort) -> list[Effect]:
        return self._signal(AbortCame(message.checkpoint))

    def _signal(self, signal: Signal) -> list[Effect]:
        self.alignment, actions = self.parts.alignment.step(self.alignment, signal, self._inputs)
        return [effect for action in actions for effect in self._perform(action)]

    def _perform(self, action: Action) -> list[Effect]:
        if isinstance(action, Begin):
            return self.cut(action.checkpoint)
        if isinstance(action, SetAside):
            return [Block(action.channel)]
        if isinstance(action, GiveUp):
            effects = self.broadcast(CancelBarrier(action.checkpoint))
            return [*effects, self.decline(action.checkpoint, "given up upstream")] if action.declined else effects
        return [Unblock(channel) for channel in action.channels]

    def cut(self, checkpoint: CheckpointId) -> list[Effect]:
        """Every barrier is in: snapshot and send the barrier on, in one step."""
        return [*self.record(checkpoint), *self.barrier(checkpoint)]


class Release:
    """The mail by which a task lets out what it held back."""

    def open(self, task: OperatorTask) -> list[Effect]:
        return task.release()


class OperatorTask(InputTask):
    """A task around a user's operator; it may hold rows back and let them out by a mail."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts, operator: Operator) -> None:
        super().__init__(spec, config, parts)
        self.operator = operator
        self._held: list[Record] = []

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        effects = self.release() if self._held else []
        try:
            rows = self.operator.apply(record, self.spec.gates[channel])
        except Exception as error:  # whatever a user's function raises fails its task, not the engine
            return [Fail(f"the user function of {self.spec.task} raised {type(error).__name__}: {error}")]
        if self.operator.holds_back:
            return [*effects, *self._hold(rows)]
        return [*effects, *self.emit(rows)] if effects else self.emit(rows)

    def _hold(self, rows: Iterable[Record]) -> list[Effect]:
        """Let the first row out, and the rest when the mailbox gets there."""
        waiting = list(rows)
        if not waiting:
            return []
        self._held.extend(waiting[1:])
        later = [Mail(Release())] if self._held and self.parts.held_output.by_itself() else []
        return [*self.emit(waiting[:1]), *later]

    def release(self) -> list[Effect]:
        """Let out what is held back."""
        held, self._held = self._held, []
        return self.emit(held)

    def cut(self, checkpoint: CheckpointId) -> list[Effect]:
        held = self._held and self.parts.held_output.before_barrier(self._held)
        return [*(self.release() if held else []), *super().cut(checkpoint)]

    def end_input(self) -> list[Effect]:
        held = self._held and self.parts.held_output.before_barrier(self._held)
        return [*(self.release() if held else []), *super().end_input()]

    def take_over(self, state: TaskState) -> None:
        self.operator.restore(state.entries)

    def snapshot_now(self) -> Snapshot:
        heap = self.parts.copying.copy(self.operator.heap)
        return Snapshot(self.fixed_state(), heap, self.operator.describe)
