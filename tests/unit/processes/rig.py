"""A process's world in a thread of its own; who it speaks with, over real sockets, is the test."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeGuard, TypeVar

import msgspec
import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.tasks import StartStep, Startup
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.split_log import SplitLog
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.operators.operators import Map
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.driver.machines import Job
from cutproof.reference_impl.driver.settings import Settings
from cutproof.reference_impl.processes import coordinator, supervision
from cutproof.reference_impl.processes.configuration import CoordinatorConfiguration, NodeConfiguration
from cutproof.reference_impl.processes.coordinator import CoordinatorProcessWorld
from cutproof.reference_impl.processes.disk.journal import Entry, read_journal
from cutproof.reference_impl.processes.loop import monotonic_us
from cutproof.reference_impl.processes.network import channels
from cutproof.reference_impl.processes.network import frames as f
from cutproof.reference_impl.processes.node import NodeWorld
from cutproof.reference_impl.processes.stores.sinks import SinkPlace
from cutproof.reference_impl.processes.world import ProcessWorld
from cutproof.reference_impl.wire import Codec, Reader
from unit.processes.greeted import SECRET, accepted, dialled

WITHIN_S = 5.0
TASKS = (TaskId("source-0"), TaskId("map-0"), TaskId("sink-0"))
CHANNELS = ("source-0>map-0", "map-0>sink-0")
NONSENSE = bytes([99]) + b"of another version"
SUPERVISION, CONTROL, DATA = supervision.CODEC, coordinator.CODEC, channels.CODEC
F = TypeVar("F", bound=f.Frame)
E = TypeVar("E")


# -- a job ---------------------------------------------------------------------------------------------------------


SLOW = Config(
    sink="plain", checkpoint_interval_us=60_000_000, checkpoint_timeout_us=60_000_000, deploy_timeout_us=60_000_000
)
"""nothing happens by itself while a test lasts"""


class JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a test wants of its job."""

    records: int = 3
    width: int = 1
    """subtasks of each operator; by forward edges, so that there are as many regions"""
    raises: bool = False
    """machines raise as they come up"""
    config: Config = SLOW


class Raising(Startup):
    def steps(self) -> tuple[StartStep, ...]:
        raise RuntimeError("of its own")


def make_job(options: bytes) -> Job:
    """source -> map -> sink, one task each unless told otherwise."""
    chosen = msgspec.msgpack.decode(options, type=JobOptions)
    width, splits = chosen.width, tuple(range(chosen.width))

    def behind(sender: str) -> tuple[EdgeSpec, ...]:
        return (EdgeSpec(sender=sender, partitioning="forward"),)

    graph = JobGraph(
        (
            OperatorSpec(name="source", parallelism=width, splits=splits, role="source", bounded=False),
            OperatorSpec(
                name="map",
                parallelism=width,
                inputs=behind("source"),
                build=lambda: Map(lambda key, value: (key, value)),
            ),
            OperatorSpec(name="sink", parallelism=width, inputs=behind("map"), role="sink"),
        ),
        8,
    )
    records = [(1, number, number) for number in range(chosen.records)]
    logs = tuple(SplitLog(split=split, records=records) for split in splits)
    parts = Parts(startup=Raising()) if chosen.raises else Parts()
    return Job(graph=graph, config=chosen.config, parts=parts, logs=logs)


# -- whom a process speaks with --------------------------------------------------------------------------------------


