"""A task: one attempt of one subtask, a state machine that takes an event and returns effects.

This file holds what all tasks share, and the tasks between sources and sinks.
A task is deployed, restores its state, opens its inputs, and runs.  It finishes when the
coordinator notifies it that a complete checkpoint covers all its work.  So the end of its
data and its own end are two things (FIN-3), and that checkpoint lies between them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..decisions.parts import Parts
from ..extensions.in_flight import InFlight, unpack
from ..extensions.persistent import Ledger
from ..job.config import Config
from ..job.routing import Output as Output
from ..job.routing import routers
from ..job.task_spec import TaskSpec as TaskSpec
from ..lifecycle.reading import Reading
from ..vocabulary.effects import (
    Effect,
    Fail,
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
from ..vocabulary.errors import Handlers, ProtocolViolated, require
from ..vocabulary.events import (
    Answered,
    Arrived,
    Event,
    Fetched,
    LoadFailed,
    Mailed,
    OutputsOvertaken,
    PersistFailed,
    Received,
    SnapshotLoaded,
    Synced,
    Ticked,
    TimerFired,
)
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import (
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
    Record,
    Running,
    Terminate,
    Trigger,
)
from ..vocabulary.state import Snapshot, TaskState
from ..vocabulary.timeouts import RetryEndReport

NO_CHECKPOINT = CheckpointId(0)
"""Below every checkpoint's id."""


