"""The job of a scenario, as each process of the reference engine builds it.

The harness encodes the scenario once.  Each process reads it and builds the same graph
and settings from it.  Times stay in µs of the scenario, because the clock of a process
runs `scale` times slower.
"""

from __future__ import annotations

import msgspec

from ....properties.model.upgrade import Upgrade
from ....properties.semantics.user_functions import user_nodes
from ....reference_impl.core.extensions.sinks.direct_sink import Identity
from ....reference_impl.core.job.config import Config
from ....reference_impl.defects import parts_for
from ....reference_impl.driver.machines import Job
from ....reference_impl.driver.settings import Settings
from ...scenario import forecast
from ...scenario.model import Scenario
from ...workloads.user_functions import known
from ..functions.operators import entry_of
from . import translation

FACTORY = f"{__name__}:make_job"
"""the name of `make_job` in the configuration of a process"""

CHECKPOINT_TIMEOUT_US = 2_000_000
DEPLOY_TIMEOUT_US = 6_000_000
RETRY_US = 40_000
"""of the machine's clock: on a busy machine, shorter timeouts would fail correct jobs"""


NOT_UPGRADED = Upgrade()


class Described(msgspec.Struct, frozen=True, kw_only=True):
    scenario: Scenario
    defect: str | None
    scale: int
    jobs_before: int = 0
    """of another run, from whose snapshot the first job begins; it has the number behind theirs"""
    upgraded: Upgrade = Upgrade()
    """the uids, types and nodes of the first job"""
    functions: tuple[str, ...] = ()
    """package.module:NAME of the user's operators"""


def describe(
    scenario: Scenario, defect: str | None, scale: int, jobs_before: int = 0, upgraded: Upgrade = NOT_UPGRADED
) -> bytes:
    """The encoded scenario that `make_job` reads."""
    entries = [entry_of(name) for name in user_nodes(scenario.workload).values()]
    functions = tuple(entry for entry in entries if entry is not None)
    return msgspec.json.encode(
        Described(
            scenario=scenario,
            defect=defect,
            scale=scale,
            jobs_before=jobs_before,
            upgraded=upgraded,
            functions=functions,
        )
    )


def make_job(described: bytes) -> Job:
    """The job of a scenario; raises EngineError if the engine refuses it."""
    described_job = msgspec.json.decode(described, type=Described)
    known(described_job.functions)
    scenario = described_job.scenario
    workload = scenario.workload
    graph, *later = translation.job_graphs(scenario, described_job.jobs_before, described_job.upgraded)
    return Job(
        graph=graph,
        later=tuple(later),
        config=real_config(scenario, described_job.scale),
        parts=parts_for(described_job.defect),
        logs=translation.logs(workload),
        identity=None if scenario.engine.sink == "plain" else Identity(translation.identity(workload)),
    )


def real_config(scenario: Scenario, scale: int) -> Config:
    """The engine's settings, with timeouts long enough for a busy machine."""
    config = translation.config(scenario.engine, translation.lateness_us(scenario))
    return msgspec.structs.replace(
        config,
        checkpoint_timeout_us=max(config.checkpoint_timeout_us, CHECKPOINT_TIMEOUT_US // scale),
        deploy_timeout_us=max(config.deploy_timeout_us, DEPLOY_TIMEOUT_US // scale),
        retry_us=max(config.retry_us, RETRY_US // scale),
    )


def has_short_timeout(scenario: Scenario, scale: int) -> bool:
    """Whether a checkpoint may take longer without a fault than the timeout that it has on processes."""
    timeout_us = real_config(scenario, scale).checkpoint_timeout_us
    engine = msgspec.structs.replace(scenario.engine, checkpoint_timeout_us=timeout_us)
    return forecast.has_short_timeout(scenario.workload, scenario.topology, engine)


def real_settings(scenario: Scenario) -> Settings:
    """The settings of a process's world, without an artificial latency of channels: real ones have their own."""
    return msgspec.structs.replace(translation.settings(scenario), channel_latency_us=0)
