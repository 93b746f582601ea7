"""What a process receives at its start from its parent.

The job itself is user code: `factory` names the function ("module:function") that makes a `driver.machines.Job` of the
bytes in `job`.  The name comes from the parent, never from a peer or a scenario file.
"""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..core.vocabulary.errors import Refused, expect
from ..core.vocabulary.ids import TaskId
from ..driver.machines import Job
from ..driver.settings import Settings

STORE, SINK, JOURNAL, STATE = "store", "sink", "journal", "state"
"""Folders of a run: the engine's durable state; what sinks write into files; what was observed; working state."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What every process of a run receives.

    `scale` is how many µs of the machine's clock one µs of `settings` and of the job's configuration takes.  `epoch_us`
    is the time of the machine's monotonic clock at which the run's time began.
    """

    process: str
    incarnation: int
    folder: str
    """of the run: store/, sink/ and journal/ are in it"""
    supervision: str
    """the Unix socket at which the harness listens"""
    secret: bytes
    """of the run: its processes recognise each other by it"""
    factory: str
    job: bytes
    settings: Settings
    scale: int
    epoch_us: int
    points: frozenset[str] = frozenset()
    """the protocol points that the harness waits for; no other is announced"""
    detailed: bool = False
    store: str = "sqlite"
    """where sinks write: sqlite, or database"""
    dsn: str = ""
    run: str = "run"
    """the run's name in the database"""
    perturbations: tuple[tuple[str, int, int], ...] = ()
    """(what, occurrence, µs late) as in `driver.perturbations`, less what has happened already"""
    heartbeat_us: int = 100_000
    """of the machine's clock, between two signs of life of a node"""
    heartbeat_timeout_us: int = 1_500_000


class NodeConfiguration(Configuration, frozen=True, kw_only=True):
    """What a node receives."""

    tasks: tuple[TaskId, ...]
    coordinator_port: int
    routes: dict[str, int]
    """the port, on this machine, at which each output channel of its tasks is reached"""
    felt: frozenset[str] = frozenset()
    """input channels that go through a proxy: what their receivers notice is reported"""


class CoordinatorConfiguration(Configuration, frozen=True, kw_only=True):
    """What the coordinator receives."""

    processes: dict[TaskId, str]
    """the process that each task lives in"""


def started_by_hand(main: Callable[[bytes, dict[str, socket.socket]], None]) -> None:
    """`python -m … CONFIGURATION [PORT]`: the configuration is a file as `encode` makes it."""
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} CONFIGURATION [PORT]\n(each process of a run is given one by its launcher)")
    listener = socket.create_server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) == 3 else 0))
    main(Path(sys.argv[1]).read_bytes(), {"by hand": listener})


def encode(configuration: Configuration) -> bytes:
    return msgspec.msgpack.encode(configuration)


def job_of(configuration: Configuration) -> Job:
    """Make the job by the function that the configuration names."""
    module, _, name = configuration.factory.partition(":")
    factory = getattr(importlib.import_module(module), name, None)
    if not callable(factory):
        raise Refused(f"{module} has no {name!r} to make a job with")
    return expect(factory(configuration.job), Job)