class Peer:
    """The other end of a conversation: sends frames, waits for frames."""

    def __init__(self, sock: socket.socket, codec: Codec[Any]) -> None:
        sock.settimeout(WITHIN_S)
        self.sock = sock
        self.arrived: list[f.Frame] = []
        """everything, in order"""
        self.is_over = False
        self._codec = codec
        self._reader = Reader(codec)
        self._unread: list[f.Frame] = []

    def send(self, frame: f.Frame) -> None:
        self.sock.sendall(self._codec.encode(frame))

    def babble(self) -> None:
        """Say something that no version of this wire knows."""
        self.sock.sendall(NONSENSE)

    def expect(self, kind: type[F], **fields: object) -> F:
        """The first frame of a kind, with these fields if there are any, that was not expected before."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            for frame in self._unread:
                if _is(frame, kind, fields):
                    self._unread.remove(frame)
                    return frame
            assert not self.is_over, f"it ended, and no {kind.__name__} {fields} had come, but {self.arrived}"
            assert time.monotonic() < deadline, f"no {kind.__name__} {fields} came, but {self.arrived}"
            self.look(0.05)

    def ends(self) -> bool:
        """Whether the other side closes it, in time."""
        deadline = time.monotonic() + WITHIN_S
        while not self.is_over and time.monotonic() < deadline:
            self.look(0.05)
        return self.is_over

    def look(self, timeout_s: float = 0.0) -> None:
        """Take in what has come."""
        while not self.is_over and select.select([self.sock], [], [], timeout_s)[0]:
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            self.is_over = not data
            frames = self._reader.feed(data)
            self.arrived += frames
            self._unread += frames
            timeout_s = 0.0

    def all(self, kind: type[F], **fields: object) -> list[F]:
        """Every frame of a kind that has come so far."""
        self.look()
        return [frame for frame in self.arrived if _is(frame, kind, fields)]


def _is(frame: f.Frame, kind: type[F], fields: dict[str, object]) -> TypeGuard[F]:
    return isinstance(frame, kind) and all(getattr(frame, name) == what for name, what in fields.items())


def now() -> int:
    """A stamp."""
    return monotonic_us()


def until(reached: Callable[[], E]) -> E:
    """Look again and again until something is so, and fail when it takes too long."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := reached()):
        assert time.monotonic() < deadline, "it did not come to that in time"
        threading.Event().wait(0.002)
    return found


# -- a process -------------------------------------------------------------------------------------------------------


class Process:
    """A world that runs in a thread; `harness` is who supervises it, `port` where it listens."""

    def __init__(self, folder: Path, make: Callable[[dict[str, Any], socket.socket], ProcessWorld]) -> None:
        self.folder = folder
        for name in ("store", "journal"):
            (folder / name).mkdir()
        SinkPlace(store="sqlite", folder=folder / "sink").create()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as supervised:
            supervised.bind(str(folder / "s"))
            supervised.listen()
            try:
                self.world = make({"folder": str(folder), "supervision": str(folder / "s")}, self._listener)
            except BaseException:
                self._listener.close()
                raise
            self.harness = Peer(supervised.accept()[0], SUPERVISION)
        self.ended_with: BaseException | None = None
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._peers: list[Peer] = []

    def start(self) -> None:
        self._thread.start()
        self.harness.expect(f.Ready)

    def _live(self) -> None:
        configuration = self.world.configuration
        try:
            self.world.supervision.ready(configuration.process, configuration.incarnation)
            self.world.loop.run()
        except BaseException as error:  # told by whoever closes it
            self.ended_with = error

    def connect(self, codec: Codec[Any]) -> Peer:
        """Somebody who comes to where it listens."""
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=WITHIN_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        dialled(sock, SECRET)
        return self.keep(Peer(sock, codec))

    def keep(self, peer: Peer) -> Peer:
        self._peers.append(peer)
        return peer

    def answers(self) -> None:
        """It lives, and has done what it was asked for before."""
        number = 1 + max((frame.number for frame in self.harness.all(f.Echo)), default=0)
        self.harness.send(f.Echo(now(), number))
        self.harness.expect(f.Echo, number=number)

    def has_ended(self) -> bool:
        self._thread.join(WITHIN_S)
        return not self._thread.is_alive()

    @property
    def journal(self) -> list[Entry]:
        """What it has written down."""
        configuration = self.world.configuration
        return read_journal(self.folder / "journal" / f"{configuration.process}.{configuration.incarnation}")

    def entries(self, kind: type[E]) -> list[E]:
        return [entry.event for entry in self.journal if isinstance(entry.event, kind)]

    def close(self) -> None:
        if self._thread.is_alive():
            self.harness.send(f.Close(now()))
        deadline = time.monotonic() + WITHIN_S
        answered = 0
        while self._thread.is_alive() and time.monotonic() < deadline:
            reached = self.harness.all(f.Reached)
            if len(reached) > answered:  # it may stand still, where a test has failed
                answered = len(reached)
                self.harness.send(f.Go(now()))
            self._thread.join(0.01)
        assert not self._thread.is_alive(), "it does not close"
        self.world.loop.close()
        for peer in self._peers:
            peer.sock.close()
        self.harness.sock.close()
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _common(job: JobOptions, chosen: dict[str, Any]) -> dict[str, Any]:
    return {
        "factory": f"{__name__}:make_job",
        "job": msgspec.msgpack.encode(job),
        "settings": Settings(channel_capacity=4),
        "secret": SECRET,
        "scale": 1,
        "epoch_us": monotonic_us(),
        "heartbeat_us": 20_000,
        "heartbeat_timeout_us": 60_000_000,
        **chosen,
    }


