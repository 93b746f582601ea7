"""The coordinator's process.

It listens for nodes, and knows in which process each task lives.  A node whose connection ends is lost with its tasks.
A node that sends no heartbeat is given up, and another one is expected in its place.  A deployment waits for a process
that has not connected yet; any other message to it is lost, as messages may be.
"""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable, Sequence

import msgspec

from .. import observed as o
from ..core.lifecycle.coordinator import Coordinator
from ..core.vocabulary.causes import AnyCause, HeartbeatMissed, JobHasEnded, ProcessGone
from ..core.vocabulary.effects import EndJob, Return
from ..core.vocabulary.errors import expect
from ..core.vocabulary.events import Commanded, CompletedCheckpoint, CoordinatorStarted, JobRecord, TaskLost
from ..core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from ..core.vocabulary.messages import AnyControl, Deploy, ToCoordinator, ToTask, kind_of
from ..core.vocabulary.stages import NAMES
from ..core.vocabulary.status_changes import AnyStatusChange
from ..driver.control import Meddling, Meddlings, reach_coordinator
from ..driver.coordination import CoordinatorRunner
from ..driver.durable.records import Records
from ..wire import Codec
from .configuration import CoordinatorConfiguration, started_by_hand
from .loop import monotonic_us
from .network.connections import Connection
from .network.entrance import Entrance
from .network.frames import (
    Completed,
    ControlFrame,
    Ended,
    Failed,
    ForTask,
    Freeze,
    FromTask,
    GivenUp,
    Hello,
    Issue,
    JobFacts,
    JobOver,
    Lost,
    Meddle,
    Moved,
    Returned,
    Submit,
    TakeOver,
)
from .world import CRASHED, ProcessWorld, live

CODEC: Codec[ControlFrame] = Codec(ControlFrame)


class Guest:
    """A node's connection."""

    def __init__(self, sock: socket.socket, nodes: Nodes) -> None:
        self.hello: Hello | None = None
        """its first message"""
        self.last_message_us = monotonic_us()
        self.given_up = False
        self._nodes = nodes
        self.connection = Connection(sock, CODEC, nodes.world.outbox, self._take, self._ended)

    def send(self, frame: ControlFrame) -> None:
        self.connection.send(frame)

    def _take(self, frame: ControlFrame) -> None:
        self.last_message_us = monotonic_us()
        if self.given_up and self.connection.is_open:
            self.send(GivenUp(self._nodes.world.clock.tick()))
        self._nodes.take(self, frame)

    def _ended(self, reason: str) -> None:
        self._nodes.disconnected(self)


