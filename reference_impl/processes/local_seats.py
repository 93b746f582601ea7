"""Seats of tasks that can recover alone: numbered channels, logs and orders of receipt on disk (UNA-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.ids import AttemptId, ChannelId, TaskId
from ..driver.local_runner import LocalRunner
from ..trace import ChannelLog
from .numbered import NumberedInput, NumberedOutput
from .receipts import ORDER, DiskReceipts

if TYPE_CHECKING:
    from .node import NodeWorld


class LocalSeat:
    """One attempt of a task between channels that outlive it."""

    def __init__(self, world: NodeWorld, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None) -> None:
        self._world = world
        self._task = task
        self._attempt = attempt
        self._whole = attempt if channels_of is None else channels_of
        self._folder = world.parts.naming.logs(world.job_number, task, self._whole)
        machines = world.machines
        names = machines.inputs(task), machines.outputs(task)
        operator, subtask = machines.place(task)
        log = world.observer.task_started(task, operator, subtask, attempt, world.job_number, *names)
        self.order = self._take_place()
        returns = channels_of is not None
        self.inputs = [self._input(number, name, returns) for number, name in enumerate(names[0])]
        self.outputs = [self._output(name) for name in names[1]]
        machine = machines.machine(task, attempt, world.job_number, world.jobs.begins, channels_of)
        self.runner = LocalRunner(world, machine, log, self.inputs, self.outputs, self.order, returns=returns)
        for output in self.outputs:
            output.sender = self.runner
            output.when_known = self.runner.learned
        for channel in self.inputs:
            channel.receiver = self.runner
            if not returns:
                channel.open(())

    def _take_place(self) -> DiskReceipts:
        """Its order of receipt; on record before it is there, as whatever has to be deleted."""
        world, name = self._world, f"{self._folder}/{ORDER}"
        world.observer.log_opened(name, self._task, self._attempt)
        world.journal.flush()
        return DiskReceipts(world.logs.root / name, world.logs.root.parent, self._attempt)

    def _input(self, number: int, name: ChannelId, returns: bool) -> NumberedInput:
        world = self._world

        def opened() -> ChannelLog:
            return world.journal.channel_refilled(name, self._attempt)

        log = f"{self._folder}/{number}"
        channel = NumberedInput(
            name,
            number,
            self._attempt,
            world.outbox,
            self.order,
            world.parts.local_recovery,
            opened,
            lambda: world.logs.take_over(log, channel.flushed),
            returns=returns,
        )
        if not returns:
            world.logs.take_over(log, channel.flushed)  # there is none yet
        return channel

    def _output(self, name: ChannelId) -> NumberedOutput:
        world = self._world
        return NumberedOutput(
            name,
            self._attempt,
            world.node.routes[name],
            world.outbox,
            world.journal.channel_opened(name, self._attempt),
            world.decisions.of(f"message {name}"),
            whole=self._whole,
            capacity=world.settings.channel_capacity,
            part=world.parts.local_recovery,
        )
