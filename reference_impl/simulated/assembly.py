"""Puts attempts of tasks together: their machines, their channels, their logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..core.vocabulary.ids import AttemptId, Ends, TaskId
from ..driver.machines import Job, Machines
from ..driver.runner import TaskRunner, TaskWorld
from .links import DataChannel
from .loop import Loop
from .storage import JobStore


class AssemblyWorld(TaskWorld, Protocol):
    """The world into which tasks are put."""

    jobs: JobStore
    nodes: Mapping[TaskId, int]
    loop: Loop


class Assembly:
    """Makes runners; the channels of an attempt are shared by their two ends."""

    def __init__(self, world: AssemblyWorld, job: Job) -> None:
        self._world = world
        self._job = job
        self._machines = Machines(job)
        self._channels: dict[tuple[str, AttemptId], DataChannel] = {}

    def lay_out(self, number: int) -> None:
        """What is made from now on belongs to the job of this number."""
        if self._job.graph_of(number) is not self._machines.graph:
            self._machines = Machines(self._job, number)

    def runner(self, task: TaskId, attempt: AttemptId, job: int, channels_of: AttemptId | None = None) -> TaskRunner:
        """One attempt of a task with its channels; its state machine has not taken any event yet.  `channels_of`: see
        `LocalAssembly`.

        Raises Unmade, and then has changed nothing.
        """
        operator, subtask = self._machines.place(task)
        machine = self._machines.machine(task, attempt, job, self._world.jobs.begins)
        inputs = [self._channel(ends, attempt) for ends in self._machines.inputs(task)]
        outputs = [self._channel(ends, attempt) for ends in self._machines.outputs(task)]
        names = [channel.name for channel in inputs], [channel.name for channel in outputs]
        log = self._world.observer.task_started(task, operator, subtask, attempt, job, *names)
        runner = TaskRunner(self._world, machine, log, inputs, outputs)
        for number, channel in enumerate(inputs):
            channel.receiver, channel.number = runner, number
            if channel.queue:
                runner.schedule(channel.queue[0][0])
        for channel in outputs:
            channel.sender = runner
        return runner

    def channel(self, name: str, attempt: AttemptId) -> DataChannel | None:
        """A channel of an attempt, if it has been opened."""
        return self._channels.get((name, attempt))

    def _channel(self, ends: Ends, attempt: AttemptId) -> DataChannel:
        name = ends.name
        channel = self._channels.get((name, attempt))
        if channel is None:
            world = self._world
            channel = DataChannel(
                name,
                world.loop,
                world.observer.channel_opened(name, attempt),
                capacity=world.settings.channel_capacity,
                latency=self._latency(ends),
                late=world.perturbations.of(f"message {name}"),
            )
            self._channels[(name, attempt)] = channel
        return channel

    def _latency(self, ends: Ends) -> int:
        """None between tasks of one node, if such channels are local."""
        settings, nodes = self._world.settings, self._world.nodes
        if settings.local_channels and nodes[ends.sender] == nodes[ends.receiver]:
            return 0
        return settings.channel_latency_us