class Nodes:
    """The nodes that are connected, and the control plane to their tasks; `driver.ports.Orders`."""

    def __init__(self, world: CoordinatorProcessWorld, listener: socket.socket) -> None:
        self.world = world
        self.meddlings = Meddlings()
        self._processes = world.coordination.processes
        self._guests: dict[str, Guest] = {}
        self.connections: list[Guest] = []
        """of all nodes that are connected, also of processes that others have replaced"""
        self._deployed: dict[TaskId, tuple[AttemptId, Guest]] = {}
        self._ordered: dict[TaskId, tuple[AttemptId, Guest]] = {}
        """by task: the newest attempt that was ordered to start, and its node"""
        self._waiting: dict[TaskId, Deploy] = {}
        """deployments of tasks whose process is not there yet"""
        self._moved: dict[TaskId, AttemptId] = {}
        """the newest attempts of the tasks that recovered locally since all tasks were deployed together"""
        self.watched_us = monotonic_us()
        """when it last looked for nodes that have sent nothing for too long"""
        Entrance(listener, world.outbox, lambda sock: self.connections.append(Guest(sock, self)))
        self._watch()

    # -- messages ------------------------------------------------------------------------

    def to_task(self, task: TaskId, message: ToTask) -> None:
        self._carry(task, message, lambda *_: self._deliver(task, message))

    def to_coordinator(self, task: TaskId, message: ToCoordinator) -> None:
        self._carry(task, message, lambda *_: self._deliver_to_coordinator(task, message))

    def _carry(self, task: TaskId, message: AnyControl, deliver: Callable[[object, object], None]) -> None:
        """Deliver a message: at once, unless a schedule perturbation or a fault delays or changes it."""
        world, kind = self.world, kind_of(message)
        delay = world.perturbations.late(f"control {kind} {task}")
        meddling = self.meddlings.take(kind, task) if self.meddlings.waiting else None
        if meddling is not None:
            world.fired(meddling.fault, f"{kind} of {task}: {meddling.how}", message.attempt)
            if meddling.how == "lose":
                return
            if meddling.how == "repeat":
                world.loop.after(delay + meddling.by_us, deliver)
            else:
                delay += meddling.by_us
        if delay:
            world.loop.after(delay, deliver)
        else:
            deliver(None, None)

    def _deliver(self, task: TaskId, message: ToTask) -> None:
        guest = self._guests.get(self._processes[task])
        if isinstance(message, Deploy):
            if self._is_late(task, message, guest):
                return
            if guest is None:
                self._waiting[task] = message
                return
            self._deployed[task] = self._ordered[task] = (message.attempt, guest)
            if message.channels_of is not None:
                self._announce_move(task, message.attempt)
            else:
                self._moved.pop(task, None)
        if guest is not None:
            guest.send(ForTask(self.world.clock.tick(), task, message))

    def _is_late(self, task: TaskId, message: Deploy, guest: Guest | None) -> bool:
        """An order to start that a later order has followed, or a repeated one whose process has ended, and the attempt
        with it: each attempt starts once."""
        attempt, ordered = self._ordered.get(task, (None, None))
        if message.job != self.world.job_number or message.attempt != self.world.attempt_of(task):
            return True
        return attempt == message.attempt and ordered is not guest

    def _announce_move(self, task: TaskId, attempt: AttemptId) -> None:
        """Notify senders of the new attempt.

        Its senders may still be connected with an earlier attempt that stands still; those that start later may reach
        that one first.
        """
        self._moved[task] = attempt
        for guest in self._guests.values():
            guest.send(Moved(self.world.clock.tick(), task, attempt))

    def _deliver_to_coordinator(self, task: TaskId, message: ToCoordinator) -> None:
        reach_coordinator(self.world, self.world.runner_now, task, message)

    def announce_end(self, job: int) -> None:
        """The job has ended."""
        self._deployed.clear()
        self._ordered.clear()
        self._waiting.clear()
        self._moved.clear()
        for guest in self._guests.values():
            guest.send(JobOver(self.world.clock.tick(), job))

    # -- nodes ---------------------------------------------------------------------------

    def take(self, guest: Guest, frame: ControlFrame) -> None:
        if isinstance(frame, Hello):
            self._welcome(guest, frame)
        elif isinstance(frame, FromTask):
            self.to_coordinator(frame.task, frame.message)
        elif isinstance(frame, Failed):
            self.world.lose(frame.task, frame.attempt, frame.cause)

    def _welcome(self, guest: Guest, hello: Hello) -> None:
        guest.hello = hello
        before = self._guests.get(hello.process)
        if before is not None and expect(before.hello, Hello).incarnation > hello.incarnation:
            guest.given_up = True
            guest.send(GivenUp(self.world.clock.tick()))
            return
        self._guests[hello.process] = guest
        if before is not None:
            self._lose(before, ProcessGone())
        for task, attempt in self._moved.items():
            guest.send(Moved(self.world.clock.tick(), task, attempt))
        former = 0 < hello.job < self.world.job_number
        if former:
            guest.send(JobOver(self.world.clock.tick(), hello.job))
        for task, living in hello.attempts.items():
            if living is not None and not former:
                self._deployed[task] = (living, guest)
            waiting = self._waiting.pop(task, None)
            if waiting is not None and waiting.attempt == self.world.attempt_of(task):
                self._deliver(task, waiting)

    def disconnected(self, guest: Guest) -> None:
        """A node's connection has ended: what was deployed there is lost."""
        if guest in self.connections:
            self.connections.remove(guest)
        if guest.hello is not None and self._guests.get(guest.hello.process) is guest:
            del self._guests[guest.hello.process]
        self._lose(guest, ProcessGone())

    def _lose(self, guest: Guest, cause: AnyCause) -> None:
        for task, (attempt, where) in list(self._deployed.items()):
            if where is guest:
                del self._deployed[task]
                self.world.observer.saw(o.task_failed(task, attempt, cause, None))
                self.world.lose(task, attempt, cause)

    def _watch(self, *_: object) -> None:
        """Give up nodes that have sent nothing for too long; not when this process itself stood still."""
        settings = self.world.coordination
        now_us = monotonic_us()
        stood_still = now_us - self.watched_us > 4 * settings.heartbeat_us
        self.watched_us = now_us
        for process, guest in list(self._guests.items()):
            if stood_still:
                guest.last_message_us = now_us
            elif now_us - guest.last_message_us > settings.heartbeat_timeout_us:
                guest.given_up = True
                del self._guests[process]
                incarnation = expect(guest.hello, Hello).incarnation
                self.world.supervision.send(Lost(self.world.clock.tick(), process, incarnation))
                self._lose(guest, HeartbeatMissed())
        self.world.loop.after_real(settings.heartbeat_us, self._watch)


