"""A task: one attempt of one subtask, as a machine that takes an event and returns effects.

This file holds what all tasks share, and the tasks between sources and sinks.
A task is deployed, restores, opens its inputs, runs, and finishes when the
coordinator says that all it did rests on a complete checkpoint.  The end of its
data and its own end are two things (FIN-3): between them lies that checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from .config import Config
from .effects import (
    Effect,
    Fail,
    Load,
    Open,
    Overtake,
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
    OutputsOvertaken,
    PersistFailed,
    Received,
    SnapshotLoaded,
    Ticked,
    TimerFired,
)
from .ids import AttemptId, CheckpointId, TaskId
from .in_flight import InFlight, unpack
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
from .routing import Output as Output
from .routing import routers
from .state import Snapshot, TaskState

NO_CHECKPOINT = CheckpointId(0)
"""Below every checkpoint's id."""


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
    overtaken: bool = False
    """barriers may overtake what is in its inputs"""
    partitioning: tuple[str, ...] = ()
    """of each of the operator's inputs"""


class Task:
    """What all tasks share: coming up, snapshots, routing, finishing."""

    # Slots, as CPython lays out alike for all objects of a class no more than 30 other attributes, and some tasks
    # have more than that together with what their own kind keeps.
    __slots__ = (
        "_all_outputs", "_gathering", "_handlers", "_messages", "_restoring", "_routes", "config", "deployed",
        "finished", "in_flight", "input_ended", "parts", "patience", "rotations", "running", "spec",
    )  # fmt: skip

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        self.spec = spec
        self.config = config
        self.parts = parts
        self.deployed = False
        self.running = False
        self.finished = False
        self.input_ended = False
        self.in_flight = InFlight(parts.capture)
        self.patience: dict[CheckpointId, int | None] = {}
        """of the barriers of checkpoints that it is to take part in"""
        self._gathering: Gathering | None = None
        """what is read of the states of another layout, while it is"""
        self.rotations = [0] * len(spec.outputs)
        self._all_outputs = tuple(channel for output in spec.outputs for channel in output.channels)
        self._routes = [
            route
            for number, output in enumerate(spec.outputs)
            for route in routers(output, spec.key_groups, self.rotations, number)
        ]
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
                OutputsOvertaken: self._on_overtaken,
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
            return [*effects, *self._gather(message.pieces, message.senders, unchanged=unchanged)]
        if message.handle is not None:
            return [*effects, Load(message.handle)]
        return [*effects, *self.restore(message.state)]

    def _gather(self, pieces: Sequence[Piece], senders: Sequence[Sequence[Piece]], *, unchanged: bool) -> list[Effect]:
        """Read one after the other what all old subtasks left, then take one's share; in an `unchanged`
        layout one's own, and of unions everything."""
        spec, part = self.spec, self.parts.redistribution
        share = Share(
            subtask=spec.subtask,
            parallelism=spec.parallelism,
            key_groups=spec.key_groups,
            splits=spec.splits,
            gates=spec.gates,
            partitioning=spec.partitioning,
            unchanged=unchanged,
        )
        own = pieces[spec.subtask] if unchanged else None
        self._gathering = Gathering(part.read(pieces, share), share, own, senders)
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
                self.rotations[:] = state.rotations
            self.take_over(state)
            queued = self.parts.capture.restored(state.queued)
            now = msgspec.structs.replace(
                self.snapshot_now().materialise(),
                queued={channel: list(passing) for channel, passing in queued.items()},
                unsent=state.unsent,
                replays=state.replays,
            )
            effects.append(Restored(self._restoring.checkpoint or NO_CHECKPOINT, now))
            effects.extend(self.in_flight.put_back(queued, state.replays))
            effects.extend(
                Send(channel, element) for channel, passing in state.unsent.items() for element in unpack(passing)
            )
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
        """Have a snapshot written, once what was in flight is known."""
        if self.in_flight.hold(checkpoint, snapshot):
            return self.write_whole()
        return self._write(checkpoint, snapshot)

    def write_whole(self) -> list[Effect]:
        """Have those snapshots written that waited for what was in flight, and wait no more."""
        return [effect for whole in self.in_flight.whole() for effect in self._write(*whole)]

    def _on_overtaken(self, event: OutputsOvertaken) -> list[Effect]:
        self.in_flight.overtook(event.checkpoint, event.passed)
        return self.write_whole()

    def _write(self, checkpoint: CheckpointId, snapshot: Snapshot) -> list[Effect]:
        spec, synchronous = self.spec, self.config.synchronous
        handle = self.parts.naming.handle(spec.job, checkpoint, spec.task, spec.attempt)
        ack = Ack(attempt=spec.attempt, task=spec.task, checkpoint=checkpoint, handle=handle, ended=snapshot.ended)
        if self.config.memory:
            return [Ship(snapshot, synchronous, ack)]
        return [Persist(checkpoint, handle, snapshot, synchronous, (Report(ack),))]

    def barrier(self, checkpoint: CheckpointId) -> list[Effect]:
        """The barrier goes on: in line, or ahead of what waits in the outputs, as it has patience."""
        barrier = Barrier(checkpoint, self.patience.pop(checkpoint, None))
        ahead = self.overtaken_outputs(barrier.patience)
        in_line: list[Effect] = [Send(channel, barrier) for channel in self._all_outputs if channel not in ahead]
        return [*in_line, Overtake(barrier, ahead)] if ahead else in_line

    def overtaken_outputs(self, patience: int | None) -> tuple[int, ...]:
        """The output channels in which a barrier that has this patience is put in front."""
        if patience != 0:
            return ()
        return tuple(channel for output in self.spec.outputs if output.overtaken for channel in output.channels)

    def begin_in_flight(self, checkpoint: CheckpointId, missing: tuple[int, ...]) -> None:
        """Record what is in flight: of these input channels until they deliver the barrier, and in the outputs."""
        ahead = self.overtaken_outputs(self.patience.get(checkpoint))
        if missing or ahead:
            self.in_flight.begin(checkpoint, missing, overtakes_outputs=bool(ahead))

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
