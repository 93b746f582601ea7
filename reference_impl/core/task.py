"""A task: one attempt of one subtask, as a machine that takes an event and returns effects.

This file holds what all tasks share, and the tasks between sources and sinks.
A task is deployed, restores, opens its inputs, runs, and finishes when the
coordinator says that all it did rests on a complete checkpoint.  The end of its
data and its own end are two things (FIN-3): between them lies that checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from .config import Config
from .effects import (
    Effect,
    Fail,
    Load,
    Open,
    Persist,
    Report,
    Restored,
    Send,
    SetTimer,
    Ship,
    Taken,
)
from .errors import Handlers, ProtocolViolated, require
from .events import (
    Answered,
    Arrived,
    Event,
    LoadFailed,
    Mailed,
    PersistFailed,
    Received,
    SnapshotLoaded,
    Ticked,
    TimerFired,
)
from .ids import AttemptId, CheckpointId, TaskId
from .messages import (
    Abort,
    Ack,
    Barrier,
    Complete,
    Decline,
    Deploy,
    Element,
    EndOfData,
    EndOfPartition,
    Finished,
    InputEnded,
    Piece,
    Record,
    Running,
    Terminate,
    Trigger,
)
from .parts import Parts
from .rescale import Gathering, Share
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
    subtask: int = 0
    parallelism: int = 1
    splits: tuple[int, ...] = ()


def _into(channel: int) -> Callable[[Record], int]:
    return lambda row: channel


class Task:
    """What all tasks share: coming up, snapshots, routing, finishing."""

    # Slots, as CPython lays out alike for all objects of a class no more than 30 other attributes, and some tasks
    # have more than that together with what their own kind keeps.
    __slots__ = (
        "_all_outputs", "_gathering", "_handlers", "_messages", "_restoring", "_routes", "config", "deployed",
        "finished", "input_ended", "parts", "rotations", "running", "spec",
    )  # fmt: skip

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        self.spec = spec
        self.config = config
        self.parts = parts
        self.deployed = False
        self.running = False
        self.finished = False
        self.input_ended = False
        self._gathering: Gathering | None = None
        """what is read of the states of another layout, while it is"""
        self.rotations = [0] * len(spec.outputs)
        self._all_outputs = tuple(channel for output in spec.outputs for channel in output.channels)
        self._routes = [route for number, output in enumerate(spec.outputs) for route in self._routers(number, output)]
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
                Ticked: self.on_tick,
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

    clocked = False
    """it goes by processing time, and is to be told it"""

    @property
    def awaits_splits(self) -> bool:
        """Somebody may give it more to read."""
        return False

    @property
    def awaits_time(self) -> bool:
        """A timer in processing time is pending."""
        return False

    def step(self, event: Event) -> list[Effect]:
        """What is to be done about an event, in this order."""
        effects: list[Effect] = self._handlers[type(event)](event)
        return effects

    # -- coming up -----------------------------------------------------------------

    def _on_received(self, event: Received) -> list[Effect]:
        require(event.message.attempt == self.spec.attempt, "a message of another attempt reached a task")
        if self.finished:
            return self.parts.finishing.gone(self, event.message)
        effects: list[Effect] = self._messages[type(event.message)](event.message)
        return effects

    def _on_deploy(self, message: Deploy) -> list[Effect]:
        if self.deployed:
            return []
        self.deployed = True
        if message.finished:
            return self.parts.finishing.on_deploy(self)
        self._restoring = message
        effects = self.parts.startup.on_deploy()
        if message.pieces:
            unchanged = message.handle is not None or message.state is not None
            return [*effects, *self._gather(message.pieces, unchanged=unchanged)]
        if message.handle is not None:
            return [*effects, Load(message.handle)]
        return [*effects, *self.restore(message.state)]

    def _gather(self, pieces: Sequence[Piece], *, unchanged: bool) -> list[Effect]:
        """Read one after the other what all old subtasks left, then take one's share; in an `unchanged`
        layout one's own, and of unions everything."""
        spec, part = self.spec, self.parts.redistribution
        share = Share(
            subtask=spec.subtask,
            parallelism=spec.parallelism,
            key_groups=spec.key_groups,
            splits=spec.splits,
            gates=spec.gates,
            unchanged=unchanged,
        )
        self._gathering = Gathering(part.read(pieces, share), share, pieces[spec.subtask] if unchanged else None)
        return self._go_on_gathering(self._gathering)

    def _go_on_gathering(self, gathering: Gathering) -> list[Effect]:
        handle = gathering.next_handle()
        if handle is not None:
            return [Load(handle)]
        self._gathering = None
        return self.restore(gathering.state(self.parts.redistribution))

    def _on_loaded(self, event: SnapshotLoaded) -> list[Effect]:
        if self._gathering is None:
            return self.restore(event.state)
        self._gathering.take(event.state)
        return self._go_on_gathering(self._gathering)

    @property
    def restored_checkpoint(self) -> CheckpointId:
        """What it was restored from; NO_CHECKPOINT when it began with nothing."""
        return self._restoring.checkpoint or NO_CHECKPOINT

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
        return [*self.parts.startup.on_restored(), Report(self.came_up())]

    def came_up(self) -> Running:
        return Running(attempt=self.spec.attempt, task=self.spec.task)

    # -- snapshots -----------------------------------------------------------------

    def fixed_state(self) -> TaskState:
        """Everything of its state but the working state by key."""
        return TaskState(rotations=list(self.rotations), ended=self.input_ended)

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
        ack = Ack(attempt=spec.attempt, task=spec.task, checkpoint=checkpoint, handle=handle, ended=snapshot.ended)
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

    def _routers(self, number: int, output: Output) -> list[Callable[[Record], int]]:
        """One for each copy of a row that goes out."""
        if output.partitioning == "broadcast":
            return [_into(channel) for channel in output.channels]
        return [self._router(number, output)]

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
        ends = [] if self.holds_end else self.broadcast(EndOfData())
        return [*ends, *self._report_end()]

    @property
    def holds_end(self) -> bool:
        """It tells of the end of its data only when it finishes itself."""
        return False

    def _report_end(self) -> list[Effect]:
        message = InputEnded(attempt=self.spec.attempt, task=self.spec.task)
        return [Report(message), SetTimer("ended", 4 * self.config.retry_us)]

    def on_terminate(self, message: Terminate) -> list[Effect]:
        return self.finish()

    def finish(self) -> list[Effect]:
        """Be gone, and say so; again to whoever did not hear it."""
        gone = Report(Finished(attempt=self.spec.attempt, task=self.spec.task))
        if self.finished:
            return [gone]
        self.finished = True
        if not self.input_ended:
            return [gone]
        held = self.broadcast(EndOfData()) if self.holds_end else []
        return [*held, *self.broadcast(EndOfPartition()), gone]

    def stay_finished(self) -> list[Effect]:
        """It was restored from a snapshot by which it had finished: those downstream wait for the ends alone."""
        self.running = self.input_ended = True
        report = Report(Running(attempt=self.spec.attempt, task=self.spec.task))
        ends = [] if self.holds_end else self.broadcast(EndOfData())
        return [Open(), report, *ends, *self.finish()]

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

    def on_tick(self, event: Ticked) -> list[Effect]:
        raise ProtocolViolated(f"{self.spec.task} does not go by processing time")

    def on_answered(self, event: Answered) -> list[Effect]:
        raise ProtocolViolated(f"{self.spec.task} asked nothing")

    def on_mail(self, event: Mailed) -> list[Effect]:
        effects: list[Effect] = event.mail.open(self)
        return effects
