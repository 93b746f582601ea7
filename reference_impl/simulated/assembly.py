"""Puts attempts of tasks together: their machines, their channels, their logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.ids import AttemptId, TaskId, channel_id
from ..core.sink import DirectSink, TransactionalSink
from ..core.source import SourceTask, SplitLog
from ..core.task import OperatorTask, Output, Task, TaskSpec
from ..core.topology import OperatorSpec, Wire
from .links import DataChannel
from .runner import TaskRunner

if TYPE_CHECKING:
    from .world import World


class Assembly:
    """Makes runners; the channels of an attempt are shared by their two ends."""

    def __init__(self, world: World, logs: Sequence[SplitLog], identity: str) -> None:
        self._world = world
        self._logs = {log.split: log for log in logs}
        self._identity = identity
        self._specs = {task: (spec, subtask) for task, spec, subtask in world.graph.tasks()}
        self._into: dict[TaskId, list[Wire]] = {task: [] for task in self._specs}
        self._out: dict[TaskId, list[Wire]] = {task: [] for task in self._specs}
        for wire in world.graph.wires():
            self._into[wire.receiver].append(wire)
            self._out[wire.sender].append(wire)
        self._channels: dict[tuple[str, AttemptId], DataChannel] = {}

    def runner(self, task: TaskId, attempt: AttemptId, job: int) -> TaskRunner:
        """One attempt of a task, wired, its machine not yet told anything."""
        spec, subtask = self._specs[task]
        into, out = self._into[task], self._out[task]
        inputs = [self._channel(wire, attempt) for wire in into]
        outputs = [self._channel(wire, attempt) for wire in out]
        described = TaskSpec(
            task=task,
            job=job,
            attempt=attempt,
            gates=tuple(wire.gate for wire in into),
            outputs=(Output(partitioning=out[0].partitioning, channels=tuple(range(len(out)))),) if out else (),
            key_groups=self._world.graph.key_groups,
        )
        names = [channel.name for channel in inputs], [channel.name for channel in outputs]
        log = self._world.observer.task_started(task, spec.name, subtask, attempt, job, *names)
        runner = TaskRunner(self._world, self._machine(spec, subtask, described), log, inputs, outputs)
        for number, channel in enumerate(inputs):
            channel.receiver, channel.number = runner, number
            if channel.queue:
                runner.schedule(channel.queue[0][0])
        for channel in outputs:
            channel.sender = runner
        return runner

    def _channel(self, wire: Wire, attempt: AttemptId) -> DataChannel:
        name = channel_id(wire.sender, wire.receiver)
        channel = self._channels.get((name, attempt))
        if channel is None:
            world = self._world
            channel = DataChannel(
                name,
                world.loop,
                world.observer.channel_opened(name, attempt),
                capacity=world.settings.channel_capacity,
                latency=world.settings.channel_latency_us,
                late=world.decisions.of(f"message {name}"),
            )
            self._channels[(name, attempt)] = channel
        return channel

    def _machine(self, spec: OperatorSpec, subtask: int, described: TaskSpec) -> Task:
        config, parts = self._world.config, self._world.parts
        if spec.role == "source":
            logs = [self._logs[split] for split in self._world.graph.splits_of(spec, subtask)]
            return SourceTask(described, config, parts, logs, spec.bounded)
        if spec.role == "operator" and spec.build is not None:
            return OperatorTask(described, config, parts, spec.build())
        if config.sink == "transactional":
            return TransactionalSink(described, config, parts)
        return DirectSink(described, config, parts, self._identity)