class CoordinatorProcessWorld(ProcessWorld):
    """The world of the coordinator: jobs one after the other; a new process takes a job over where another coordinator
    died."""

    def __init__(self, configuration: CoordinatorConfiguration, listener: socket.socket) -> None:
        super().__init__(configuration)
        self.records = Records(self, self.files, self.jobs, self.arms)
        self.coordination = configuration
        self.runner_now: CoordinatorRunner | None = None
        self.job_number = 0
        self._frozen_job: int | None = None
        self._retained: tuple[CompletedCheckpoint, ...] = ()
        self._facts: JobFacts | None = None
        self._nodes = Nodes(self, listener)
        self._orders[Submit] = self._submit
        self._orders[TakeOver] = self._take_over
        self._orders[Issue] = self._issue
        self._orders[Meddle] = self._meddle
        self._orders[Freeze] = self._freeze

    @property
    def control(self) -> Nodes:
        return self._nodes

    @property
    def freezing(self) -> bool:
        return self._frozen_job == self.job_number

    def attempt_of(self, task: TaskId) -> AttemptId | None:
        """The number that the coordinator has for a task; tasks that restart by themselves have one of their own.  None
        before the first job."""
        return self.runner_now.machine.attempt_of(task) if self.runner_now is not None else None

    # -- jobs ------------------------------------------------------------------------------

    def _submit(self, order: Submit) -> None:
        self._start(order, None)

    def _take_over(self, order: TakeOver) -> None:
        self.observer.saw(o.CoordinatorChanged(True, None))
        self._start(order, self.jobs.load(order.job))

    def _start(self, order: Submit | TakeOver, record: JobRecord | None) -> None:
        if self.runner_now is not None:
            self.runner_now.alive = False  # from here on timers and answers of a former job have no effect in this one
        self.job_number = order.job
        machine = Coordinator(
            order.job,
            self.job.graph_of(order.job),
            self.config,
            self.parts,
            first_attempt=order.attempt,
            first_checkpoint=CheckpointId(order.checkpoint),
            initial=self._retained if order.recall else order.initial,
            had_snapshot=order.recall or bool(order.initial),
            named=order.named,
            claims=order.claims,
        )
        self.runner_now = CoordinatorRunner(self, machine)
        self.runner_now.feed(CoordinatorStarted(record))

    def job_ended(self, effect: EndJob) -> None:
        if self.runner_now is None:
            return
        self._retained = self.runner_now.machine.retained
        self.observer.saw(o.job_ended(self.job_number, effect.status, effect.checkpoint, effect.cause))
        self._nodes.announce_end(self.job_number)
        self.supervision.send(Ended(self.clock.tick(), self.job_number, effect.status, _numbers(self._retained)))

    def lose(self, task: TaskId, attempt: AttemptId, cause: AnyCause) -> None:
        if self.runner_now is not None:
            self.runner_now.feed(TaskLost(task, attempt, cause))

    def lose_coordinator(self, fault: int | None, down_us: int, cause: AnyCause | None = None) -> None:
        """This process is the coordinator: it dies, of a fault or of an exception that its state machine raised."""
        if fault is None:
            traceback.print_exc()
            self.flush()
            raise SystemExit(CRASHED)
        self.supervision.die()

    # -- news ------------------------------------------------------------------------------

    def status_changed(self, job: int, change: AnyStatusChange) -> None:
        self.observer.saw(o.StatusChanged(job, change))

    def complete(self, snapshot: CompletedCheckpoint) -> None:
        self.observer.saw(o.CheckpointCompleted.of(snapshot))
        self.supervision.send(Completed(self.clock.tick(), snapshot.checkpoint))

    def command_returned(self, effect: Return) -> None:
        self.observer.saw(o.command_returned(effect.command, effect.checkpoint, effect.cause))
        self.supervision.send(Returned(self.clock.tick(), effect.command, effect.checkpoint))

    def report_facts(self) -> None:
        if self.runner_now is None:
            return
        machine = self.runner_now.machine
        newest = machine.newest
        facts = JobFacts(
            0,
            self.job_number,
            machine.newest_attempt,
            NAMES[type(machine.stage)],
            machine.has_begun,
            machine.is_ending,
            machine.has_checkpoint_under_way or self.records.is_deleting,
            newest.checkpoint if newest is not None else None,
            _numbers(machine.retained),
        )
        if facts != self._facts:
            self._facts = facts
            self.supervision.send(msgspec.structs.replace(facts, stamp=self.clock.tick()))

    def shut_down(self) -> None:
        """There is nothing to end in order."""

    # -- what the harness asks ---------------------------------------------------------------

    def _issue(self, order: Issue) -> None:
        self.observer.saw(
            o.CommandIssued(order.command, order.kind, order.drain, snapshot=order.snapshot, format=order.format)
        )
        if order.job < self.job_number:
            self.command_returned(Return(order.command, cause=JobHasEnded()))
        elif order.job > self.job_number or self.runner_now is None:
            return  # this process has just started, and does not know the job yet
        elif self.points.reach("savepoint-requested", None, "before", self.runner_now):
            self.runner_now.feed(Commanded(order.command, order.kind, order.drain, order.format, order.snapshot))
            self.points.reach("savepoint-requested", None, "after", self.runner_now)

    def _meddle(self, order: Meddle) -> None:
        task = TaskId(order.task) if order.task is not None else None
        self._nodes.meddlings.waiting.append(Meddling(order.how, order.message, task, order.fault, order.by_us))

    def _freeze(self, order: Freeze) -> None:
        if order.job >= self.job_number:  # the order to freeze a job may arrive before the one that submits it
            self._frozen_job = None if order.off else order.job


def _numbers(snapshots: Sequence[CompletedCheckpoint]) -> tuple[int, ...]:
    return tuple(int(one.checkpoint) for one in snapshots)


def main(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """Be the coordinator until the harness ends the run."""
    configuration = msgspec.msgpack.decode(config, type=CoordinatorConfiguration)
    (listener,) = sockets.values()
    live(CoordinatorProcessWorld(configuration, listener))


if __name__ == "__main__":
    started_by_hand(main)
