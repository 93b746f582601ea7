"""A node: the process in which one task lives, or several.

`python -m cutproof.reference_impl.processes.node CONFIGURATION` starts one by hand; a launcher forks it (see
`launcher`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from .. import observed as o
from ..core.vocabulary.causes import AnyCause, ConnectionBroke
from ..core.vocabulary.errors import expect, require
from ..core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from ..core.vocabulary.messages import ToCoordinator
from ..driver.control import reach_task
from ..driver.durable.stores import Stores
from ..driver.injected_exceptions import ExceptionInjection
from ..driver.machines import Machines, Unmade
from ..driver.runner import TaskRunner
from ..wire import Codec
from .configuration import STATE, NodeConfiguration, started_by_hand
from .disk.determinants import DiskDeterminants
from .disk.rocks import WorkingStates
from .local_slots import UNUSABLE, take_slot, unusable
from .network.channels import InputChannel, OutputChannel, Reception
from .network.connections import Connection, dial
from .network.frames import (
    Ask,
    Broke,
    ControlFrame,
    Count,
    Down,
    Failed,
    Felt,
    ForTask,
    FromTask,
    GivenUp,
    Heartbeat,
    Hello,
    JobOver,
    Moved,
    RaiseException,
    TaskFacts,
    Up,
)
from .network.numbered_input import NumberedInput
from .network.numbered_output import NumberedOutput
from .stores.unsettled import is_handed, oldest_unsettled
from .world import ProcessWorld, live

CODEC: Codec[ControlFrame] = Codec(ControlFrame)
RETRY_US = 10_000
"""of the machine's clock, between two tries to reach a coordinator"""


class Slot:
    """One attempt of a task in this process: its runner and its two kinds of channels."""

    def __init__(
        self,
        runner: TaskRunner,
        inputs: Sequence[InputChannel | NumberedInput],
        outputs: Sequence[OutputChannel],
        order: DiskDeterminants | None = None,
    ) -> None:
        """`order`: the determinants of a task with local recovery."""
        self.runner = runner
        self.inputs = inputs
        self.outputs = outputs
        self.order = order
        self.is_closed = False
        self.facts: tuple[bool, CheckpointId | None, bool] = (False, None, False)

    def close(self) -> None:
        self.is_closed = True
        for output in self.outputs:
            output.close()
        for channel in self.inputs:
            channel.close()
        if self.order is not None:
            self.order.close()


class Coordination:
    """The connection to the coordinator; while there is none, messages are lost."""

    def __init__(self, world: NodeWorld) -> None:
        self._world = world
        self._connection: Connection | None = None
        self._connect()

    def to_coordinator(self, task: TaskId, message: ToCoordinator) -> None:
        self._send(FromTask(self._world.clock.tick(), task, message))

    def failed(self, task: TaskId, attempt: AttemptId, cause: AnyCause) -> None:
        self._send(Failed(self._world.clock.tick(), task, attempt, cause))

    def _send(self, frame: ControlFrame) -> None:
        if self._connection is not None:
            self._connection.send(frame)

    def _connect(self, *_: object) -> None:
        world, configuration = self._world, self._world.node
        sock = dial(configuration.coordinator_port)
        self._connection = Connection(sock, CODEC, world.outbox, self._take, self._ended, greets=True)
        attempts = {task: world.attempt_of(task) for task in configuration.tasks}
        known = configuration.process, configuration.incarnation, attempts, world.job_number
        self._send(Hello(world.clock.tick(), *known))

    def beat(self, *_: object) -> None:
        self._send(Heartbeat(self._world.clock.tick()))
        self._world.loop.after_real(self._world.configuration.heartbeat_us, self.beat)

    def _take(self, frame: ControlFrame) -> None:
        world = self._world
        if isinstance(frame, ForTask):
            world.enter(frame.message.job)
            reach_task(world, frame.task, frame.message)
        elif isinstance(frame, JobOver):
            world.end_job(frame.job)
        elif isinstance(frame, GivenUp):
            world.give_up()
        elif isinstance(frame, Moved):
            world.receiver_moved(frame.task, frame.attempt)

    def _ended(self, reason: str) -> None:
        self._connection = None
        self._world.loop.after_real(RETRY_US, self._connect)


