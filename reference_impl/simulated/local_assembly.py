"""Puts tasks together between persistent channels: all of them at once, or one that recovers locally (UNA-4)."""

from __future__ import annotations

from typing import Protocol

from ..core.decisions.parts import Parts
from ..core.job.config import Config
from ..core.vocabulary.errors import expect
from ..core.vocabulary.ids import AttemptId, Ends, TaskId
from ..driver.local_runner import LocalRunner
from ..driver.machines import Job
from ..driver.numbered import DurableDeterminants
from ..driver.runner import TaskRunner
from .assembly import Assembly, AssemblyWorld
from .links import DataChannel
from .logs import AnyLog, LogShelf, OwnLog, SpilledLog
from .persistent_channels import Inlet, Outlet, PersistentChannel


class LocalWorld(AssemblyWorld, Protocol):
    """The world of tasks that recover locally."""

    config: Config
    parts: Parts

    @property
    def job_number(self) -> int:
        """The number of the job that runs, or ran last."""


class Era:
    """What lasts from one attempt of all tasks to the next, while attempts of single tasks end."""

    def __init__(self) -> None:
        self.channels: dict[str, PersistentChannel] = {}
        self.orders: dict[TaskId, DurableDeterminants] = {}
        self.working: dict[TaskId, LocalRunner] = {}


class LocalAssembly(Assembly):
    """The channels belong to an attempt of all tasks; locally recovered tasks take their places at the channels'
    ends."""

    _world: LocalWorld

    def __init__(self, world: LocalWorld, job: Job) -> None:
        super().__init__(world, job)
        self._eras: dict[AttemptId, Era] = {}

    def runner(self, task: TaskId, attempt: AttemptId, job: int, channels_of: AttemptId | None = None) -> TaskRunner:
        operator, subtask = self._machines.place(task)
        machine = self._machines.machine(task, attempt, job, self._world.jobs.begins, channels_of)
        whole = attempt if channels_of is None else channels_of
        era = self._eras.setdefault(whole, Era())
        order = era.orders.setdefault(task, DurableDeterminants())
        if task in era.working:
            era.working[task].detach()
            order.lose()
        inputs, outputs = self._machines.inputs(task), self._machines.outputs(task)
        world = self._world
        names = [ends.name for ends in inputs], [ends.name for ends in outputs]
        log = world.observer.task_started(task, operator, subtask, attempt, job, *names)
        outlets = [self._outlet(ends, attempt, whole) for ends in outputs]
        inlets = [self._inlet(ends, whole) for ends in inputs]
        runner = LocalRunner(world, machine, log, inlets, outlets, order, returns=channels_of is not None)
        _join(runner, inlets, outlets)
        era.working[task] = runner
        return runner

    def channel(self, name: str, attempt: AttemptId) -> DataChannel | None:
        """A channel of the era to which an attempt belongs."""
        whole = max((one for one in self._eras if one <= attempt), default=None)
        channel = self._eras[whole].channels.get(name) if whole is not None else None
        return channel.inlet if channel is not None else None

    def _of(self, ends: Ends, whole: AttemptId) -> PersistentChannel:
        name, channels = ends.name, self._eras[whole].channels
        if name not in channels:
            world = self._world
            log = world.observer.channel_opened(name, whole)
            capacity = world.settings.channel_capacity
            channels[name] = PersistentChannel(name, world.parts, capacity, log, self._log(ends, whole))
        return channels[name]

    def _log(self, ends: Ends, whole: AttemptId) -> AnyLog:
        """The one log of a channel: its own, or the one that its receiver writes."""
        world = self._world
        if not world.config.recovers_from_logs:
            return OwnLog()
        number = self._machines.inputs(ends.receiver).index(ends)
        folder = world.parts.naming.logs(world.job_number, ends.receiver, whole)
        return SpilledLog(expect(world.spills.store, LogShelf), f"{folder}/{number}")

    def _outlet(self, ends: Ends, attempt: AttemptId, whole: AttemptId) -> Outlet:
        channel = self._of(ends, whole)
        return Outlet(
            channel, channel.account if attempt == whole else self._world.observer.channel_opened(channel.name, attempt)
        )

    def _inlet(self, ends: Ends, whole: AttemptId) -> Inlet:
        world = self._world
        late = world.perturbations.of(f"message {ends.name}")
        return Inlet(self._of(ends, whole), world.loop, latency=self._latency(ends), late=late)


def assembly_of(world: LocalWorld, job: Job) -> Assembly:
    """What puts the tasks of a world together; it depends on how the world's job recovers."""
    return (LocalAssembly if job.config.failover == "local" else Assembly)(world, job)


def _join(runner: LocalRunner, inlets: list[Inlet], outlets: list[Outlet]) -> None:
    """From now on this attempt is at the ends of these channels."""
    for number, inlet in enumerate(inlets):
        channel = inlet.channel
        inlet.receiver, inlet.number = runner, number
        inlet.sender = channel.outlet.sender if channel.outlet is not None else None
        channel.receive_at(inlet)
        if not runner.returns:
            inlet.open(())
    for outlet in outlets:
        outlet.sender, outlet.channel.outlet = runner, outlet
        if outlet.channel.inlet is not None:
            outlet.channel.inlet.sender = runner
