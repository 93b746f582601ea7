"""The simulated reference engine as a subject."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....faults.injectors.environment import inject
from ....faults.injectors.triggers import Triggers
from ....faults.plan import COMMON_KINDS, AtRest, AtTime
from ....faults.plan import kind_of as fault_kind
from ....properties.model.history import OF_A_SNAPSHOT, History
from ....reference_impl import observed as o
from ....reference_impl.core.decisions.parts import Parts
from ....reference_impl.core.extensions.local_recovery import check as check_local
from ....reference_impl.core.extensions.sinks.direct_sink import Identity
from ....reference_impl.core.job.config import Config
from ....reference_impl.core.job.topology import JobGraph
from ....reference_impl.core.protocol.barrier_alignment import OnTransition
from ....reference_impl.core.vocabulary.ends import Status
from ....reference_impl.core.vocabulary.errors import EngineError
from ....reference_impl.core.vocabulary.events import CommandKind
from ....reference_impl.core.vocabulary.ids import CheckpointId
from ....reference_impl.defects import parts_for
from ....reference_impl.driver.machines import passing
from ....reference_impl.driver.perturbations import Perturbations
from ....reference_impl.simulated.disturbances import Disturbances
from ....reference_impl.simulated.external import TransactionStore
from ....reference_impl.simulated.forking import Copied
from ....reference_impl.simulated.logs import LogShelf
from ....reference_impl.simulated.world import World
from ...runtime.exit_codes import UsageError
from ...scenario.bounds import LIMIT_SNAPSHOT_BYTES, LIMIT_STEPS, ROOM, events_of, snapshot_bytes_of
from ...scenario.checks import (
    ALIGNMENTS,
    SNAPSHOT_FORMATS,
    SNAPSHOT_MODES,
    SNAPSHOT_STORES,
    SPILL_STORES,
    SPILLING,
    STATE_BACKENDS,
)
from ...scenario.forecast import has_short_timeout
from ...scenario.model import (
    AnyCommand,
    Cancel,
    Fork,
    OfASnapshot,
    Resume,
    Savepoint,
    Scenario,
    StopWithSavepoint,
    format_of,
    kind_of,
)
from ...scenario.snapshots import CLAIMED, named, saved_as
from ...subject.abilities import OPERATORS, SOURCES
from ...subject.port import Capabilities, ScenarioRefused
from .continuing import Continued
from .cutting import answers
from .forks import Forks
from .past import command_in_words, fault_in_words
from .recorder import Recorder
from .residue import residue_of
from .transitions import TRANSITIONS, TransitionCount
from .translation import (
    config,
    dated_inputs,
    identity,
    job_graphs,
    lateness_us,
    logs,
    refuse_aims,
    resume_issued,
    settings,
)

if TYPE_CHECKING:
    from ..snapshots.beginning import Beginning


CAPABILITIES = Capabilities(
    faults=frozenset(COMMON_KINDS),
    commands=frozenset({"savepoint", "stop-with-savepoint", "cancel", *OF_A_SNAPSHOT, "resume", "fork"}),
    operators=frozenset(OPERATORS),
    sources=frozenset(SOURCES),
    rescales=True,
    resumes_older=True,
    claims_snapshots=True,
    upgrades=True,
    changes_operators=True,
    forks_by_reference=True,
    forks_memory=True,
    refuses_incompatible=True,
    regional_recovery=True,
    local_recovery=True,
    guarantees=frozenset({"exactly-once", "at-least-once", "at-most-once"}),
    alignments=frozenset(ALIGNMENTS),
    spilling=frozenset(SPILLING),
    spill_stores=frozenset(SPILL_STORES),
    sinks=frozenset({"transactional", "idempotent", "plain"}),
    committing=frozenset({"writer", "committer", "global"}),
    pooled_ids=True,
    two_phase=True,
    state_backends=frozenset(STATE_BACKENDS),
    snapshot_modes=frozenset(SNAPSHOT_MODES),
    snapshot_stores=frozenset(SNAPSHOT_STORES),
    snapshot_formats=frozenset(SNAPSHOT_FORMATS),
    concurrent_checkpoints=True,
    final_checkpoint_alone=True,
    trims_logs=True,
    file_faults=True,
    local_channels=True,
    deviations=True,
    enumerators=True,
    transitions=TRANSITIONS,
)


class SimulatedSubject(Continued):
    """Runs scenarios in virtual time, with `defect` planted in the engine."""

    def __init__(self, defect: str | None = None) -> None:
        self.defect = defect
        self.events = 0
        """of the latest run"""
        self._most = LIMIT_STEPS
        self._transitions: dict[str, int] = {}

    @property
    def name(self) -> str:
        return "simulated"

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @property
    def transitions(self) -> Mapping[str, int]:
        """How often the latest run took each transition of barrier alignment."""
        return self._transitions

    def within(self, events: int) -> SimulatedSubject:
        """The same subject, which raises ScenarioRefused if a run needs that many events."""
        bounded = copy.copy(self)
        bounded._most = min(events, LIMIT_STEPS)
        return bounded

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        """Run a scenario; raises ScenarioRefused if the engine refuses it, or its run is too large."""
        if self._begins is not None:
            scenario = self._begins.scenario
        refuse_aims(scenario)
        parts = parts_for(self.defect)
        transitions = TransitionCount()
        try:
            run = Run(scenario, parts, timeline, self._most, self._begins, transitions.count)
        except EngineError as error:
            raise ScenarioRefused(f"the reference engine refuses the scenario: {error}") from error
        history = run.history()
        if self._leaves is not None:
            run.leave(self._leaves)
        self.events = run.world.loop.steps
        self._transitions = transitions.taken()
        run.let_go()
        return history


class BoundedRecorder(Recorder):
    """Ends a run whose snapshots have become too large for a history."""

    snapshot_bytes = 0
    full: Callable[[], None]

    def keeps(self, state: str) -> None:
        self.snapshot_bytes += len(state)
        if self.snapshot_bytes > LIMIT_SNAPSHOT_BYTES:
            self.full()


class Run:
    """One run: a world, its faults and commands, and its history."""

    def __init__(
        self,
        scenario: Scenario,
        parts: Parts,
        timeline: bool,
        most_events: int = LIMIT_STEPS,
        begins: Beginning | None = None,
        on_transition: OnTransition | None = None,
    ) -> None:
        self.scenario = scenario
        self.begins = begins
        self._past = begins.past if begins is not None else None
        self.parts = parts
        self._most = most_events
        engine = scenario.engine
        engine_config = config(engine, lateness_us(scenario))
        engine_config.check([source.name for source in scenario.workload.inputs if not source.rewindable])
        graphs = job_graphs(scenario, begins.past.job if begins is not None else 0)
        for graph in graphs:
            check_local(graph, engine_config)
        self._history = History(
            one_clock=True,
            subject="simulated",
            guarantee=engine.guarantee,
            sink=engine.sink,
            identity=identity(scenario.workload) if engine.sink == "idempotent" else "key",
            restart_attempts=engine.restart_attempts,
            tolerated_failures=engine.tolerated_failures,
            short_timeout=has_short_timeout(scenario.workload, scenario.topology, scenario.engine) or msgspec.UNSET,
            retained_checkpoints=engine.retained_checkpoints,
            snapshots=engine.snapshot_store,
            savepoints=engine.savepoints if engine.savepoints != "snapshots" else msgspec.UNSET,
            runs=[],
            channels=[],
            stored=[],
            completed=[],
            transactions=[],
            passing=[],
            written=[],
            reads=[],
            journal=[],
            timeline=[],
        )
        order, begins_us = 0, 0
        if begins is not None:
            begins.past.into(self._history)
            order, begins_us = begins.past.order, begins.past.at_us
        kinds = [fault_kind(fault) for fault in scenario.faults]
        dated = dated_inputs(scenario.workload) if self._history.one_clock else []
        self.recorder = BoundedRecorder(self._history, kinds, lambda: self.world.loop.now, timeline, dated, order)
        self.recorder.full = self._stop
        self.perturbations = Perturbations((one.what, one.occurrence, one.by_us) for one in scenario.deviations)
        bounded = msgspec.structs.replace(settings(scenario), limit_steps=most_events)
        self.forks = Forks(scenario, parts, engine_config, bounded, on_transition)
        self.world = World(
            graphs,
            engine_config,
            bounded,
            logs(scenario.workload),
            observer=self.recorder,
            perturbations=self.perturbations,
            parts=parts,
            identity=None if engine.sink == "plain" else Identity(identity(scenario.workload)),
            begins_from=self._copied(graphs, engine_config) if begins is not None else None,
            on_transition=on_transition,
        )
        self.environment = Disturbances(self.world)
        self.triggers = Triggers(
            lambda: self.environment.now() - begins_us, lambda time, act: self.environment.at(begins_us + time, act)
        )
        self._unapplied: dict[str, None] = {}
        self._resumes = [(at, one) for at, one in enumerate(scenario.commands) if isinstance(one, Resume)]
        self._plan()

    def _plan(self) -> None:
        for number, fault in enumerate(self.scenario.faults):
            name = fault_in_words(number, fault_kind(fault), self._past)
            self._unapplied[name] = None
            self.triggers.add(fault.trigger, self._injection(number, name))
        for number, command in enumerate(self.scenario.commands):
            name = command_in_words(number, kind_of(command), self._past)
            if isinstance(command, Fork):
                self._unapplied[name] = None
                if not isinstance(command.trigger, AtRest):
                    self.triggers.add(command.trigger, self._forking(number, command))
            elif isinstance(command, OfASnapshot):
                self._unapplied[name] = None
                self.triggers.add(command.trigger, self._of_a_snapshot(number, name, command))
            elif not isinstance(command, Resume):
                self._unapplied[name] = None
                self.triggers.add(command.trigger, self._issue(number, name, command))
        self.world.direct(Director(self))

    def _injection(self, number: int, name: str) -> Callable[[], None]:
        def act() -> None:
            if not self.world.job_over and inject(self.scenario.faults[number], number, self.environment):
                self._unapplied.pop(name, None)

        return act

    def _issue(self, number: int, name: str, command: AnyCommand) -> Callable[[], None]:
        def act() -> None:
            if not self.world.job_over:
                self._unapplied.pop(name, None)
                drain = isinstance(command, StopWithSavepoint) and command.drain
                assert isinstance(command, Savepoint | StopWithSavepoint | Cancel)
                self.world.command(number, CommandKind(kind_of(command)), drain, format_of(command) or None)

        # a command acts between steps: the task that reached the point finishes its step first
        return lambda: self.world.loop.after(0, lambda *_: act())

    def _of_a_snapshot(self, number: int, name: str, command: OfASnapshot) -> Callable[[], None]:
        """Request that a snapshot be deleted, copied or moved, if there is one of that name by then."""

        def act() -> None:
            snapshot = None if self.world.job_over else self._meant(command.snapshot)
            if snapshot is not None:
                self._unapplied.pop(name, None)
                self.world.command(number, CommandKind(kind_of(command)), False, None, CheckpointId(snapshot))

        return lambda: self.world.loop.after(0, lambda *_: act())

    def _meant(self, snapshot: str) -> int | None:
        """The snapshot that a user means.  A savepoint may be gone by then: a user may repeat the command."""
        retained = [one.checkpoint for one in self.world.retained_now()]
        found = named(snapshot, retained, self.scenario, answers(self._history))
        return found[0] if found else saved_as(snapshot, self.scenario, answers(self._history))

    def _forking(self, number: int, command: Fork) -> Callable[[], None]:
        return lambda: self.world.loop.after(0, lambda *_: self._begin_fork(number, command))

    def _begin_fork(self, number: int, command: Fork) -> None:
        if self.forks.begin(number, command, self.world, self.recorder):
            self._unapplied.pop(command_in_words(number, kind_of(command), self._past), None)

    def resume(self, status: Status) -> None:
        """Start the next job once the previous one has ended, if the scenario has a resume."""
        if not self._resumes or status is Status.FINISHED:
            return
        number, command = self._resumes[0]
        pause = command.trigger.at_us if isinstance(command.trigger, AtTime) else 1_000

        def act() -> None:
            world = self.world
            retained = world.resumable()
            found = named(command.snapshot, [one.checkpoint for one in retained], self.scenario, answers(self._history))
            snapshot = CheckpointId(found[0]) if found else None
            if snapshot is None and (status is Status.FAILED or command.inserted or command.snapshot != "newest"):
                return
            self._resumes.pop(0)
            other = snapshot if command.snapshot != "newest" else None
            claimed = CLAIMED[command.claim_mode] if snapshot is not None else None
            world.observer.saw(resume_issued(number, command, other, claimed))
            world.submit(retained, other if claimed is None else snapshot, claimed)
            world.observer.saw(o.command_returned(number, snapshot, None))

        self.environment.at(self.world.loop.now + pause, act)

    def history(self) -> History:
        """Run the scenario; the history of the run.  Raises ScenarioRefused."""
        history, world, begins = self._history, self.world, self.begins
        if begins is None:
            world.run()
        else:
            for event in begins.past.begin():
                self.recorder.saw(event)
            world.fork(self._stores)
        if self._cut_off():
            world.quiet = False
        history.quiet = world.quiet
        history.committed = list(world.external.rows())
        if world.quiet:
            world.read_sink()
            self._fork_at_rest()
        if forked := self.forks.run():
            history.forks = forked
        history.residue = residue_of(world)  # a fork may have needed the same files
        history.unapplied = [
            *self._unapplied,
            *self.perturbations.unapplied(),
            *(kind_of(one) for _, one in self._resumes),
        ]
        history.defect_reached = self.parts.reached
        if begins is not None:
            begins.past.end(history)
        return history

    def _copied(self, graphs: Sequence[JobGraph], engine_config: Config) -> Copied:
        """The stores with which the world begins."""
        assert self.begins is not None
        past, stores = self.begins.past, self.begins.stores
        external = TransactionStore((*passing(graphs), *past.passing))
        past.fill(external)
        logs = LogShelf(whole_files=engine_config.spill_store != "log")
        for log, elements in stores.logs.items():
            for number, element in elements:
                logs.append(log, number, element)
            logs.finish(log, logs.begin(log))
        self._stores = Copied(
            retained=stores.records,
            at_us=past.at_us,
            job=past.job,
            record=stores.job,
            files=dict(stores.files),
            trimmed=dict(stores.trimmed),
            external=external,
            claims=past.claims,
            logs=logs,
        )
        return self._stores

    def leave(self, folder: Path) -> None:
        """Make a directory of the retained snapshots.  Raises UsageError if there is none."""
        from ..snapshots.beginning import Stores, leave

        world = self.world
        record = world.jobs.load(world.job_number)
        records = tuple(world.files.listed())
        logs = dict.fromkeys(log for one in records for log in one.logs)
        if record is None:
            raise UsageError(f"the run has begun no job, so it has no snapshots to leave in {folder}")
        stores = Stores(
            records=records,
            files=world.files.files,
            job=record,
            trimmed=world.jobs.trimmed,
            logs={log: sorted(world.channel_logs.durable(log).items(), key=lambda one: one[0]) for log in logs},
        )
        scenario = self.scenario if self.begins is None else self.begins.past.scenario
        leave(folder, scenario, self._history, stores)

    def _fork_at_rest(self) -> None:
        for number, command in enumerate(self.scenario.commands):
            if isinstance(command, Fork) and isinstance(command.trigger, AtRest):
                self._begin_fork(number, command)

    def let_go(self) -> None:
        """Take it apart; see `World.let_go`."""
        self.world.let_go()
        vars(self).clear()

    def _stop(self) -> None:
        self.world.loop.stopped = True

    def _cut_off(self) -> bool:
        """Whether the run has exceeded a bound on its size.  Raises ScenarioRefused if the scenario itself is so large.

        If a small scenario has such a large run, the engine is in a loop, and the job has not come to rest.
        """
        now, engine = self.world.loop.now, self.scenario.engine
        if self.recorder.snapshot_bytes > LIMIT_SNAPSHOT_BYTES:
            if ROOM * snapshot_bytes_of(self.scenario) < LIMIT_SNAPSHOT_BYTES:
                return True
            raise ScenarioRefused(
                f"its snapshots have more than {LIMIT_SNAPSHOT_BYTES:,} bytes after {now:,} µs, the most that a run may"
                f" store and load: lower its keys, splits or records, or raise engine.checkpoint_interval_us "
                f"({engine.checkpoint_interval_us:,})"
            )
        if self.world.loop.steps >= self._most < LIMIT_STEPS:
            raise ScenarioRefused(f"its run has had {self._most:,} events, as many as it was to have")
        if self.world.loop.steps >= LIMIT_STEPS:
            if ROOM * events_of(self.scenario) < LIMIT_STEPS:
                return True
            raise ScenarioRefused(
                f"its run has had {LIMIT_STEPS:,} events after {now:,} µs, the most that one may have: lower records,"
                " subtasks or faults, or raise engine.checkpoint_interval_us and engine.read_interval_us"
            )
        return False


class Director:
    """Passes the reports of a world to the triggers of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.points = run.triggers.points
        self.reached = run.triggers.reached
        self.entered = run.triggers.entered

    @property
    def phases(self) -> bool:
        return self._run.triggers.phases

    def job_ended(self, job: int, status: Status) -> None:
        self._run.resume(status)
