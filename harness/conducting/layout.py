"""Who lives where: the processes, nodes and channels of a scenario, and what each process is told at its start."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec

from ...faults.plan import ChannelFault, KillDatabase, KillProxy
from ...reference_impl.core.ids import TaskId
from ...reference_impl.core.topology import JobGraph
from ...reference_impl.driver.settings import Settings
from ...reference_impl.processes.configuration import (
    JOURNAL,
    STORE,
    Configuration,
    CoordinatorConfiguration,
    NodeConfiguration,
    encode,
)
from ...reference_impl.processes.sinks import DATABASE, FILES, Place
from ..scenario import Scenario
from ..subjects import process_job

COORDINATOR = "coordinator"
GIVEN_UP_US = 1_500_000
"""of the machine's clock: a node that gives no sign of life for longer is given up for dead"""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a job and where they live: each task in a process that bears its name."""

    tasks: tuple[TaskId, ...]
    operators: frozenset[TaskId]
    """tasks that run a user function"""
    sinks: tuple[TaskId, ...]
    nodes: int
    channels: dict[str, tuple[TaskId, TaskId]]
    """name: sender and receiver"""

    @staticmethod
    def of(graph: JobGraph, nodes: int) -> Placement:
        tasks = list(graph.tasks())
        return Placement(
            tasks=tuple(task for task, _, _ in tasks),
            operators=frozenset(task for task, spec, _ in tasks if spec.role == "operator"),
            sinks=tuple(task for task, spec, _ in tasks if spec.role == "sink"),
            nodes=nodes,
            channels={f"{wire.sender}>{wire.receiver}": (wire.sender, wire.receiver) for wire in graph.wires()},
        )

    def on_node(self, node: int) -> tuple[TaskId, ...]:
        """As the simulated world places them, so that a scenario means the same tasks."""
        return tuple(task for number, task in enumerate(self.tasks) if number % self.nodes == node)

    def outputs(self, task: str) -> list[str]:
        return [name for name, (sender, _) in self.channels.items() if sender == task]

    def inputs(self, task: str) -> list[str]:
        return [name for name, (_, receiver) in self.channels.items() if receiver == task]


def proxied(scenario: Scenario, placement: Placement) -> tuple[str, ...]:
    """The channels that go through a proxy: those a fault of the plan hits, or all when the proxy dies."""
    if any(isinstance(fault, KillProxy) for fault in scenario.faults):
        return tuple(placement.channels)
    hit = {f"{fault.sender}>{fault.receiver}" for fault in scenario.faults if isinstance(fault, ChannelFault)}
    return tuple(name for name in placement.channels if name in hit)


def store_of(scenario: Scenario) -> str:
    """Where sinks write: the database where the plan kills it, else one of the two by where the scenario was
    drawn from, which shrinking does not change."""
    if any(isinstance(fault, KillDatabase) for fault in scenario.faults):
        return DATABASE
    return DATABASE if zlib.crc32(scenario.seed.encode()) % 2 else FILES


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What all processes of a run are told alike."""

    folder: Path
    job: bytes
    settings: Settings
    scale: int
    epoch_us: int
    points: frozenset[str]
    detailed: bool
    sink: Place
    run: str
    ports: dict[str, int]
    """where each process listens"""
    routes: dict[str, int]
    """where each channel's sender connects to"""
    felt: frozenset[str]

    @property
    def supervision(self) -> Path:
        return self.folder / "s"

    @property
    def store(self) -> Path:
        return self.folder / STORE

    @property
    def journal(self) -> Path:
        return self.folder / JOURNAL

    def configure(
        self, placement: Placement, process: str, incarnation: int, deviations: tuple[tuple[str, int, int], ...]
    ) -> bytes:
        """The bytes that a process of this name starts with."""
        common = {
            "process": process,
            "incarnation": incarnation,
            "folder": str(self.folder),
            "supervision": str(self.supervision),
            "factory": process_job.FACTORY,
            "job": self.job,
            "settings": self.settings,
            "scale": self.scale,
            "epoch_us": self.epoch_us,
            "points": self.points,
            "detailed": self.detailed,
            "store": self.sink.store,
            "dsn": self.sink.dsn,
            "run": self.run,
            "heartbeat_timeout_us": GIVEN_UP_US,
            "deviations": deviations,
        }
        made: Configuration
        if process == COORDINATOR:
            made = msgspec.convert(
                {**common, "processes": {task: str(task) for task in placement.tasks}}, CoordinatorConfiguration
            )
        else:
            made = msgspec.convert(
                {
                    **common,
                    "tasks": (TaskId(process),),
                    "coordinator_port": self.ports[COORDINATOR],
                    "routes": {name: self.routes[name] for name in placement.outputs(process)},
                    "felt": frozenset(name for name in placement.inputs(process) if name in self.felt),
                },
                NodeConfiguration,
            )
        return encode(made)
