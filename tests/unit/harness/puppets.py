"""A launcher whose processes a test plays: each is one end of a supervision, and ends when the test says so."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec
import pytest

from cutproof.harness.reference_engine.orchestrator import signals
from cutproof.harness.reference_engine.orchestrator.layout import COORDINATOR
from cutproof.harness.reference_engine.orchestrator.opening import Opened
from cutproof.harness.reference_engine.orchestrator.orchestrator import Orchestrator
from cutproof.harness.scenario.model import Scenario
from cutproof.reference_impl.core.ids import AttemptId
from cutproof.reference_impl.processes import frames as f
from cutproof.reference_impl.processes.cluster import ProcessTerminated
from cutproof.reference_impl.processes.configuration import Configuration, NodeConfiguration
from cutproof.reference_impl.processes.entries import Entry
from cutproof.reference_impl.processes.journal import read_journal
from cutproof.reference_impl.processes.loop import monotonic_us
from cutproof.reference_impl.processes.orders import Exited
from cutproof.reference_impl.processes.supervision import CODEC
from cutproof.reference_impl.wire import Reader
from unit.harness.stage import laid_out

F = TypeVar("F", bound=f.Frame)
E = TypeVar("E", bound=Entry)
Script = Generator[None, None, None]
"""What the processes do; each turn of the conductor it goes on until it yields."""


class Puppet:
    """One process, as its harness sees it."""

    def __init__(self, pid: int, configuration: Configuration, comes_up: bool) -> None:
        self.pid = pid
        self.name = configuration.process
        self.incarnation = configuration.incarnation
        self.tasks = configuration.tasks if isinstance(configuration, NodeConfiguration) else ()
        self.signals: list[int] = []
        self.has_ended = False
        self._received: list[f.Frame] = []
        self._reader: Reader[Any] = Reader(CODEC)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if comes_up:
            self.sock.connect(configuration.supervision)
            self.say(f.Ready(now(), self.name, self.incarnation))

    def say(self, *frames: f.Frame) -> None:
        for frame in frames:
            self.sock.sendall(encoded(frame))

    def received(self, kind: type[F]) -> list[F]:
        """Every frame of a kind that it was sent so far."""
        while select.select([self.sock], [], [], 0)[0] and (data := self.sock.recv(1 << 16)):
            self._received += self._reader.feed(data)
        return [frame for frame in self._received if isinstance(frame, kind)]

    def up(self, attempt: int = 1) -> None:
        self.say(*[f.Up(now(), task, AttemptId(attempt)) for task in self.tasks])

    def down(self, attempt: int = 1) -> None:
        self.say(*[f.Down(now(), task, AttemptId(attempt), "finished") for task in self.tasks])


class PuppetLauncher:
    """Fulfils what a conductor uses of `Launcher`; each poll lets the script go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.puppets: list[Puppet] = []
        self.exits: list[Exited] = []
        self.script: Script = iter(())  # type: ignore[assignment]
        self.stay_silent: tuple[str, ...] = ()
        """who does not come up"""
        self._news: list[Exited] = []

    def fork(self, name: str, entry: str, config: bytes, sockets: tuple[str, ...]) -> int:
        kind = {"coordinator": Configuration, "node": NodeConfiguration}[entry]
        decoded = msgspec.msgpack.decode(config, type=kind)
        puppet = Puppet(1_000_000 + len(self.puppets), decoded, decoded.process not in self.stay_silent)
        self.puppets.append(puppet)
        return puppet.pid

    def signal(self, pid: int, number: int) -> None:
        puppet = self.puppets[pid - 1_000_000]
        if puppet.has_ended:
            raise ProcessTerminated(f"process {pid} is not running")
        puppet.signals.append(number)
        if number == signal.SIGKILL:
            self._end(puppet, Exited(pid=pid, name=puppet.name, signal=number))

    def ends(self, puppet: Puppet, *, code: int | None = None, by: int | None = None, last_line: str = "") -> None:
        """A process ends by itself."""
        self.log(f"run.{puppet.name}").write_text(f"Traceback\n{last_line}\n" if last_line else "")
        self._end(puppet, Exited(pid=puppet.pid, name=puppet.name, code=code, signal=by))

    def end_of(self, pid: int) -> Exited | None:
        return next((one for one in reversed(self.exits) if one.pid == pid), None)

    def _end(self, puppet: Puppet, how: Exited) -> None:
        puppet.has_ended = True
        puppet.sock.close()
        self.exits.append(how)
        self._news.append(how)

    def poll(self) -> list[Exited]:
        next(self.script, None)
        news, self._news = self._news, []
        return news

    def log(self, name: str) -> Path:
        return self._folder / f"log-{name}"


class Run:
    """A run of puppets."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        placement, config = laid_out(folder, scenario)
        config.sink.create()
        (folder / "store").mkdir()
        self.launcher = PuppetLauncher(folder)
        self.watched = 0
        self._closed = False
        services: Any = SimpleNamespace(launcher=self.launcher, watch=self._watch, look=lambda **_: None)
        self.orchestrator = Orchestrator(Opened(services=services, placement=placement, config=config), scenario)
        self._journal = config.journal / "harness.0"

    def close(self) -> None:
        """As the end of a run does; again, nothing."""
        if not self._closed:
            self._closed = True
            self.orchestrator.close()
            self.orchestrator.context.loop.close()
        for puppet in self.launcher.puppets:
            puppet.sock.close()

    def _watch(self) -> None:
        self.watched += 1

    def run(self, script: Callable[[Run], Script]) -> None:
        self.launcher.script = script(self)
        self.orchestrator.run()

    def named(self, name: str) -> list[Puppet]:
        """Every incarnation of a process."""
        return [puppet for puppet in self.launcher.puppets if puppet.name == name]

    def newest(self, name: str) -> Puppet:
        return self.named(name)[-1]

    @property
    def coordinator(self) -> Puppet:
        return self.newest(COORDINATOR)

    @property
    def living(self) -> list[Puppet]:
        """All but coordinators."""
        return [one for one in self.launcher.puppets if one.name != COORDINATOR and not one.has_ended]

    def entries(self, kind: type[E]) -> list[E]:
        self.orchestrator.context.journal.flush()
        return [entry for entry in read_journal(self._journal) if isinstance(entry, kind)]

    # -- what processes do -----------------------------------------------------------------

    def begins(self) -> Script:
        """The job is submitted, and every task comes up."""
        yield from self.until(lambda: self.coordinator.received(f.Submit))
        for puppet in self.living:
            puppet.up()
        self.coordinator.say(f.JobFacts(now(), 1, AttemptId(1), "working", False, False, 0))
        yield from self.until(lambda: self.orchestrator.context.facts.phase == "running")

    def finishes(self, job: int = 1) -> Script:
        """The job ends in order, and every task with it."""
        self.coordinator.say(f.Ended(now(), job, "finished", ()))
        for puppet in self.living:
            puppet.down()
        for number in (1, 2):
            yield from self.until(lambda number=number: len(self.coordinator.received(f.Echo)) == number)  # type: ignore[misc]
            self.coordinator.say(f.Echo(now(), number))

    def until(self, reached: Callable[[], object]) -> Script:
        """Wait for something, turn by turn."""
        while not reached():
            self.orchestrator.context.loop.after(1_000, lambda *_: None)
            yield


def encoded(frame: Any) -> bytes:
    return CODEC.encode(frame)


def now() -> int:
    return monotonic_us()


@pytest.fixture(autouse=True)
def no_real_process_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A puppet's number may be that of somebody."""
    monkeypatch.setattr(signals, "handle_of", lambda pid: None)