class Task:
    """What all tasks share: starting, snapshots, routing, finishing."""

    # Slots, since CPython gives all objects of a class one layout only for up to 30 other attributes.  Some tasks have
    # more than that, together with those of their subclass.
    __slots__ = (
        "_all_outputs",
        "_handlers",
        "_messages",
        "_reading",
        "_restoring",
        "_routes",
        "alignment_timeouts_us",
        "config",
        "deployed",
        "finished",
        "in_flight",
        "input_ended",
        "parts",
        "rotations",
        "running",
        "spec",
    )  # fmt: skip

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        self.spec = spec
        self.config = config
        self.parts = parts
        self.deployed = False
        self.running = False
        self.finished = False
        self.input_ended = False
        self.in_flight = InFlight(parts.capture, self._ledger() if self.keeps_logs else None)
        self.alignment_timeouts_us: dict[CheckpointId, int | None] = {}
        """by checkpoint in which the task is to take part: the alignment timeout of its barriers"""
        self._reading = Reading(spec, parts)
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
                Fetched: self._on_fetched,
                Synced: self._on_synced,
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

    @property
    def keeps_logs(self) -> bool:
        """Its input channels are persistent: the driver reports each element that comes, and the task logs it."""
        config, spec = self.config, self.spec
        return config.keeps_logs and (spec.overtaken or (config.recovers_from_logs and bool(spec.gates)))

    def _ledger(self) -> Ledger:
        spec, config = self.spec, self.config
        folder = self.parts.naming.logs(spec.job, spec.task, spec.channels_of or spec.attempt)
        logs = [f"{folder}/{channel}" for channel, _ in enumerate(spec.gates)]
        return Ledger(logs, self.parts.persisting, config.spill_after_us * (config.spilling == "buffer-timeout"))

    clocked = False
    """it uses processing time, and needs ticks"""

    @property
    def awaits_splits(self) -> bool:
        """An enumerator may assign it more splits."""
        return False

    @property
    def awaits_time(self) -> bool:
        """A timer in processing time is pending."""
        return False

    def step(self, event: Event) -> list[Effect]:
        """The effects of an event, in order."""
        effects: list[Effect] = self._handlers[type(event)](event)
        return effects

    # -- coming up -----------------------------------------------------------------

    def _on_received(self, event: Received) -> list[Effect]:
        message, spec = event.message, self.spec
        require(message.job == spec.job, "a message of another job reached a task")
        require(message.attempt == spec.attempt, "a message of another attempt reached a task")
        if self.finished:
            answer = self.parts.finishing.answer(message, self._finished_report())
            return [Report(answer)] if answer is not None else []
        effects: list[Effect] = self._messages[type(event.message)](event.message)
        return effects

    def _on_deploy(self, message: Deploy) -> list[Effect]:
        if self.deployed:
            return []
        self.deployed = True
        if message.finished:
            return self.stay_finished()
        self._restoring = message
        effects = self.parts.startup.on_deploy()
        return [*effects, *self._read_on(self._reading.begin(message))]

    def _read_on(self, reads: list[Effect]) -> list[Effect]:
        """Restore when there is nothing more to read."""
        return reads or self.restore(self._reading.state)

    def _on_loaded(self, event: SnapshotLoaded) -> list[Effect]:
        return self._read_on(self._reading.loaded(event.state))

    def _on_fetched(self, event: Fetched) -> list[Effect]:
        return self._read_on(self._reading.fetched(event.elements))

    @property
    def restored_checkpoint(self) -> CheckpointId:
        """The checkpoint that it restored; NO_CHECKPOINT if it started without one."""
        return self._restoring.checkpoint or NO_CHECKPOINT

    def _on_load_failed(self, event: LoadFailed) -> list[Effect]:
        checkpoint = self._restoring.checkpoint
        return [Fail(f"the snapshot of checkpoint {checkpoint} could not be read: {event.reason}")]

    def restore(self, state: TaskState | None) -> list[Effect]:
        """Take over a state (None: start without one), then open the inputs."""
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
        """Make a restored state the task's own."""

    def opened(self) -> list[Effect]:
        """The state is restored: take input, and report that the task runs."""
        self.running = True
        return [*self.parts.startup.on_restored(), Report(self.came_up())]

    def came_up(self) -> Running:
        return Running(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task)

    # -- snapshots -----------------------------------------------------------------

    def fixed_state(self) -> TaskState:
        """Its state without the keyed working state."""
        return TaskState(rotations=list(self.rotations), ended=self.input_ended)

    def snapshot_now(self) -> Snapshot:
        return Snapshot(self.fixed_state(), {}, lambda heap: [])

    def record(self, checkpoint: CheckpointId) -> list[Effect]:
        """Take the snapshot here, in the task's program order."""
        return [Taken(checkpoint), *self.snapshot(checkpoint)]

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        """Have the current state written, and acknowledge when it is durable (ABS-8)."""
        return self.write(checkpoint, self.snapshot_now())

    def write(self, checkpoint: CheckpointId, snapshot: Snapshot) -> list[Effect]:
        """Have a snapshot written, once its in-flight data is known."""
        if self.in_flight.hold(checkpoint, snapshot):
            return self.write_whole()
        return self._write(checkpoint, snapshot)

    def write_whole(self) -> list[Effect]:
        """Have the snapshots written whose in-flight data is complete now."""
        asked = self.in_flight.secure()
        return [*asked, *(effect for whole in self.in_flight.whole() for effect in self._write(*whole))]

    def _on_synced(self, event: Synced) -> list[Effect]:
        if self.in_flight.ledger is not None:
            self.in_flight.ledger.synced(event.serial)
        return self.write_whole()

    def _on_overtaken(self, event: OutputsOvertaken) -> list[Effect]:
        self.in_flight.overtook(event.checkpoint, event.passed)
        return self.write_whole()

    def _write(self, checkpoint: CheckpointId, snapshot: Snapshot) -> list[Effect]:
        spec, synchronous = self.spec, self.config.synchronous
        handle = self.parts.naming.handle(spec.job, checkpoint, spec.task, spec.attempt)
        ack = Ack(
            job=spec.job,
            attempt=spec.attempt,
            task=spec.task,
            checkpoint=checkpoint,
            handle=handle,
            ended=snapshot.ended,
            logs=snapshot.logs,
        )
        if self.config.memory:
            return [Ship(snapshot, synchronous, ack)]
        return [Persist(checkpoint, handle, snapshot, synchronous, (Report(ack),))]

    def barrier(self, checkpoint: CheckpointId) -> list[Effect]:
        """Send the barrier on: behind the waiting output, or before it when the alignment timeout is 0."""
        barrier = Barrier(checkpoint, self.alignment_timeouts_us.pop(checkpoint, None))
        overtaken = self.overtaken_outputs(barrier.alignment_timeout_us)
        in_order: list[Effect] = [Send(channel, barrier) for channel in self._all_outputs if channel not in overtaken]
        return [*in_order, Overtake(barrier, overtaken)] if overtaken else in_order

    def overtaken_outputs(self, alignment_timeout_us: int | None) -> tuple[int, ...]:
        """The output channels in which a barrier with this alignment timeout overtakes the waiting output."""
        if alignment_timeout_us != 0:
            return ()
        return tuple(channel for output in self.spec.outputs if output.overtaken for channel in output.channels)

    def begin_in_flight(self, checkpoint: CheckpointId, missing: tuple[int, ...]) -> None:
        """Record in-flight data: of these input channels until they deliver the barrier, and of the outputs."""
        overtaken = self.overtaken_outputs(self.alignment_timeouts_us.get(checkpoint))
        if missing or overtaken:
            self.in_flight.begin(checkpoint, missing, overtaken)

    def decline(self, checkpoint: CheckpointId, reason: str) -> Effect:
        spec = self.spec
        return Report(Decline(job=spec.job, attempt=spec.attempt, task=spec.task, checkpoint=checkpoint, reason=reason))

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
        """All its input has ended: send the end downstream, and report it to the coordinator until that answers."""
        self.input_ended = True
        ends = [] if self.holds_end else self.broadcast(EndOfData())
        return [*ends, *self._report_end()]

    @property
    def holds_end(self) -> bool:
        """It sends the end of its data only when it finishes."""
        return False

    def _report_end(self) -> list[Effect]:
        message = InputEnded(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task)
        return [Report(message), SetTimer(RetryEndReport(), 4 * self.config.retry_us)]

    def on_terminate(self, message: Terminate) -> list[Effect]:
        return self.finish()

    def finish(self) -> list[Effect]:
        """Finish and report it; report it again on request."""
        report = Report(self._finished_report())
        if self.finished:
            return [report]
        self.finished = True
        if not self.input_ended:
            return [report]
        held: tuple[Element, ...] = (EndOfData(),) if self.holds_end else ()
        return [*(effect for end in (*held, EndOfPartition()) for effect in self.broadcast(end)), report]

    def _finished_report(self) -> Finished:
        return Finished(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task)

    def stay_finished(self) -> list[Effect]:
        """It had finished before the snapshot that it restores: it only sends its ends, which tasks downstream need."""
        self.running = self.input_ended = self.finished = True
        ends = self.parts.finishing.ends_again((EndOfData(), EndOfPartition()))
        sent = [effect for end in ends for effect in self.broadcast(end)]
        return [Open(), Report(self.came_up()), *sent, Report(self._finished_report())]

    def on_timer(self, event: TimerFired) -> list[Effect]:
        if isinstance(event.timeout, RetryEndReport) and not self.finished:
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
        raise ProtocolViolated(f"{self.spec.task} put nothing off")
