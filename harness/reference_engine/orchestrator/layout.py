"""The placement of a scenario's tasks and channels on processes and nodes, and the configuration of each process."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ....faults.plan import ChannelFault, KillDatabase, KillNode, KillProxy, KillTask, PauseNode, PauseTask, TearWrite
from ....reference_impl.core.job.topology import JobGraph
from ....reference_impl.core.vocabulary.ids import TaskId
from ....reference_impl.driver.machines import numbered
from ....reference_impl.driver.settings import Settings
from ....reference_impl.processes.configuration import (
    JOURNAL,
    STORE,
    Configuration,
    CoordinatorConfiguration,
    NodeConfiguration,
    encode,
)
from ....reference_impl.processes.stores.sinks import DATABASE, SQLITE, SinkPlace
from ...scenario.model import Scenario
from ..subjects import process_job

COORDINATOR = "coordinator"
COMMITTING_ROLES = ("sink", "two-phase", "committer", "global-committer")
GIVEN_UP_US = 1_500_000
"""of the machine's clock: a node is declared lost if its heartbeats stay away for longer"""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks and channels of a job, and the process of each task: one that bears the task's name, or one that all
    tasks of a node share (`node-0`)."""

    tasks: tuple[TaskId, ...]
    operators: frozenset[TaskId]
    """tasks that run a user function"""
    sinks: tuple[TaskId, ...]
    committing: tuple[TaskId, ...]
    """tasks that send commits to the external store"""
    nodes: int
    channels: dict[str, tuple[TaskId, TaskId]]
    """name: sender and receiver"""
    homes: dict[TaskId, str]
    """task: its process"""
    jobs: tuple[tuple[TaskId, ...], ...] = ()
    """the tasks of each job of the run, one after the other"""

    @staticmethod
    def of(graphs: Sequence[JobGraph], nodes: int, *, together: bool = False) -> Placement:
        """The placement of the tasks of all jobs of a run.  A process waits for the job that has its tasks."""
        numbers = numbered(graphs)
        of_role = {task: spec.role for graph in graphs for task, spec, _ in graph.tasks()}
        wires = [wire for graph in graphs for wire in graph.wires()]
        return Placement(
            tasks=tuple(numbers),
            operators=frozenset(task for task, role in of_role.items() if role == "operator"),
            sinks=tuple(task for task in numbers if of_role[task] == "sink"),
            committing=tuple(task for task in numbers if of_role[task] in COMMITTING_ROLES),
            nodes=nodes,
            channels={f"{wire.sender}>{wire.receiver}": (wire.sender, wire.receiver) for wire in wires},
            homes={task: f"node-{number % nodes}" if together else str(task) for task, number in numbers.items()},
            jobs=tuple(tuple(task for task, _, _ in graph.tasks()) for graph in graphs),
        )

    def of_job(self, number: int) -> tuple[TaskId, ...]:
        """The tasks of one of the run's jobs."""
        return self.jobs[max(1, min(number, len(self.jobs))) - 1]

    def on_node(self, node: int) -> tuple[TaskId, ...]:
        """The tasks on a node.  The simulated world places them in the same way, so a fault hits the same tasks."""
        return tuple(task for number, task in enumerate(self.tasks) if number % self.nodes == node)

    @property
    def processes(self) -> tuple[str, ...]:
        """All processes but that of the coordinator."""
        return tuple(dict.fromkeys(self.homes[task] for task in self.tasks))

    def homes_of(self, tasks: Iterable[str]) -> tuple[str, ...]:
        """The processes of these tasks, each once; names of tasks that do not exist are ignored."""
        return tuple(dict.fromkeys(self.homes[task] for one in tasks if (task := TaskId(one)) in self.homes))

    def within(self, process: str) -> tuple[TaskId, ...]:
        """The tasks that live in a process."""
        return tuple(task for task in self.tasks if self.homes[task] == process)

    def outputs(self, process: str) -> list[str]:
        return [name for name, (sender, _) in self.channels.items() if self.homes[sender] == process]

    def inputs(self, process: str) -> list[str]:
        return [name for name, (_, receiver) in self.channels.items() if self.homes[receiver] == process]


def lives_together(scenario: Scenario) -> bool:
    """Whether the tasks of a node share a process: if some fault hits a node, and no fault hits a single task."""
    hits_one_task = any(
        isinstance(fault, KillTask | PauseTask) or (isinstance(fault, TearWrite) and fault.task is not None)
        for fault in scenario.faults
    )
    return not hits_one_task and any(isinstance(fault, KillNode | PauseNode) for fault in scenario.faults)


def proxied(scenario: Scenario, placement: Placement) -> tuple[str, ...]:
    """The channels that go through a proxy: all if a fault kills the proxy, else those that a fault hits."""
    if any(isinstance(fault, KillProxy) for fault in scenario.faults):
        return tuple(placement.channels)
    hit = {f"{fault.sender}>{fault.receiver}" for fault in scenario.faults if isinstance(fault, ChannelFault)}
    return tuple(name for name in placement.channels if name in hit)


def store_of(scenario: Scenario) -> str:
    """The store that sinks write to: the database if a fault kills it, else database or SQLite by the scenario's seed,
    which shrinking does not change."""
    if any(isinstance(fault, KillDatabase) for fault in scenario.faults):
        return DATABASE
    return DATABASE if zlib.crc32(scenario.seed.encode()) % 2 else SQLITE


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that all processes of a run share."""

    folder: Path
    job: bytes
    settings: Settings
    scale: int
    epoch_us: int
    points: frozenset[str]
    detailed: bool
    sink: SinkPlace
    run: str
    secret: bytes
    """by which the processes of the run authenticate each other"""
    ports: dict[str, int]
    """the port at which each process listens"""
    routes: dict[str, int]
    """the port to which each channel's sender connects"""
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
        self, placement: Placement, process: str, incarnation: int, perturbations: tuple[tuple[str, int, int], ...]
    ) -> bytes:
        """The encoded configuration of a process."""
        common = {
            "process": process,
            "incarnation": incarnation,
            "folder": str(self.folder),
            "supervision": str(self.supervision),
            "secret": self.secret,
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
            "perturbations": perturbations,
        }
        made: Configuration
        if process == COORDINATOR:
            made = msgspec.convert({**common, "processes": placement.homes}, CoordinatorConfiguration)
        else:
            made = msgspec.convert(
                {
                    **common,
                    "tasks": placement.within(process),
                    "coordinator_port": self.ports[COORDINATOR],
                    "routes": {name: self.routes[name] for name in placement.outputs(process)},
                    "felt": frozenset(name for name in placement.inputs(process) if name in self.felt),
                },
                NodeConfiguration,
            )
        return encode(made)
