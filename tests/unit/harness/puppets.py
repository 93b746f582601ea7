"""A run of the orchestrator whose processes, servers and clock a test plays.

Each puppet is a process at the other end of the supervision protocol's socket: it sends frames, receives orders and
signals, and ends when the test says so.  The machine's clock stands still while anybody has something to do; a script
lets time pass with `passes` and `until`.  When the script is over, time goes on to whatever is due next.
"""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec
import pytest

from cutproof.faults.injectors.toxics import Toxic
from cutproof.faults.injectors.toxiproxy import ToxiproxyFailed
from cutproof.harness.reference_engine.orchestrator import bound, context, orchestrator, rest, signals
from cutproof.harness.reference_engine.orchestrator.evidence import Evidence
from cutproof.harness.reference_engine.orchestrator.injectors import channel_faults, process_faults
from cutproof.harness.reference_engine.orchestrator.layout import COORDINATOR
from cutproof.harness.reference_engine.orchestrator.opening import Opened
from cutproof.harness.reference_engine.orchestrator.orchestrator import Orchestrator
from cutproof.harness.scenario.model import Scenario
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.core.vocabulary.stages import StageName
from cutproof.reference_impl.processes import loop
from cutproof.reference_impl.processes.configuration import Configuration, NodeConfiguration
from cutproof.reference_impl.processes.disk.journal import Entry, read_journal
from cutproof.reference_impl.processes.launching.cluster import ProcessTerminated
from cutproof.reference_impl.processes.launching.orders import Exited
from cutproof.reference_impl.processes.network import frames as f
from cutproof.reference_impl.processes.supervision import CODEC
from cutproof.reference_impl.wire import Reader
from unit.harness.stage import SCALE, laid_out

F = TypeVar("F", bound=f.Frame)
E = TypeVar("E", bound=o.Observed)
Script = Generator[None, None, None]
"""What the processes do; in each round of the orchestrator's loop it goes on until it yields."""

STILL = 12
"""rounds of the loop in which everything that was sent has arrived, and every order that follows from it"""


class Clock:
    """The machine's clock, which a test turns."""

    def __init__(self) -> None:
        self.now_us = 1_000_000

    def __call__(self) -> int:
        return self.now_us


MACHINE = Clock()


class Puppet:
    """One process, as its harness sees it."""

    def __init__(self, pid: int, configuration: Configuration, comes_up: bool) -> None:
        self.pid = pid
        self.name = configuration.process
        self.incarnation = configuration.incarnation
        self.tasks = configuration.tasks if isinstance(configuration, NodeConfiguration) else ()
        self.perturbations = configuration.perturbations
        self.signals: list[int] = []
        self.has_ended = False
        self._attempt = 0
        self._received: list[f.Frame] = []
        self._reader: Reader[Any] = Reader(CODEC)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._is_connected = comes_up
        if comes_up:
            self.sock.connect(configuration.supervision)
            self.say(f.Ready(now(), self.name, self.incarnation))

    def end(self) -> None:
        self._read()
        self.has_ended = True
        self.sock.close()

    def say(self, *frames: f.Frame) -> None:
        for frame in frames:
            self.sock.sendall(encoded(frame))

    def received(self, kind: type[F]) -> list[F]:
        """Every frame of a kind that it was sent so far."""
        self._read()
        return [frame for frame in self._received if isinstance(frame, kind)]

    def _read(self) -> None:
        while self._is_connected and self.sock.fileno() >= 0 and select.select([self.sock], [], [], 0)[0]:
            data = self.sock.recv(1 << 16)
            if not data:
                return
            self._received += self._reader.feed(data)

    @property
    def is_stopped(self) -> bool:
        """Whether SIGSTOP is the last signal that it was sent."""
        return self.signals[-1:] == [signal.SIGSTOP]

    def up(self, attempt: int = 1) -> None:
        """An attempt of each of its tasks runs."""
        self._attempt = attempt
        self.say(*[f.Up(now(), task, AttemptId(attempt)) for task in self.tasks])

    def down(self) -> None:
        """The attempts that run have finished."""
        attempt, self._attempt = self._attempt, 0
        self.say(*[f.Down(now(), task, AttemptId(attempt)) for task in self.tasks if attempt])


