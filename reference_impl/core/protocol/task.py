"""A task: one attempt of one subtask, a state machine that takes an event and returns effects.

This file holds what all tasks share; `source` and `input_task` are the two kinds of tasks.
A task is deployed, restores its state, opens its inputs, and runs.  At a checkpoint it takes
a snapshot and sends the barrier on (Carbone et al., "Lightweight Asynchronous Snapshots for
Distributed Dataflows", 2015, algorithm 1), and acknowledges when the snapshot is durable, as
in Flink.  It finishes when the coordinator notifies it that a complete checkpoint covers all its work.  So
the end of its data and its own end are two things (FIN-3), and that checkpoint lies between
them.

What that paper does not have is handed to a task by the one who creates it: how it reads a
state of another layout (`StateReader`), which files its snapshots share (`SnapshotFormats`),
and which in-flight data they hold (`InFlightData`; None: all barriers wait their turn, and
there is none).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

import msgspec

from ..decisions.parts import Parts
from ..decisions.tasks import StartStep
from ..job.config import Config
from ..job.routing import Route, routes_of
from ..job.task_spec import TaskSpec
from ..vocabulary.causes import SnapshotNotWritten, SnapshotUnreadable, WhyDeclined
from ..vocabulary.effects import Effect, Fail, Open, Persist, Report, Send, SetTimer, Ship, SnapshotTaken
from ..vocabulary.errors import Handlers, ProtocolViolated
from ..vocabulary.events import (
    Event,
    Fetched,
    LoadFailed,
    Mailed,
    OutputsOvertaken,
    PersistFailed,
    Received,
    SnapshotLoaded,
    Synced,
    TimerFired,
)
from ..vocabulary.formats import Filed, Format
from ..vocabulary.ids import CheckpointId, Handle, following
from ..vocabulary.messages import (
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
from ..vocabulary.state import Sealed, Snapshot, TaskState, without_keyed_state
from ..vocabulary.timeouts import AlignmentTimeout, BufferTimeout, RetryEndReport
from ..vocabulary.views import View

# -- the life of a task --------------------------------------------------------------


class Created(msgspec.Struct, frozen=True):
    """It waits for its deployment."""

    after_end: ClassVar[bool] = False
    """Each state has this: whether all input of the task has ended."""


class Restoring(msgspec.Struct, frozen=True):
    """It is deployed and reads its state; it takes no input yet."""

    deploy: Deploy
    after_end: ClassVar[bool] = False


class Processing(msgspec.Struct, frozen=True):
    """It takes input."""

    after_end: ClassVar[bool] = False


class AwaitingFinalCheckpoint(msgspec.Struct, frozen=True):
    """All its input has ended; it waits for the checkpoint that covers all its work."""

    after_end: ClassVar[bool] = True


class AwaitingCommits(msgspec.Struct, frozen=True):
    """A complete checkpoint covers all its work; it finishes when the external store has answered."""

    after_end: bool
    """if not, the job stops amid its input"""


class HasFinished(msgspec.Struct, frozen=True):
    """It has finished."""

    after_end: bool


TaskLife = Created | Restoring | Processing | AwaitingFinalCheckpoint | AwaitingCommits | HasFinished
CREATED, PROCESSING, AWAITING_FINAL_CHECKPOINT = Created(), Processing(), AwaitingFinalCheckpoint()


# -- what a task is handed -----------------------------------------------------------


class StateReader(Protocol):
    """What a task reads before it starts; each method returns what to read next, and nothing once `state` is
    complete."""

    state: TaskState | None

    def begin(self, message: Deploy) -> list[Effect]: ...

    def loaded(self, event: SnapshotLoaded) -> list[Effect]: ...

    def fetched(self, elements: Sequence[Sequence[Element]]) -> list[Effect]: ...

    def restored(self, checkpoint: CheckpointId, state: TaskState, now: TaskState) -> list[Effect]:
        """The task, whose barriers do not overtake, has restored `state`, and is in the state `now`."""
        ...


class SnapshotFormats(Protocol):
    """In which format each snapshot is written, and in which files (SNAP-2); see `snapshot_files`."""

    def ask(self, checkpoint: CheckpointId, wanted: Format | None) -> None:
        """A barrier, or a trigger, asks for a snapshot in this format.  None: canonical, in all that follows."""
        ...

    def format_of(self, checkpoint: CheckpointId) -> Format | None: ...

    def write(self, checkpoint: CheckpointId, handle: Handle, view: View) -> Filed | None:
        """The files to which the working state by key is written.  None: it is in the snapshot itself."""
        ...

    def acknowledged(self, filed: Filed) -> tuple[Handle, ...]:
        """The files that the task names to the coordinator."""
        ...

    def complete(self, checkpoint: CheckpointId) -> None: ...

    def aborted(self, checkpoint: CheckpointId) -> None: ...


class InFlightData(Protocol):
    """How a task takes part in checkpoints whose barriers may overtake, and the in-flight data of its snapshots
    (FLIP-76); see `unaligned`."""

    keeps_logs: bool

    def step(self, event: Event, task: Task) -> list[Effect]:
        """The event is about in-flight data."""
        ...

    def triggered(self, message: Trigger) -> None:
        """The coordinator triggers a checkpoint here."""
        ...

    def snapshot_taken(self, checkpoint: CheckpointId, missing: tuple[int, ...]) -> None:
        """The task takes its snapshot here; the channels in `missing` have not delivered the barrier."""
        ...

    def barrier(self, checkpoint: CheckpointId, wanted: Format | None) -> list[Effect]:
        """Send the barrier on."""
        ...

    def persist_once_in_flight_known(self, checkpoint: CheckpointId, snapshot: Snapshot, task: Task) -> list[Effect]:
        """Have a snapshot persisted, once its in-flight data is known."""
        ...

    def restored(self, checkpoint: CheckpointId, state: TaskState, now: TaskState) -> list[Effect]:
        """The task has restored `state`, and is in the state `now`: put its in-flight data back."""
        ...


class Task(ABC):
    """What all tasks share: starting, snapshots, routing, finishing."""

    # Slots are faster: without them, CPython no longer shares one layout among objects with more than 30 attributes.
    __slots__ = (
        "_all_outputs",
        "_reading",
        "_routes",
        "config",
        "formats",
        "in_flight",
        "life",
        "parts",
        "rotations",
        "spec",
        "starts_from",
    )  # fmt: skip

    EVENTS: ClassVar[dict[type, str]] = {
        Received: "_on_received",
        SnapshotLoaded: "_on_loaded",
        LoadFailed: "_on_load_failed",
        Fetched: "_on_fetched",
        PersistFailed: "_on_persist_failed",
        Mailed: "on_mail",
        TimerFired: "on_timer",
        OutputsOvertaken: "_on_in_flight",
        Synced: "_on_in_flight",
    }
    """The method for each type of event; a kind of task adds its own.  A method is named here, and looked up in the
    subclass by `__init_subclass__`, since the subclass may override it."""
    MESSAGES: ClassVar[dict[type, str]] = {
        Deploy: "_on_deploy",
        Trigger: "on_trigger",
        Complete: "on_complete",
        Abort: "on_abort",
        Terminate: "on_terminate",
    }
    """the method for each type of control message, by name as in `EVENTS`"""
    _handlers: ClassVar[Handlers]
    _of_messages: ClassVar[Handlers]

    def __init_subclass__(cls) -> None:
        cls._handlers = Handlers({kind: getattr(cls, name) for kind, name in cls.EVENTS.items()})
        cls._of_messages = Handlers({kind: getattr(cls, name) for kind, name in cls.MESSAGES.items()})

    def __init__(
        self,
        spec: TaskSpec,
        config: Config,
        parts: Parts,
        reading: StateReader,
        formats: SnapshotFormats,
        in_flight: InFlightData | None = None,
    ) -> None:
        self.spec = spec
        self.config = config
        self.parts = parts
        self.formats = formats
        self.in_flight = in_flight
        self.life: TaskLife = CREATED
        self.starts_from: CheckpointId | None = None
        """the checkpoint that it restores; None if it starts without one"""
        self.rotations = [0] * len(spec.outputs)
        self._reading = reading
        self._all_outputs = spec.all_outputs
        self._routes: list[Route] | None = None
        """made at the first row: many attempts emit none"""

    @property
    def keeps_logs(self) -> bool:
        """Its input channels are persistent: the driver reports each element that comes, and the task logs it."""
        return self.in_flight is not None and self.in_flight.keeps_logs

    @property
    def has_started(self) -> bool:
        """It has been restored, and took or takes input."""
        return type(self.life) not in (Created, Restoring)

    @property
    def input_ended(self) -> bool:
        return self.life.after_end

    @property
    def finished(self) -> bool:
        return type(self.life) is HasFinished

    @property
    def awaits_commits(self) -> bool:
        return isinstance(self.life, AwaitingCommits)

    holds_end = False
    """it sends the end of its data only when it finishes"""

    clocked = False
    """it uses processing time, and needs ticks"""
    publishes = False
    """all that it receives are transactions of complete checkpoints"""

    @property
    def sealed(self) -> Sequence[Sealed]:
        """Transactions that it has neither committed nor left to another task."""
        return ()

    @property
    def awaits_splits(self) -> bool:
        """An enumerator may assign it more splits."""
        return False

    @property
    def awaits_time(self) -> bool:
        """A timer in processing time is pending."""
        return False

    @abstractmethod
    def let_go(self) -> None:
        """Drop what refers back to it; it is done with."""

    def step(self, event: Event) -> list[Effect]:
        """The effects of an event, in order."""
        effects: list[Effect] = self._handlers[type(event)](self, event)
        return effects

    # -- coming up -----------------------------------------------------------------

    def _on_received(self, event: Received) -> list[Effect]:
        message, spec = event.message, self.spec
        # The driver has dropped the messages of other attempts (ABS-6): one that comes here is an error of a driver.
        if message.job != spec.job:
            raise ProtocolViolated("a message of another job reached a task")
        if message.attempt != spec.attempt:
            raise ProtocolViolated("a message of another attempt reached a task")
        if type(self.life) is HasFinished:
            answer = self.parts.finishing.answer(message, self._finished_report())
            return [Report(answer)] if answer is not None else []
        effects: list[Effect] = self._of_messages[type(message)](self, message)
        return effects

    def _on_deploy(self, message: Deploy) -> list[Effect]:
        if not isinstance(self.life, Created):
            return []
        cancels = self._cancel_aborted(message)
        if message.finished:
            return [*cancels, *self.stay_finished()]
        self.life = Restoring(message)
        self.starts_from = message.checkpoint
        steps = self.parts.startup.steps()  # restore, and only then open the inputs (`open_inputs`)
        before = steps[: steps.index(StartStep.restore)]
        return [*cancels, *(Open() for _ in before), *self._read_on(self._reading.begin(message))]

    def _cancel_aborted(self, message: Deploy) -> list[Effect]:
        """A task that recovers alone takes no part in the checkpoints that were aborted.  It sends a cancel barrier
        for each: the tasks downstream may wait for a barrier that the lost attempt has never sent (ABS-4, UNA-4)."""
        if message.aborted_up_to is None:
            return []
        self.skip_checkpoints(message.aborted_up_to)
        numbers = range(following(message.checkpoint), message.aborted_up_to + 1)
        return [effect for number in numbers for effect in self.broadcast(CancelBarrier(CheckpointId(number)))]

    @abstractmethod
    def skip_checkpoints(self, last: CheckpointId) -> None:
        """Take no part in checkpoints up to this one."""

    def _read_on(self, reads: list[Effect]) -> list[Effect]:
        """Restore when there is nothing more to read."""
        return reads or self.restore(self._reading.state)

    def _on_loaded(self, event: SnapshotLoaded) -> list[Effect]:
        return self._read_on(self._reading.loaded(event))

    def _on_fetched(self, event: Fetched) -> list[Effect]:
        return self._read_on(self._reading.fetched(event.elements))

    def _on_load_failed(self, event: LoadFailed) -> list[Effect]:
        return [Fail(SnapshotUnreadable(self.starts_from, event.reason))]

    def restore(self, state: TaskState | None) -> list[Effect]:
        """Adopt a state (None: start without one), then open the inputs."""
        if state is None:
            return self.on_restored()
        state = self.parts.snapshot_contents.restored(state)  # all of it
        for number, (turn, output) in enumerate(zip(state.rotations, self.spec.outputs, strict=False)):
            self.rotations[number] = turn % len(output.channels)  # an edge may lead to fewer tasks than it did
        self.adopt(state)
        now, checkpoint = self.current_snapshot().materialise(), self.starts_from
        if checkpoint is None:
            raise ProtocolViolated(f"{self.spec.task} restores a state of no checkpoint")
        if self.in_flight is None:
            return [*self._reading.restored(checkpoint, state, now), *self.on_restored()]
        return [*self.in_flight.restored(checkpoint, state, now), *self.on_restored()]

    @abstractmethod
    def adopt(self, state: TaskState) -> None:
        """Make a restored state the task's own."""

    def on_restored(self) -> list[Effect]:
        """The state is restored."""
        return self.open_inputs()

    def open_inputs(self) -> list[Effect]:
        """Take input from now on, and report that the task runs."""
        if isinstance(self.life, Restoring):
            self.life = PROCESSING
        return [Open(), Report(self._running_report())]

    def _running_report(self) -> Running:
        return Running(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task)

    # -- snapshots -----------------------------------------------------------------
    # `take_snapshot` marks the moment.  `persist_current_state` captures the state.  `persist_once_in_flight_known`
    # waits for in-flight data, and `persist` writes, and then acknowledges.  A source begins here with its barrier.  A
    # task with inputs gets here by way of its work: `InputTask._snapshot_and_barrier`, then `Work.snapshot`.

    def unkeyed_state(self) -> TaskState:
        """All its state but the working state by key of its operator."""
        return TaskState(rotations=list(self.rotations), ended=self.life.after_end)

    def current_snapshot(self) -> Snapshot:
        """The state of this moment, which no later record changes (ABS-8)."""
        return without_keyed_state(self.unkeyed_state())

    def take_snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        """Take the snapshot here, in the task's program order."""
        return [SnapshotTaken(checkpoint), *self.persist_current_state(checkpoint)]

    def persist_current_state(self, checkpoint: CheckpointId) -> list[Effect]:
        """Have the current state written, and acknowledge when it is durable (ABS-8)."""
        return self.persist_once_in_flight_known(checkpoint, self.current_snapshot())

    def persist_once_in_flight_known(self, checkpoint: CheckpointId, snapshot: Snapshot) -> list[Effect]:
        """Have a snapshot persisted; one with in-flight data once that is known."""
        snapshot = snapshot.holding(self.parts.snapshot_contents.stored(snapshot.unkeyed))  # all of the state
        if self.in_flight is not None:
            return self.in_flight.persist_once_in_flight_known(checkpoint, snapshot, self)
        return self.persist(checkpoint, snapshot)

    def _on_in_flight(self, event: Event) -> list[Effect]:
        if self.in_flight is None:
            raise ProtocolViolated(f"nothing can be in flight to {self.spec.task} in a snapshot")
        return self.in_flight.step(event, self)

    def persist(self, checkpoint: CheckpointId, snapshot: Snapshot) -> list[Effect]:
        """Have a snapshot made durable, and then acknowledge it (ABS-8)."""
        spec, synchronous = self.spec, self.config.synchronous
        handle = self.parts.naming.handle(spec.job, checkpoint, spec.task, spec.attempt)
        filed = self.formats.write(checkpoint, handle, snapshot.view)
        if filed is not None:
            snapshot = without_keyed_state(snapshot.unkeyed)
        ack = Ack(
            job=spec.job,
            attempt=spec.attempt,
            task=spec.task,
            checkpoint=checkpoint,
            handle=handle,
            ended=snapshot.ended,
            logs=snapshot.logs,
            in_flight=snapshot.in_flight,
            files=self.formats.acknowledged(filed) if filed is not None else (),
        )
        if self.config.snapshots_in_memory:
            return [Ship(snapshot, synchronous, ack)]
        until = self.parts.storing.acknowledged_after()  # the write has to be durable
        return [Persist(checkpoint, handle, snapshot, synchronous, (Report(ack),), filed, until)]

    def barrier(self, checkpoint: CheckpointId) -> list[Effect]:
        """Send the barrier on, behind the output so far."""
        wanted = self.formats.format_of(checkpoint)
        if self.in_flight is not None:
            return self.in_flight.barrier(checkpoint, wanted)
        barrier = Barrier(checkpoint, None, wanted)
        return [Send(channel, barrier) for channel in self._all_outputs]

    def decline(self, checkpoint: CheckpointId, cause: WhyDeclined) -> Effect:
        spec = self.spec
        decline = Decline(job=spec.job, attempt=spec.attempt, task=spec.task, checkpoint=checkpoint, cause=cause)
        return Report(decline)

    def _on_persist_failed(self, event: PersistFailed) -> list[Effect]:
        return [self.decline(event.checkpoint, SnapshotNotWritten(event.reason))]

    # -- output --------------------------------------------------------------------

    def broadcast(self, element: Element) -> list[Effect]:
        return [Send(channel, element) for channel in self._all_outputs]

    def emit(self, rows: Iterable[Record]) -> list[Effect]:
        routes = self._routes
        if routes is None:
            routes = self._routes = routes_of(self.spec.outputs, self.spec.key_groups, self.rotations)
        sent: list[Effect] = []
        for row in rows:  # a comprehension would be a function of its own, made for each record
            for route in routes:
                sent.append(Send(route(row), row))
        return sent

    # -- the end -------------------------------------------------------------------

    def end_input(self) -> list[Effect]:
        """All its input has ended: send the end downstream, and report it to the coordinator until that answers."""
        life = self.life
        if isinstance(life, AwaitingCommits | HasFinished):
            # A task that finished amid its input still sees the end of what its senders had sent.
            self.life = type(life)(after_end=True)
        else:
            self.life = AWAITING_FINAL_CHECKPOINT
        ends = [] if self.holds_end else self.broadcast(EndOfData())
        return [*ends, *self._report_end()]

    def _report_end(self) -> list[Effect]:
        message = InputEnded(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task)
        return [Report(message), SetTimer(RetryEndReport(), 4 * self.config.retry_us)]

    def on_terminate(self, message: Terminate) -> list[Effect]:
        return self.finish()

    def await_commits(self) -> None:
        """A complete checkpoint covers all its work, which is still to be settled."""
        self.life = AwaitingCommits(self.life.after_end)

    def finish(self) -> list[Effect]:
        """Finish and report it; report it again on request."""
        report = Report(self._finished_report())
        if isinstance(self.life, HasFinished):
            return [report]
        after_end = self.life.after_end
        self.life = HasFinished(after_end)
        if not after_end:
            return [report]
        return [*self._send_ends(() if self.holds_end else (EndOfData(),)), report]

    def _send_ends(self, sent: Sequence[Element] = ()) -> list[Effect]:
        return [effect for end in self.parts.finishing.unsent_ends(sent) for effect in self.broadcast(end)]

    def _finished_report(self) -> Finished:
        return Finished(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task)

    def stay_finished(self) -> list[Effect]:
        """It had finished before the snapshot that it restores: it only sends its ends, which tasks downstream need."""
        self.life = HasFinished(after_end=True)
        return [Open(), Report(self._running_report()), *self._send_ends(), Report(self._finished_report())]

    def on_timer(self, event: TimerFired) -> list[Effect]:
        timeout = event.timeout
        if isinstance(timeout, RetryEndReport):
            return [] if isinstance(self.life, HasFinished) else self._report_end()
        return self._on_in_flight(event) if isinstance(timeout, AlignmentTimeout | BufferTimeout) else []

    # -- checkpoints of each kind of task -----------------------------------------------------

    @abstractmethod
    def on_trigger(self, message: Trigger) -> list[Effect]:
        """The coordinator triggers a checkpoint here."""

    @abstractmethod
    def on_complete(self, message: Complete) -> list[Effect]:
        """A checkpoint is complete."""

    @abstractmethod
    def on_abort(self, message: Abort) -> list[Effect]:
        """The coordinator aborted a checkpoint."""

    def on_mail(self, event: Mailed) -> list[Effect]:
        raise ProtocolViolated(f"{self.spec.task} put nothing off")
