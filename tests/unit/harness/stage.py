"""What a run on processes begins with: a scenario with the faults of a test, its layout, and what processes report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cutproof.faults.plan import AnyFault
from cutproof.harness.reference_engine.orchestrator.layout import COORDINATOR, Placement, RunConfig, lives_together
from cutproof.harness.reference_engine.orchestrator.opening import points_of
from cutproof.harness.reference_engine.subjects import process_job
from cutproof.harness.scenario.model import Scenario
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.stages import StageName
from cutproof.reference_impl.driver.settings import Settings
from cutproof.reference_impl.processes.network import frames as f
from cutproof.reference_impl.processes.stores.sinks import SinkPlace

SCALE = 20


def laid_out(
    folder: Path, scenario: Scenario, *, felt: Sequence[str] = (), store: str = "sqlite"
) -> tuple[Placement, RunConfig]:
    """Where each task of a run lives, and what each process is told."""
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
        sink=SinkPlace(store=store, folder=folder / "sink"),
        run="run",
        secret=b"of the run",
        ports=dict.fromkeys([COORDINATOR, *placement.processes], 1),
        routes=dict.fromkeys(placement.channels, 2),
        felt=frozenset(felt),
    )
    return placement, config


def job_facts(**changed: Any) -> f.JobFacts:
    facts = f.JobFacts(0, 1, AttemptId(1), StageName.WORKING, True, False, False, None, ())
    return msgspec.structs.replace(facts, **changed)


def task_facts(
    task: str, *, aligning: bool = False, unsettled: int | None = None, is_handed: bool = False
) -> f.TaskFacts:
    return f.TaskFacts(0, TaskId(task), aligning, None if unsettled is None else CheckpointId(unsettled), is_handed)


def planned(scenario: Scenario, *faults: AnyFault, **engine: Any) -> Scenario:
    """The scenario with these faults, and no commands and deviations."""
    changed = msgspec.structs.replace(scenario.engine, **engine)
    return msgspec.structs.replace(scenario, faults=faults, commands=(), deviations=(), engine=changed)
