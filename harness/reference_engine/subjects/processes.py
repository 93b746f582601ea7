"""The reference engine as real processes, as a subject."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ....faults.plan import KINDS
from ....properties.model.history import OF_A_SNAPSHOT, Forked, History
from ....properties.reconstruct.layouts import rescaled
from ....reference_impl.core.vocabulary.errors import EngineError
from ....reference_impl.defects import parts_for
from ....reference_impl.processes.launching.cluster import LauncherFailed
from ...runtime.exit_codes import HarnessFailed, UsageError
from ...scenario.bounds import PROCESSES
from ...scenario.checks import (
    ALIGNMENTS,
    SNAPSHOT_FORMATS,
    SNAPSHOT_MODES,
    SNAPSHOT_STORES,
    SPILL_STORES,
    SPILLING,
    STATE_BACKENDS,
)
from ...scenario.layout import topologies_of
from ...scenario.model import Fork, Scenario
from ...subject.abilities import OPERATORS, SOURCES
from ...subject.port import Capabilities, ScenarioRefused
from ...toxiproxy import program as toxiproxy
from ..orchestrator.copies import Forking, StoresOfFork, stores_of_forks
from ..orchestrator.evidence import FORKS, SUBJECT, Copied, forked_of, history_of, keep
from ..orchestrator.opening import opened
from ..orchestrator.orchestrator import Orchestrator
from ..orchestrator.remembered import Note
from ..orchestrator.services import Services
from ..services import places, postgres, rocksdb
from ..snapshots.beginning import leave
from .continuing import Continued
from .past import past_of_fork
from .translation import job_graph, refuse_aims

SCALE_VARIABLE = "CUTPROOF_TIME_SCALE"
SCALE = 20
"""the time scale: µs of the machine's clock for each µs of the scenario"""
LARGEST_SCALE = 1_000


