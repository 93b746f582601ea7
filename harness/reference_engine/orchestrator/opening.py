"""Preparing a run: its folder, its ports, its proxies, and the store that its sinks write to."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ....faults.plan import AtPoint
from ....properties.model.upgrade import Upgrade
from ....reference_impl.core.extensions import local_recovery
from ....reference_impl.core.vocabulary.errors import EngineError
from ....reference_impl.core.vocabulary.ids import TaskId
from ....reference_impl.processes.configuration import JOURNAL, STORE
from ....reference_impl.processes.loop import monotonic_us
from ....reference_impl.processes.network.greeting import new_secret
from ....reference_impl.processes.stores import purge
from ....reference_impl.processes.stores.readers import Unreachable
from ....reference_impl.processes.stores.sinks import DATABASE, SinkPlace
from ...runtime.exit_codes import HarnessFailed
from ...scenario.model import Resume, Scenario
from ...subject.port import ScenarioRefused
from ..snapshots.beginning import Behind
from ..snapshots.directory import locked
from ..subjects import process_job
from ..subjects.past import Past
from .layout import COORDINATOR, Placement, RunConfig, lives_together, proxied, store_of
from .processes import full_name
from .services import Services

UP_WITHIN_S = 20.0


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A prepared run; `close` removes everything that was created for it."""

    services: Services
    placement: Placement
    config: RunConfig
    at_work: ExitStack = msgspec.field(default_factory=ExitStack)
    """what tells others that a job runs in the directory of its snapshots"""

    def close(self) -> None:
        """Release the ports, proxies, tables and folder of the run, whose processes have all ended."""
        services, config = self.services, self.config
        if config.felt:
            services.proxies.clear()
        services.launcher.unlisten([full_name(config.run, name) for name in config.ports])
        if config.sink.store == DATABASE:
            if not services.database.answers():
                services.database.wait_until_up(UP_WITHIN_S)
            reader = config.sink.reader()
            try:
                reader.purge()
            except Unreachable as error:
                raise HarnessFailed(f"the tables of a run cannot be removed: {error}") from error
            finally:
                reader.close()
            services.launcher.cancel_cleanup(config.run)
        self.at_work.close()
        shutil.rmtree(config.folder, ignore_errors=True)


def opened(
    services: Services,
    scenario: Scenario,
    defect: str | None,
    scale: int,
    timeline: bool,
    begins: Behind | None = None,
) -> Opened:
    """Prepare a run.  Raises ScenarioRefused if the engine refuses it, CutproofError if a service is missing."""
    before = (begins.past.job, begins.past.upgraded) if begins is not None else (0, Upgrade())
    job = process_job.describe(scenario, defect, scale, *before)
    try:
        made = process_job.make_job(job)
        made.config.check([source.name for source in scenario.workload.inputs if not source.rewindable])
        for graph in (made.graph, *made.later):
            local_recovery.check(graph, made.config)
    except EngineError as error:
        raise ScenarioRefused(f"the reference engine refuses the scenario: {error}") from error
    placement = Placement.of((made.graph, *made.later), scenario.engine.nodes, together=lives_together(scenario))
    run = services.next_run()
    folder = services.launcher.folder() / run
    _make_folders(folder)
    sink = _sink(services, scenario, folder, run)
    if begins is not None:
        begins.stores.write(folder / STORE, whole_files=made.config.spill_store != "log")
        _fill(sink, begins.past, made.passing)
    at_work = ExitStack()
    at_work.enter_context(locked(folder / STORE, alone=True))
    names = (COORDINATOR, *placement.processes)
    ports = {name: services.launcher.listen(full_name(run, name)) for name in names}
    through = proxied(scenario, placement)
    config = RunConfig(
        folder=folder,
        job=job,
        settings=process_job.real_settings(scenario),
        scale=scale,
        epoch_us=monotonic_us(),
        points=points_of(scenario),
        detailed=timeline,
        sink=sink,
        run=run,
        secret=new_secret(),
        ports=ports,
        routes=_routes(services, placement, ports, through),
        felt=frozenset(through),
    )
    return Opened(services=services, placement=placement, config=config, at_work=at_work)


def points_of(scenario: Scenario) -> frozenset[str]:
    """The protocol points that trigger a fault or a command."""
    triggers = [fault.trigger for fault in scenario.faults]
    triggers += [command.trigger for command in scenario.commands if not isinstance(command, Resume)]
    return frozenset(trigger.point for trigger in triggers if isinstance(trigger, AtPoint))


def _make_folders(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for name in (STORE, JOURNAL):
        (folder / name).mkdir()


def _sink(services: Services, scenario: Scenario, folder: Path, run: str) -> SinkPlace:
    store = store_of(scenario)
    dsn = services.database.dsn if store == DATABASE else ""
    place = SinkPlace(store=store, folder=folder / "sink", dsn=dsn, run=run)
    if store == DATABASE and not services.database.is_ours:
        # Tables outlive every process of the run, so the launcher first learns which tables it has to remove.
        services.launcher.register_cleanup(run, "purge", purge.encode(place))
    try:
        place.create()
    except Unreachable as error:
        raise HarnessFailed(f"PostgreSQL does not answer: {error}") from error
    return place


def _fill(sink: SinkPlace, past: Past, passing: tuple[TaskId, ...]) -> None:
    """Bring what the run before has written into the empty store of this one."""
    store = sink.external((*passing, *past.passing))
    try:
        past.fill(store)
    finally:
        store.close()


def _routes(
    services: Services, placement: Placement, ports: dict[str, int], through: tuple[str, ...]
) -> dict[str, int]:
    """The port to which each channel's sender connects: the receiver's, or that of a proxy in front of it."""
    behind = {name: ports[placement.homes[receiver]] for name, (_sender, receiver) in placement.channels.items()}
    return {name: services.proxies.make(name, port) if name in through else port for name, port in behind.items()}
