"""Slots of tasks with local recovery: numbered channels, logs and determinants on disk (UNA-4)."""

from __future__ import annotations

from typing import Protocol

from .. import observed as o
from ..core.decisions.parts import Parts
from ..core.vocabulary.causes import FilesUnusable
from ..core.vocabulary.effects import Effect
from ..core.vocabulary.errors import CorruptSnapshot
from ..core.vocabulary.events import Event
from ..core.vocabulary.ids import AttemptId, Ends, TaskId
from ..core.vocabulary.messages import Element
from ..driver.local_runner import LocalRunner
from ..driver.machines import Machines, Unmade
from ..driver.runner import TaskWorld
from ..trace import ChannelLog, ProcessObserver
from .configuration import NodeConfiguration
from .disk.determinants import ORDER, DiskDeterminants
from .disk.files import DiskJobs
from .disk.journal import Journal
from .disk.logs import DiskLogs
from .network.connections import Outbox
from .network.numbered_input import NumberedInput
from .network.numbered_output import NumberedOutput

UNUSABLE = (OSError, CorruptSnapshot)
"""Raised where a log or determinants cannot be read or written."""


class LocalWorld(TaskWorld, Protocol):
    """The node in which tasks recover locally."""

    parts: Parts
    journal: Journal
    jobs: DiskJobs
    logs: DiskLogs
    node: NodeConfiguration
    outbox: Outbox
    job_number: int

    @property
    def observer(self) -> ProcessObserver: ...

    @property
    def machines(self) -> Machines: ...


def unusable(error: Exception) -> FilesUnusable:
    return FilesUnusable(str(error))


def take_place(
    world: LocalWorld, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None
) -> DiskDeterminants | None:
    """The determinants of an attempt; None where a later attempt has the task's place, or nobody needs the attempt.

    The folder's name is in the journal before the folder exists, so that it can be deleted.
    """
    name = f"{_folder(world, task, attempt, channels_of)}/{ORDER}"
    world.observer.saw(o.LogOpened(name, task, attempt))
    world.journal.flush()
    order = DiskDeterminants(world.logs.root / name, world.logs.root.parent, attempt, returns=channels_of is not None)
    if order.is_fenced:
        order.close()
        return None
    return order


def _folder(world: LocalWorld, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None) -> str:
    return world.parts.naming.logs(world.job_number, task, attempt if channels_of is None else channels_of)


def take_slot(world: LocalWorld, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None) -> LocalSlot | None:
    """None where `take_place` returns None.  Raises OSError, CorruptSnapshot and Unmade, and then leaves nothing
    open."""
    order = take_place(world, task, attempt, channels_of)
    if order is None:
        return None
    try:
        return LocalSlot(world, task, attempt, channels_of, order)
    except (*UNUSABLE, Unmade):
        order.close()
        raise


class DiskRunner(LocalRunner):
    """If a file cannot be read or written, the task fails, and its process goes on."""

    __slots__ = ()

    def perform(self, effects: list[Effect] | tuple[Effect, ...]) -> None:
        try:
            super().perform(effects)
        except UNUSABLE as error:
            self.fail(unusable(error))

    def deliver(self, event: Event, owed_to: int | None = None) -> None:
        try:
            super().deliver(event, owed_to)
        except UNUSABLE as error:
            self.fail(unusable(error))


class LocalSlot:
    """One attempt of a task between channels that outlive it."""

    def __init__(
        self,
        world: LocalWorld,
        task: TaskId,
        attempt: AttemptId,
        channels_of: AttemptId | None,
        order: DiskDeterminants,
    ) -> None:
        self._world = world
        self._attempt = attempt
        self.order = order
        self._whole = attempt if channels_of is None else channels_of
        self._folder = _folder(world, task, attempt, channels_of)
        machines = world.machines
        operator, subtask = machines.place(task)
        machine = machines.machine(task, attempt, world.job_number, world.jobs.begins, channels_of)
        inputs, outputs = machines.inputs(task), machines.outputs(task)
        returns = channels_of is not None
        self.inputs = [self._input(number, ends, returns) for number, ends in enumerate(inputs)]
        names = [ends.name for ends in inputs], [ends.name for ends in outputs]
        log = world.observer.task_started(task, operator, subtask, attempt, world.job_number, *names)
        self.outputs = [self._output(ends) for ends in outputs]
        try:
            self.runner = DiskRunner(world, machine, log, self.inputs, self.outputs, self.order, returns=returns)
        except UNUSABLE:
            world.observer.saw(o.RunEnded(log.run, o.RunEnd.FAILED))
            for output in self.outputs:
                output.close()
            raise
        for output in self.outputs:
            output.sender = self.runner
            output.when_known = self.runner.learned
        for channel in self.inputs:
            channel.receiver = self.runner
            if not returns:
                channel.open(())

    def _input(self, number: int, ends: Ends, returns: bool) -> NumberedInput:
        world = self._world

        def opened() -> ChannelLog:
            return world.observer.channel_refilled(ends.name, self._attempt)

        def stored() -> dict[int, Element]:
            return world.logs.take_over(log, channel.flushed, lambda: self.order.is_fenced)

        log = f"{self._folder}/{number}"
        channel = NumberedInput(
            ends,
            number,
            self._attempt,
            world.outbox,
            self.order,
            world.parts.local_recovery,
            opened,
            stored,
            returns=returns,
        )
        if not returns:
            stored()  # there is nothing yet
        return channel

    def _output(self, ends: Ends) -> NumberedOutput:
        world, name = self._world, ends.name
        return NumberedOutput(
            ends,
            self._attempt,
            world.node.routes[name],
            world.outbox,
            world.observer.channel_opened(name, self._attempt),
            world.perturbations.of(f"message {name}"),
            whole=self._whole,
            capacity=world.settings.channel_capacity,
            part=world.parts.local_recovery,
        )
