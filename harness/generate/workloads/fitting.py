"""A scenario reduced to what a subject can do.

`needs` lists what a scenario needs.  A part for which the subject lacks the ability is
removed here if the scenario makes sense without it.  Operators and edges are never
removed: if the subject lacks one, the strategies draw another scenario.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET
from msgspec.structs import replace

from ....faults.plan import kind_of
from ....properties.model.workload import Workload
from ...scenario.checks import ANY_SNAPSHOT
from ...scenario.model import (
    AnyCommand,
    CopySnapshot,
    Engine,
    Fork,
    MoveSnapshot,
    OfASnapshot,
    Resume,
    Savepoint,
    Scenario,
    StopWithSavepoint,
    format_of,
)
from ...scenario.model import kind_of as command_kind
from ...scenario.upgrades import is_refused, upgrade_of
from ...subject.abilities import VOCABULARIES
from ...subject.port import Capabilities
from ..engines import promise, promising
from .enumerated import statically_assigned


def fit(scenario: Scenario, capabilities: Capabilities, *, given: bool = False) -> Scenario:
    """The scenario without the parts that the subject cannot do and that can be left out.

    A given workload is not changed.
    """
    engine = fitted(scenario.engine, capabilities)
    workload = scenario.workload if given else _fed(scenario.workload, engine, capabilities)
    if not all(source.bounded for source in workload.inputs):
        engine = replace(engine, checkpoints_after_finish=True)  # else unbounded jobs stop committing
    commands = tuple(
        _known(command, capabilities, engine)
        for command in scenario.commands
        if command_kind(command) in capabilities.commands
        and (not isinstance(command, CopySnapshot | MoveSnapshot) or engine.snapshot_store == "files")
        and (not isinstance(command, Fork) or engine.snapshot_store == "files" or capabilities.forks_memory)
        and not (
            is_refused(command, scenario.workload)
            and (not _takes_refusals(command, capabilities) or engine.guarantee == "at-most-once")
        )
    )
    return replace(
        scenario,
        workload=workload,
        engine=engine,
        faults=tuple(fault for fault in scenario.faults if kind_of(fault) in capabilities.faults),
        commands=tuple(_with_names_that_are_there(commands)),
        deviations=scenario.deviations if capabilities.deviations else (),
    )


def fitted(engine: Engine, capabilities: Capabilities) -> Engine:
    """The engine with only the settings that the subject knows."""
    engine = _barriers(_promised(engine, capabilities), capabilities)
    knows_concurrent = capabilities.concurrent_checkpoints
    engine = replace(
        engine,
        state_backend=_one_of("state_backends", engine.state_backend, capabilities.state_backends),
        snapshot_mode=_one_of("snapshot_modes", engine.snapshot_mode, capabilities.snapshot_modes),
        snapshot_store=_one_of("snapshot_stores", engine.snapshot_store, capabilities.snapshot_stores),
        concurrent_checkpoints=engine.concurrent_checkpoints if knows_concurrent else 1,
        checkpoints_after_finish=engine.checkpoints_after_finish or not capabilities.final_checkpoint_alone,
        pooled_ids=engine.pooled_ids and capabilities.pooled_ids and _commits_itself(engine),
        trims_logs=engine.trims_logs and capabilities.trims_logs,
        local_channels=engine.local_channels and capabilities.local_channels,
        two_phase=engine.two_phase if capabilities.two_phase else (),
    )
    has_files = engine.snapshot_store == "files" and engine.snapshot_format in capabilities.snapshot_formats
    return replace(
        engine,
        snapshot_format=engine.snapshot_format if has_files else "canonical",
        failover=_failover(engine, capabilities),
    )


def _promised(engine: Engine, capabilities: Capabilities) -> Engine:
    """The engine with a guarantee, a sink and a committing stage that the subject has."""
    wanted = promise(engine.guarantee, engine.sink, capabilities.guarantees, capabilities.sinks)
    committing = engine.committing
    if wanted[1] == "transactional":
        committing = _one_of("committing", committing, capabilities.committing)
    if (*wanted, committing) == (engine.guarantee, engine.sink, engine.committing):
        return engine
    # two-phase operators and local recovery need other settings too: they stay together, or not at all
    engine = replace(engine, committing=committing, two_phase=(), failover=_together(engine))
    return promising(engine, *wanted)


def _together(engine: Engine) -> str:
    return "full" if engine.failover == "local" else engine.failover


def _barriers(engine: Engine, capabilities: Capabilities) -> Engine:
    """The engine with an alignment and a way of spilling that the subject has."""
    if engine.guarantee == "exactly-once":
        engine = replace(engine, alignment=_one_of("alignments", engine.alignment, capabilities.alignments))
    spilling = engine.spilling
    if engine.alignment != "aligned":
        spilling = _one_of("spilling", spilling, capabilities.spilling)
    elif spilling not in capabilities.spilling:
        spilling = "at-once"
    store = engine.spill_store
    if spilling != "at-once":
        store = _one_of("spill_stores", store, capabilities.spill_stores)
    return replace(engine, spilling=spilling, spill_store=store)


def _one_of(field: str, wanted: str, declared: frozenset[str]) -> str:
    """The wanted value, or the first that the subject has; if it has none, the wanted value stays, and is lacking."""
    return next((name for name in (wanted, *VOCABULARIES[field][1]) if name in declared), wanted)


def _commits_itself(engine: Engine) -> bool:
    return engine.sink == "transactional" and engine.committing == "writer"


def _failover(engine: Engine, capabilities: Capabilities) -> str:
    recovers = {
        "local": capabilities.local_recovery and engine.spilling in capabilities.local_spilling,
        "region": capabilities.regional_recovery,
    }
    return engine.failover if recovers.get(engine.failover, True) else "full"


def _fed(workload: Workload, engine: Engine, capabilities: Capabilities) -> Workload:
    """The workload with inputs that the subject can read."""
    if not capabilities.enumerators or engine.guarantee == "at-most-once":
        workload = statically_assigned(workload)
    sources = capabilities.sources
    if sources >= {"bounded", "unbounded", "idle"}:
        return workload
    inputs = tuple(
        replace(
            source,
            bounded="bounded" in sources and (source.bounded or "unbounded" not in sources),
            idle_after_us=source.idle_after_us if "idle" in sources else 0,
        )
        for source in workload.inputs
    )
    return replace(workload, inputs=inputs)


def _with_names_that_are_there(commands: tuple[AnyCommand, ...]) -> Iterator[AnyCommand]:
    """The commands without a name of a savepoint that is not taken at all: a resume or a fork takes the oldest snapshot
    instead; a deletion, a copy and a move are left out."""
    names = {one.name for one in commands if isinstance(one, Savepoint | StopWithSavepoint)}
    for one in commands:
        if not isinstance(one, OfASnapshot | Resume | Fork) or one.snapshot in (*ANY_SNAPSHOT, *names):
            yield one
        elif not isinstance(one, OfASnapshot):
            yield replace(one, snapshot="oldest")


def _takes_refusals(command: AnyCommand, capabilities: Capabilities) -> bool:
    """Whether the subject knows commands such as this one, which request a job that must be refused."""
    return capabilities.upgrades if upgrade_of(command) is not None else capabilities.refuses_incompatible


def _known(command: AnyCommand, capabilities: Capabilities, engine: Engine) -> AnyCommand:
    """The command without a parallelism, a format, a claim, an upgrade, or another snapshot than the newest, that the
    subject lacks."""
    if not capabilities.rescales and isinstance(command, Resume | Fork):
        command = replace(command, parallelism={})
    if not capabilities.resumes_older and isinstance(command, Resume):
        command = replace(command, snapshot="newest")
    if not capabilities.claims_snapshots and isinstance(command, Resume):
        command = replace(command, claim_mode="by-kind")
    if not capabilities.forks_by_reference and isinstance(command, Fork):
        command = replace(command, by_reference=False)
    if isinstance(command, Resume) and not (capabilities.upgrades and engine.guarantee != "at-most-once"):
        command = replace(command, upgrade=UNSET)
    known = capabilities.snapshot_formats if engine.snapshot_store == "files" else {"canonical"}
    return command if format_of(command) in ("", *known) else replace(command, format=UNSET)