class Node(Process):
    """A node's world; `downstream` is where its outputs lead to, unless that is itself."""

    world: NodeWorld

    def __init__(
        self, folder: Path, *tasks: str, job: JobOptions | None = None, starts: bool = True, **chosen: Any
    ) -> None:
        """Without `starts` somebody else runs it."""
        self._at_coordinator = socket.create_server(("127.0.0.1", 0))
        self.downstream = socket.create_server(("127.0.0.1", 0))
        self.downstream.settimeout(WITHIN_S)

        def make(places: dict[str, Any], listener: socket.socket) -> NodeWorld:
            own = int(listener.getsockname()[1])
            elsewhere = int(self.downstream.getsockname()[1])
            routes = {name: own if name.partition(">")[2] in tasks else elsewhere for name in CHANNELS}
            configuration = NodeConfiguration(
                process="node-0",
                incarnation=0,
                tasks=tuple(TaskId(task) for task in tasks),
                coordinator_port=int(self._at_coordinator.getsockname()[1]),
                routes=routes,
                **_common(job or JobOptions(), {**places, **chosen}),
            )
            return NodeWorld(configuration, listener)

        try:
            super().__init__(folder, make)
        except BaseException:
            self._close_others()
            raise
        if starts:
            self.start()
            assert self.coordinator

    @cached_property
    def coordinator(self) -> Peer:
        """The coordinator's end of its first connection: greeted once the node runs."""
        return self.greeted()

    def greeted(self) -> Peer:
        """The coordinator's end of its next connection."""
        self._at_coordinator.settimeout(WITHIN_S)
        return self.keep(Peer(accepted(self._at_coordinator, SECRET), CONTROL))

    def close(self) -> None:
        super().close()
        self._close_others()

    def _close_others(self) -> None:
        self._at_coordinator.close()
        self.downstream.close()


class CoordinatorProcess(Process):
    """A coordinator's world, for tasks that live together in `node-0`, unless told otherwise."""

    world: CoordinatorProcessWorld

    def __init__(self, folder: Path, *, job: JobOptions | None = None, **chosen: Any) -> None:
        def make(places: dict[str, Any], listener: socket.socket) -> CoordinatorProcessWorld:
            everything = {"processes": dict.fromkeys(TASKS, "node-0"), **places, **chosen}
            configuration = CoordinatorConfiguration(
                process="coordinator", incarnation=0, **_common(job or JobOptions(), everything)
            )
            return CoordinatorProcessWorld(configuration, listener)

        super().__init__(folder, make)
        self.start()


@pytest.fixture(autouse=True)
def lives_without_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process would exit this one would."""
    monkeypatch.setattr(supervision, "supervisor_ended", lambda reason: None)
