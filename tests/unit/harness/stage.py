"""A run's scene without processes: members that only listen, proxies that only note, a clock that a test turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import msgspec
import pytest

from cutproof.faults.injectors.toxics import Toxic
from cutproof.faults.injectors.toxiproxy import ToxiproxyFailed
from cutproof.faults.plan import AnyFault
from cutproof.faults.plan import kind_of as fault_kind
from cutproof.harness.reference_engine.orchestrator import (
    channel_faults,
    context,
    orchestrator,
    rest,
)
from cutproof.harness.reference_engine.orchestrator import (
    process_faults as disturbing,
)
from cutproof.harness.reference_engine.orchestrator.context import Context
from cutproof.harness.reference_engine.orchestrator.facts import Facts
from cutproof.harness.reference_engine.orchestrator.layout import COORDINATOR, Placement, RunConfig, lives_together
from cutproof.harness.reference_engine.orchestrator.opening import points_of
from cutproof.harness.reference_engine.subjects import process_job
from cutproof.harness.scenario.model import Scenario
from cutproof.reference_impl.core.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.driver.settings import Settings
from cutproof.reference_impl.processes import frames as f
from cutproof.reference_impl.processes import loop
from cutproof.reference_impl.processes.entries import Entry
from cutproof.reference_impl.processes.journal import read_journal
from cutproof.reference_impl.processes.sinks import Place

SCALE = 20
F = TypeVar("F", bound=f.Frame)
E = TypeVar("E", bound=Entry)


class FakeMember:
    """A process that notes what it is told."""

    def __init__(self, name: str, incarnation: int = 0) -> None:
        self.name = name
        self.incarnation = incarnation
        self.is_ready = True
        self.has_ended = False
        self.stops = 0
        self.attempts: dict[str, int] = {}
        self.blame: int | None = None
        self.frames: list[f.Frame] = []

    def send(self, frame: f.Frame) -> None:
        self.frames.append(frame)

    def received(self, kind: type[F]) -> list[F]:
        return [frame for frame in self.frames if isinstance(frame, kind)]


class FakeProcesses:
    """Fulfils what is used of `Crew`; every kill and stop succeeds while its member lives."""

    def __init__(self, names: Sequence[str]) -> None:
        self.members = [FakeMember(name) for name in names]

    def current(self, name: str) -> FakeMember | None:
        newest = [member for member in self.members if member.name == name][-1:]
        return next((member for member in newest if not member.has_ended), None)

    def is_current(self, member: FakeMember) -> bool:
        return [one for one in self.members if one.name == member.name][-1] is member

    def living(self) -> list[FakeMember]:
        return [member for member in self.members if not member.has_ended]

    def of(self, names: Sequence[str]) -> list[FakeMember]:
        return [member for member in self.living() if member.name in names]

    def kill(self, members: Sequence[FakeMember]) -> list[FakeMember]:
        killed = [member for member in members if not member.has_ended]
        for member in killed:
            member.has_ended = True
        return killed

    def stop(self, member: FakeMember) -> bool:
        member.stops += not member.has_ended
        return not member.has_ended

    def go_on(self, member: FakeMember) -> None:
        member.stops -= 1

    def replace(self, name: str) -> FakeMember:
        before = [member for member in self.members if member.name == name][-1]
        self.members.append(FakeMember(name, before.incarnation + 1))
        return self.members[-1]


class FakeProxies:
    """Notes what it is told; while `resists` is set it does nothing of it."""

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


def laid_out(
    folder: Path, scenario: Scenario, *, felt: Sequence[str] = (), store: str = "files"
) -> tuple[Placement, RunConfig]:
    """Who lives where in a run, and what they are told."""
    (folder / "journal").mkdir()
    described = process_job.describe(scenario, None, SCALE)
    graph = process_job.make_job(described).graph
    placement = Placement.of((graph,), scenario.engine.nodes, together=lives_together(scenario))
    config = RunConfig(
        folder=folder,
        job=described,
        settings=Settings(),
        scale=SCALE,
        epoch_us=0,
        points=points_of(scenario),
        detailed=False,
        sink=Place(store=store, folder=folder / "sink"),
        run="run",
        secret=b"of the run",
        ports=dict.fromkeys([COORDINATOR, *placement.processes], 1),
        routes=dict.fromkeys(placement.channels, 2),
        felt=frozenset(felt),
    )
    return placement, config


class Stage:
    """A scene that stands, its first job begun at time 0."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        folder: Path,
        scenario: Scenario,
        *,
        felt: Sequence[str] = (),
        store: str = "files",
    ) -> None:
        self._now = 1_000_000
        for module in (loop, context, channel_faults, disturbing, rest, orchestrator):
            monkeypatch.setattr(module, "monotonic_us", lambda: self._now)
        self.scenario = scenario
        self.placement, self.config = laid_out(folder, scenario, felt=felt, store=store)
        self.proxies = FakeProxies()
        self.processes = FakeProcesses([COORDINATOR, *self.placement.processes])
        services: Any = SimpleNamespace(proxies=self.proxies, look=lambda: self.proxies.done.append("look"))
        self.context = Context(services, self.placement, self.config, [fault_kind(fault) for fault in scenario.faults])
        self.context.processes = cast(Any, self.processes)
        self.phases: list[str] = []
        self.context.facts = Facts(self.phases.append)
        self.context.begun_us = self._now

    # -- time ----------------------------------------------------------------------------

    def pass_us(self, real_us: int) -> None:
        """Time goes by, and what is due in it is done, each at its time."""
        until = self._now + real_us
        loop = self.context.loop
        while (due := loop.next_due) is not None and due <= until:
            self._now = max(self._now, due)
            loop.do_what_is_due()
        self._now = until

    def pass_virtual(self, us: int) -> None:
        self.pass_us(us * SCALE)

    @property
    def now_us(self) -> int:
        """Of the machine's clock."""
        return self._now

    # -- the job ---------------------------------------------------------------------------

    def member(self, name: str) -> FakeMember:
        found = self.processes.current(name)
        assert found is not None, name
        return found

    @property
    def coordinator(self) -> FakeMember:
        return self.member(COORDINATOR)

    def comes_up(self, attempt: int = 1) -> None:
        """Every task runs in this attempt, and the coordinator says so."""
        facts = self.context.facts
        facts.coordinator(True)
        for task in self.placement.tasks:
            facts.up(task, attempt)
            (home,) = self.placement.homes_of([task])
            self.member(home).attempts[task] = attempt
        facts.job(job_facts(attempt=attempt))

    # -- what was written down -------------------------------------------------------------

    def entries(self, kind: type[E]) -> list[E]:
        self.context.journal.flush()
        path = self.config.journal / "harness.0"
        return [entry for entry in read_journal(path) if isinstance(entry, kind)]


def job_facts(**changed: Any) -> f.JobFacts:
    facts = f.JobFacts(0, 1, AttemptId(1), "working", False, False, 0)
    return msgspec.structs.replace(facts, **changed)


def task_facts(
    task: str, *, aligning: bool = False, unsettled: int | None = None, is_handed: bool = False
) -> f.TaskFacts:
    return f.TaskFacts(0, TaskId(task), aligning, None if unsettled is None else CheckpointId(unsettled), is_handed)


def planned(scenario: Scenario, *faults: AnyFault, **engine: Any) -> Scenario:
    """The scenario with these faults, and no commands and deviations."""
    changed = msgspec.structs.replace(scenario.engine, **engine)
    return msgspec.structs.replace(scenario, faults=faults, commands=(), deviations=(), engine=changed)