class ProcessesSubject(Continued):
    """Runs scenarios on processes, with `defect` planted.  Each run is saved in a folder below `keep` before the merge.

    The launcher, Toxiproxy and PostgreSQL are started when a scenario first needs them, and run until `close`.
    """

    def __init__(
        self, defect: str | None = None, *, keep: Path | None = None, services: Services | None = None
    ) -> None:
        """`services`: the services to use instead of new ones; `close` closes them too."""
        parts_for(defect)  # raises for an unknown defect
        self.defect = defect
        self.keep = keep
        self.saved: Path | None = None
        """the folder of the latest run, until `forget`"""
        self._scale = _scale()
        self._services = services or Services()

    @property
    def name(self) -> str:
        return SUBJECT

    @property
    def capabilities(self) -> Capabilities:
        """Everything but schedule perturbations, local channels, forks from memory, and local recovery without
        continuous spilling.  A user's own database is never killed."""
        not_ours = {"kill-database"} if os.environ.get(postgres.DSN_VARIABLE) else set()
        return Capabilities(
            faults=frozenset(KINDS) - not_ours,
            commands=frozenset({"savepoint", "stop-with-savepoint", "cancel", *OF_A_SNAPSHOT, "resume", "fork"}),
            operators=frozenset(OPERATORS),
            sources=frozenset(SOURCES),
            rescales=True,
            resumes_older=True,
            claims_snapshots=True,
            forks_by_reference=True,
            upgrades=True,
            changes_operators=True,
            refuses_incompatible=True,
            guarantees=frozenset({"exactly-once", "at-least-once", "at-most-once"}),
            alignments=frozenset(ALIGNMENTS),
            spilling=frozenset(SPILLING),
            spill_stores=frozenset(SPILL_STORES),
            sinks=frozenset({"transactional", "idempotent", "plain"}),
            committing=frozenset({"writer", "committer", "global"}),
            pooled_ids=True,
            two_phase=True,
            state_backends=frozenset(STATE_BACKENDS if rocksdb.is_there() else ("heap",)),
            snapshot_modes=frozenset(SNAPSHOT_MODES),
            snapshot_stores=frozenset(SNAPSHOT_STORES),
            snapshot_formats=frozenset(SNAPSHOT_FORMATS),
            concurrent_checkpoints=True,
            final_checkpoint_alone=True,
            trims_logs=True,
            file_faults=True,
            deviations=False,
            regional_recovery=True,
            local_recovery=True,
            local_spilling=frozenset({"continuous"}),
            enumerators=True,
            real_time=True,
        )

    def check(self) -> None:
        """Raise ServiceMissing or PostgresMissing if a server is missing, and UsageError if the path of the temporary
        folder is too long for a server's socket."""
        if postgres.external_dsn() is None:
            places.check_socket(postgres.SOCKET)
        toxiproxy.version(toxiproxy.binary())
        postgres.describe()

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        """Run a scenario; raises ScenarioRefused if it cannot be run, CutproofError if a service is missing."""
        if self._begins is not None:
            scenario = self._begins.scenario
        if scenario.engine.failover == "local" and scenario.engine.spilling != "continuous":
            raise ScenarioRefused(
                "failover local: on processes a channel has the log of continuous spilling or none; spill continuously"
            )
        if scenario.engine.state_backend == "lsm" and not rocksdb.is_there():
            raise ScenarioRefused(f"state_backend lsm: on processes it is RocksDB; {rocksdb.ADVICE}")
        forks = [command for command in scenario.commands if isinstance(command, Fork)]
        if forks and scenario.engine.snapshot_store == "memory":
            raise ScenarioRefused("fork: on processes the snapshots in a coordinator's memory are not copied")
        refuse_aims(scenario)
        layouts = [*topologies_of(scenario)]
        forked = [rescaled(layout, fork.parallelism) for layout in layouts for fork in forks]
        try:
            for layout in forked:
                job_graph(scenario.workload, layout, scenario.engine)
        except EngineError as error:
            raise ScenarioRefused(f"the reference engine refuses the scenario: {error}") from error
        tasks = max(sum(layout.parallelism.values()) for layout in (*layouts, *forked))
        if tasks > PROCESSES.most:
            raise ScenarioRefused(PROCESSES.refusal(tasks))
        try:
            return self._run(scenario, timeline)
        except (LauncherFailed, HarnessFailed) as error:
            remaining = self._services.close()
            if isinstance(error, HarnessFailed) and not remaining:
                raise
            lost = "" if isinstance(error, HarnessFailed) else "the run's processes cannot be controlled any more: "
            raise HarnessFailed(f"{lost}{error}{''.join(map(_how_to_remove, remaining))}") from error
        except BaseException:
            self.close()  # the state of the services is unknown; the next run starts new ones
            raise

    def _run(self, scenario: Scenario, timeline: bool) -> History:
        self.saved = None
        begins = self._begins
        run = opened(self._services, scenario, self.defect, self._scale, timeline, begins)
        orchestrator = Orchestrator(run, scenario, begins)
        try:
            orchestrator.run()
            evidence = orchestrator.evidence()
        finally:
            orchestrator.close()
        if self.keep is not None:
            self.saved = keep(evidence, run.config.journal, self.keep / run.config.run, run.config.store)
        history = history_of(evidence, run.config.journal)
        if self._leaves is not None:
            leave(self._leaves, scenario if begins is None else begins.past.scenario, history, run.config.store)
        forks: list[Forked] = []
        for copy in orchestrator.copies.taken:
            for stores in stores_of_forks(copy):
                forks.append(self._fork(scenario, history, stores, len(forks)))
        if forks:
            history.forks = forks
        run.close()
        return history

    def _fork(self, scenario: Scenario, history: History, stores: StoresOfFork, number: int) -> Forked:
        """Run a job that is forked from a snapshot of a run which is over."""
        copy, from_copy = stores.copy, stores.from_copy
        past, undisturbed = past_of_fork(
            scenario, history, stores.checkpoint, copy.command, copy.job.job, copy.at_us, from_copy=from_copy
        )
        begins = Forking(past=past, stores=stores)
        run = opened(self._services, undisturbed, self.defect, self._scale, False, begins)
        orchestrator = Orchestrator(run, undisturbed, begins)
        try:
            orchestrator.run()
            evidence = orchestrator.evidence(
                Copied(at_us=copy.at_us, retained=list(copy.retained), from_copy=from_copy)
            )
        finally:
            orchestrator.close()
        if self.saved is not None:
            keep(evidence, run.config.journal, self.saved / FORKS / str(number))
        forked = forked_of(evidence, history_of(evidence, run.config.journal))
        run.close()
        return forked

    def forget(self) -> None:
        """Delete the folder of the latest run."""
        folder, self.saved = self.saved, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End every process that this subject has started."""
        self._services.close()


def _how_to_remove(note: Note) -> str:
    return f"; {note.what} are left in PostgreSQL, and `cutproof doctor --prune` removes them once it answers"


def _scale() -> int:
    text = os.environ.get(SCALE_VARIABLE, "")
    if not text:
        return SCALE
    if not text.isdecimal() or not 1 <= int(text) <= LARGEST_SCALE:
        raise UsageError(f"{SCALE_VARIABLE} is {text!r}, not a whole number from 1 to {LARGEST_SCALE}")
    return int(text)