class PuppetLauncher:
    """Fulfils what the orchestrator uses of `Launcher`; each poll lets the script go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.puppets: list[Puppet] = []
        self.exits: list[Exited] = []
        self.script: Script = iter(())  # type: ignore[assignment]
        self.stay_silent: tuple[str, ...] = ()
        """who does not come up"""
        self.is_played = False
        """the script is over"""
        self.on_kill: Callable[[], None] = lambda: None
        """called before a process gets SIGKILL"""
        self.on_idle: Callable[[], None] = lambda: None
        """called in each round after the end of the script"""
        self._news: list[Exited] = []
        self._unnoticed: list[Exited] = []

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
        if number == signal.SIGKILL:
            self.on_kill()
        puppet.signals.append(number)
        if number == signal.SIGKILL:
            self._end(puppet, Exited(pid=pid, name=puppet.name, signal=number))

    def ends(
        self,
        puppet: Puppet,
        *,
        code: int | None = None,
        by: int | None = None,
        last_line: str = "",
        is_noticed: bool = True,
    ) -> None:
        """A process ends by itself; `is_noticed`: the launcher reports it now, or after `notices`."""
        self.log(f"run.{puppet.name}").write_text(f"Traceback\n{last_line}\n" if last_line else "")
        self._end(puppet, Exited(pid=puppet.pid, name=puppet.name, code=code, signal=by))
        if not is_noticed:
            self._unnoticed.append(self._news.pop())

    def notices(self) -> None:
        """Report the ends that were not noticed."""
        self._news += self._unnoticed
        self._unnoticed.clear()

    def end_of(self, pid: int) -> Exited | None:
        return next((one for one in reversed(self.exits) if one.pid == pid), None)

    def _end(self, puppet: Puppet, how: Exited) -> None:
        puppet.end()
        self.exits.append(how)
        self._news.append(how)

    def poll(self) -> list[Exited]:
        self.is_played = self.is_played or next(self.script, self) is self
        if self.is_played:
            self.on_idle()
        news, self._news = self._news, []
        return news

    def log(self, name: str) -> Path:
        return self._folder / f"log-{name}"


class PuppetProxies:
    """A Toxiproxy server that notes what it is told; while `resists` is set it obeys no request."""

    def __init__(self) -> None:
        self.is_up = True
        self.resists = False
        self.done: list[str] = []
        self.toxics: dict[str, Toxic] = {}
        self.before_recovery: Callable[[], None] = lambda: None

    def _do(self, what: str) -> None:
        if self.resists:
            raise ToxiproxyFailed("it does not answer")
        self.done.append(what)

    def add(self, name: str, proxy: str, toxic: Toxic) -> None:
        self._do(f"add {name} {proxy}")
        self.toxics[name] = toxic

    def remove(self, name: str) -> None:
        self._do(f"remove {name}")
        self.toxics.pop(name, None)

    def close_connections(self, proxy: str) -> None:
        self._do(f"close {proxy}")

    def open_again(self, proxy: str) -> None:
        self._do(f"open {proxy}")

    def recover(self, error: ToxiproxyFailed) -> None:
        self.before_recovery()
        self.done.append("recover")

    def kill(self) -> None:
        self.is_up = False
        self.done.append("kill")

    def start(self) -> None:
        self.is_up = True
        self.done.append("start")


class PuppetDatabase:
    """A server that notes whether it is up."""

    pid = 1

    def __init__(self) -> None:
        self.is_up = True

    def kill(self) -> None:
        self.is_up = False

    def start(self) -> None:
        self.is_up = True

    def answers(self) -> bool:
        return self.is_up


class Run:
    """A run of puppets.  `checks` counts those of the proxies."""

    def __init__(self, folder: Path, scenario: Scenario, *, felt: Sequence[str] = (), store: str = "sqlite") -> None:
        placement, self.config = laid_out(folder, scenario, felt=felt, store=store)
        if store == "sqlite":
            self.config.sink.create()
        (folder / "store").mkdir()
        self.launcher = PuppetLauncher(folder)
        self.watched = 0
        self._closed = False
        self.proxies = PuppetProxies()
        self.database = PuppetDatabase()
        self.checks = 0
        self.placement = placement
        services: Any = SimpleNamespace(
            launcher=self.launcher,
            watch=self._watch,
            check_proxies=self._check,
            proxies=self.proxies,
            database=self.database,
        )
        self.orchestrator = Orchestrator(Opened(services=services, placement=placement, config=self.config), scenario)
        self.launcher.on_idle = self._idle
        self._may_end = False
        self._idle_rounds = 0
        self._journal = self.config.journal / "harness.0"

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

    def _check(self, *, is_last: bool = False) -> None:
        self.checks += 1

    def run(self, script: Callable[[Run], Script]) -> None:
        """Run to the end, which must not come before that of the script, or before the script calls `may_end`.

        After the script, nobody does anything any more.
        """
        self.launcher.script = script(self)
        self.orchestrator.run()
        assert self._may_end or self.launcher.is_played, "the run was over before its script"

    def may_end(self) -> None:
        """From here on the run may be over at any time."""
        self._may_end = True

    def whole(self, script: Callable[[Run], Script]) -> Evidence:
        """A run to its end: the job begins, the script is played, and the job finishes."""

        def played(run: Run) -> Script:
            yield from run.begins()
            yield from script(run)
            yield from run.finishes()

        self.run(played)
        return self.orchestrator.evidence()

    def named(self, name: str) -> list[Puppet]:
        """Every incarnation of a process."""
        return [puppet for puppet in self.launcher.puppets if puppet.name == name]

    def newest(self, name: str) -> Puppet:
        return self.named(name)[-1]

    def home(self, task: str) -> Puppet:
        """The newest process that a task lives in."""
        (home,) = self.placement.homes_of([task])
        return self.newest(home)

    @property
    def killed(self) -> list[str]:
        """The names of those that were killed, in the order in which they were started."""
        return [puppet.name for puppet in self.launcher.puppets if signal.SIGKILL in puppet.signals]

    @property
    def fired(self) -> list[tuple[int, int | None]]:
        """The faults that fired, and the attempts that they hit."""
        return [(entry.fault, entry.attempt) for entry in self.entries(o.FaultFired)]

    @property
    def healed(self) -> list[int]:
        return [entry.fault for entry in self.entries(o.FaultHealed)]

    @property
    def deaths(self) -> list[tuple[str, int, str, int | None]]:
        return [(one.process, one.incarnation, one.reason, one.fault) for one in self.entries(o.Died)]

    @property
    def coordinator(self) -> Puppet:
        return self.newest(COORDINATOR)

    @property
    def living(self) -> list[Puppet]:
        """All but coordinators."""
        return [one for one in self.launcher.puppets if one.name != COORDINATOR and not one.has_ended]

    def entries(self, kind: type[E]) -> list[E]:
        return [entry.event for entry in self.written() if isinstance(entry.event, kind)]

    def stamps(self, kind: type[o.Observed]) -> list[int]:
        return [entry.stamp for entry in self.written() if isinstance(entry.event, kind)]

    def written(self) -> list[Entry]:
        self.orchestrator.context.journal.flush()
        return read_journal(self._journal)

    # -- what processes do -----------------------------------------------------------------

    def begins(self) -> Script:
        """The job is submitted, which is time 0 of the scenario, and every task comes up."""
        yield from self.until(lambda: self.coordinator.received(f.Submit))
        self._pass_to(self.orchestrator.context.begun_us)
        for puppet in self.living:
            puppet.up()
        self.coordinator.say(f.JobFacts(now(), 1, AttemptId(1), StageName.WORKING, True, False, False, None, ()))
        yield from self.settles()

    def finishes(self, job: int = 1, *, staying: Sequence[str] = ()) -> Script:
        """The job ends in order, and every task with it, but those in the processes that stay."""
        yield from self.ends("finished", job=job, staying=staying)
        self.may_end()
        for number in (1, 2):
            yield from self.until(lambda number=number: len(self.coordinator.received(f.Echo)) == number)  # type: ignore[misc]
            self.coordinator.say(f.Echo(now(), number))

    def ends(self, status: str, *retained: int, job: int = 1, staying: Sequence[str] = ()) -> Script:
        """The coordinator reports a job's end and the checkpoints that it retains, and the tasks end."""
        self.coordinator.say(f.Ended(now(), job, Status(status), retained))
        for puppet in self.living:
            if puppet.name not in staying:
                puppet.down()
        yield from self.settles()

    def fires(self, fault: int, task: str, detail: str = "it fires", attempt: int = 1) -> Script:
        """A fault that waits in a task's process has met its event there."""
        self.home(task).say(f.Fired(now(), fault, detail, AttemptId(attempt)))
        yield from self.settles()

    def reaches(self, point: str, task: str, side: str = "after") -> Script:
        """A task reaches a point, waits there, and what was to be done has been done."""
        self.home(task).say(f.Reached(now(), point, task, side))
        yield from self.settles()

    # -- time ------------------------------------------------------------------------------

    def until(self, reached: Callable[[], object]) -> Script:
        """Wait for something.  What comes of what has been sent comes first; then time passes."""
        rounds = 0
        while not reached():
            rounds += 1
            if rounds > STILL:
                self._pass_to(now() + 1_000)
            yield

    def settles(self) -> Script:
        """Let everything that was sent arrive, and take effect, while the clock stands still."""
        for _ in range(STILL):
            yield

    def passes_us(self, real_us: int) -> Script:
        """Time of the machine's clock passes, and what is due in it is done, each at its time."""
        until = now() + real_us
        while now() < until:
            self._pass_to(until)
            yield from self.settles()

    def passes(self, us: int) -> Script:
        """Time of the scenario passes."""
        yield from self.passes_us(us * SCALE)

    def _pass_to(self, time_us: int) -> None:
        """The clock goes on to a time, or to what is due before it."""
        due = self.orchestrator.context.loop.next_due
        MACHINE.now_us = max(now(), time_us if due is None else min(due, time_us))

    def _idle(self) -> None:
        self._idle_rounds += 1
        if self._idle_rounds > STILL:
            due = self.orchestrator.context.loop.next_due
            MACHINE.now_us = max(now() + 1, due or 0)


def encoded(frame: Any) -> bytes:
    return CODEC.encode(frame)


def now() -> int:
    """The time of the machine's clock."""
    return MACHINE.now_us


@pytest.fixture(autouse=True)
def played_by_puppets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The orchestrator reads the clock of the puppets, waits for nothing else, and signals nobody by its number."""
    monkeypatch.setattr(MACHINE, "now_us", 1_000_000)
    for module in (loop, context, channel_faults, process_faults, rest, orchestrator, bound):
        monkeypatch.setattr(module, "monotonic_us", MACHINE)
    monkeypatch.setattr(loop, "LONGEST_WAIT_S", 0)
    monkeypatch.setattr(signals, "handle_of", lambda pid: None)