class NodeWorld(ProcessWorld):
    """The world of a node's tasks."""

    def __init__(self, configuration: NodeConfiguration, listener: socket.socket) -> None:
        super().__init__(configuration)
        self.stores = Stores(self, self.files, self.jobs, self.arms)
        self.node = configuration
        self._of_jobs: dict[int, Machines] = {}
        self._states = WorkingStates(self._path(STATE) / self._own_name())
        self._slots: dict[tuple[TaskId, AttemptId], Slot] = {}
        self._latest: dict[TaskId, Slot] = {}
        self._injections: dict[TaskId, list[ExceptionInjection]] = {}
        self._moved: dict[TaskId, AttemptId] = {}
        """the newest attempts of the tasks that recovered locally, here or elsewhere, as far as this node was
        notified"""
        self.job_number = 0
        """of the newest job that the coordinator has named"""
        self.job_over = False
        self._reception = Reception(listener, self.outbox)
        self._orders[Ask] = self._count
        self._orders[RaiseException] = self._inject_exception
        self._coordination = Coordination(self)
        self._coordination.beat()

    @property
    def control(self) -> Coordination:
        return self._coordination

    @property
    def machines(self) -> Machines:
        """Of the job that the coordinator has named: a later one may be rescaled."""
        if self.job_number not in self._of_jobs:
            self._of_jobs[self.job_number] = Machines(self.job, max(1, self.job_number), self._states.open)
        return self._of_jobs[self.job_number]

    def attempt_of(self, task: TaskId) -> AttemptId | None:
        slot = self._latest.get(task)
        return slot.runner.attempt if slot is not None and slot.runner.alive else None

    # -- tasks ---------------------------------------------------------------------------

    def runner(self, task: TaskId, attempt: AttemptId) -> TaskRunner | None:
        slot = self._slots.get((task, attempt))
        return slot.runner if slot is not None else None

    def come_up(self, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None = None) -> None:
        """Make room for an attempt, unless it or a newer one has been here, or the job has ended."""
        if self.job_over:
            return
        require(channels_of is None or self._is_local, "no task recovers locally between channels that have no log")
        before = self._latest.get(task)
        if before is not None:
            if before.runner.attempt >= attempt:
                return
            before.runner.end(o.RunEnd.CANCELLED)
            self._release_slot(before)
        try:
            slot = self._local_slot(task, attempt, channels_of) if self._is_local else self._slot(task, attempt)
        except Unmade as error:
            self._not_up(task, attempt, error.cause)
            return
        if slot is None:
            return
        self._slots[(task, attempt)] = self._latest[task] = slot
        for injection in self._injections.get(task, ()):
            injection.into(slot.runner)
        self.supervision.send(Up(self.clock.tick(), task, attempt))

    def _slot(self, task: TaskId, attempt: AttemptId) -> Slot:
        operator, subtask = self.machines.place(task)
        machine = self.machines.machine(task, attempt, self.job_number, self.jobs.begins)
        input_ends, output_ends = self.machines.inputs(task), self.machines.outputs(task)
        names = [ends.name for ends in input_ends], [ends.name for ends in output_ends]
        log = self.observer.task_started(task, operator, subtask, attempt, self.job_number, *names)
        refilled = self.observer.channel_refilled
        inputs = [
            InputChannel(ends, self.settings.channel_capacity, self.outbox, partial(refilled, ends.name, attempt))
            for ends in input_ends
        ]
        outputs = [
            OutputChannel(
                ends,
                attempt,
                self.node.routes[ends.name],
                self.outbox,
                self.observer.channel_opened(ends.name, attempt),
                self.perturbations.of(f"message {ends.name}"),
            )
            for ends in output_ends
        ]
        runner = TaskRunner(self, machine, log, inputs, outputs)
        slot = Slot(runner, inputs, outputs)
        for output in outputs:
            output.sender = runner
        for channel in inputs:
            self._attach(channel, runner)
        return slot

    @property
    def _is_local(self) -> bool:
        """Tasks recover locally, in channels that outlive them (UNA-4)."""
        return self.config.recovers_from_logs

    def _local_slot(self, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None) -> Slot | None:
        try:
            made = take_slot(self, task, attempt, channels_of)
        except UNUSABLE as error:
            self._not_up(task, attempt, unusable(error))
            return None
        if made is None:
            return None
        whole = attempt if channels_of is None else channels_of
        for channel in made.inputs:
            self._attach_for_good(channel, whole)
        for output in made.outputs:
            moved = self._moved.get(output.receiver, whole)
            if moved > whole:
                output.receiver_moved(moved)
        return Slot(made.runner, made.inputs, made.outputs, made.order)

    def _not_up(self, task: TaskId, attempt: AttemptId, cause: AnyCause) -> None:
        """An attempt has failed before it ran."""
        self.observer.saw(o.task_failed(task, attempt, cause, None))
        self._coordination.failed(task, attempt, cause)

    def _attach_for_good(self, channel: NumberedInput, whole: AttemptId) -> None:
        """Accept one connection after another; that one breaks is no failure."""

        def broken(reason: str) -> None:
            sender = AttemptId(expect(channel.sender_attempt, int))
            self.supervision.send(Broke(self.clock.tick(), channel.name, sender, reason))

        channel.on_broken = broken
        channel.when_ready = self._reception.retry_waiting
        if channel.name in self.node.felt:
            channel.on_felt = self._felt(channel.name, channel.attempt)
        self._reception.expect(channel, whole)

    def receiver_moved(self, task: TaskId, attempt: AttemptId) -> None:
        """From now on another attempt of a task receives: every sender is to send to it, also those that start
        later."""
        self._moved[task] = max(attempt, self._moved.get(task, attempt))
        for slot in self._latest.values():
            for output in slot.outputs:
                if isinstance(output, NumberedOutput) and output.receiver == task:
                    output.receiver_moved(attempt)

    def _felt(self, name: str, attempt: AttemptId) -> Callable[[int, int], None]:
        def felt(transit_us: int, pieces: int) -> None:
            self.supervision.send(Felt(self.clock.tick(), name, attempt, transit_us, pieces))

        return felt

    def _attach(self, channel: InputChannel, runner: TaskRunner) -> None:
        """Accept a channel's connection, and react to its end."""
        attempt = runner.attempt
        sender = channel.sender.name

        def broken(reason: str) -> None:
            if runner.alive:
                self.supervision.send(Broke(self.clock.tick(), channel.name, attempt, reason))
                self.task_failed(runner, ConnectionBroke(sender, reason), None)

        channel.receiver = runner
        channel.on_broken = broken
        if channel.name in self.node.felt:
            channel.on_felt = self._felt(channel.name, attempt)
        self._reception.expect(channel, attempt)

    def _release_slot(self, slot: Slot) -> None:
        """An attempt is over: close its channels, and report to the harness how it ended."""
        if not slot.is_closed:
            self.journal.flush()
            runner = slot.runner
            self._close_slot(slot)
            self.supervision.send(Down(self.clock.tick(), runner.name, runner.attempt))

    def task_failed(self, runner: TaskRunner, cause: AnyCause, fault: int | None) -> None:
        if not runner.alive:
            return
        runner.end(o.RunEnd.FAILED)
        self.observer.saw(o.task_failed(runner.name, runner.attempt, cause, fault))
        self._coordination.failed(runner.name, runner.attempt, cause)

    def enter(self, job: int) -> None:
        """The coordinator names a job: if it is a later one, the job before has ended, even if that message was
        lost."""
        if job > self.job_number:
            self.end_job(self.job_number)
            self.job_number, self.job_over = job, False

    def end_job(self, job: int) -> None:
        """A job has ended: end its tasks.  Those of a former job have been ended already."""
        if job != self.job_number:
            return
        self.job_over = True
        for slot in self._slots.values():
            slot.runner.end_in_order()

    def give_up(self) -> None:
        """Another process has taken this one's place: end in order."""
        for slot in self._slots.values():
            slot.runner.end(o.RunEnd.CANCELLED)
        self._close()

    def shut_down(self) -> None:
        """Close the channels; tasks that are alive now stay alive in the journal."""
        self.report_facts()
        self.journal.flush()
        self._reception.closed = True
        for slot in self._slots.values():
            if not slot.is_closed:
                self._close_slot(slot)

    def _close_slot(self, slot: Slot) -> None:
        slot.close()
        self._states.close(slot.runner.name, slot.runner.attempt)

    # -- what the harness asks ---------------------------------------------------------------

    def report_facts(self) -> None:
        for slot in self._latest.values():
            runner = slot.runner
            if not runner.alive:
                self._release_slot(slot)
                continue
            facts = (any(runner.blocked), oldest_unsettled(runner.task), is_handed(runner))
            if facts != slot.facts:
                slot.facts = facts
                self.supervision.send(TaskFacts(self.clock.tick(), runner.name, *facts))

    def _count(self, order: Ask) -> None:
        for slot in self._latest.values():
            runner = slot.runner
            if runner.alive:
                idle = not runner.has_work and all(channel.is_idle for channel in slot.outputs)
                mark = runner.newest_mark
                self.supervision.send(
                    Count(
                        self.clock.tick(),
                        runner.name,
                        runner.attempt,
                        mark[1] if mark is not None and mark[0] == order.checkpoint else None,
                        runner.done,
                        idle,
                        {channel.name: channel.sent for channel in slot.outputs},
                        {channel.name: channel.consumed for channel in slot.inputs},
                    )
                )

    def _inject_exception(self, order: RaiseException) -> None:
        injection = ExceptionInjection(self, order.fault, order.always)
        self._injections.setdefault(order.task, []).append(injection)
        slot = self._latest.get(order.task)
        if slot is not None:
            injection.into(slot.runner)


def main(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """Be a node until the harness, or the coordinator, ends the process."""
    configuration = msgspec.msgpack.decode(config, type=NodeConfiguration)
    (listener,) = sockets.values()
    live(NodeWorld(configuration, listener))


if __name__ == "__main__":
    started_by_hand(main)
