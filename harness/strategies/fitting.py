"""A scenario cut down to what a subject can do: what it cannot is not asked of it."""

from __future__ import annotations

import msgspec

from ...faults.plan import kind_of
from ..scenario import AnyCommand, Resume, Scenario
from ..scenario import kind_of as command_kind
from ..subject import Capabilities
from .enumerated import statically_assigned


def fit(scenario: Scenario, capabilities: Capabilities) -> Scenario:
    """The scenario without the faults, commands and deviations that the subject does not know.

    Its operators are the strategies' affair; a guarantee or sink that it lacks
    is replaced by one that it has.
    """
    engine = scenario.engine
    if engine.guarantee not in capabilities.guarantees and capabilities.guarantees:
        engine = msgspec.structs.replace(engine, guarantee=min(capabilities.guarantees))
    if engine.alignment not in capabilities.alignments:
        engine = msgspec.structs.replace(engine, alignment="aligned")
    if engine.spilling not in capabilities.spilling:
        engine = msgspec.structs.replace(engine, spilling="at-once")
    recovers = capabilities.local_recovery and engine.spilling in capabilities.local_spilling
    if engine.failover == "local" and not recovers:
        engine = msgspec.structs.replace(engine, failover="full")
    if engine.sink not in capabilities.sinks and capabilities.sinks:
        engine = msgspec.structs.replace(engine, sink=min(capabilities.sinks))
    if engine.committing not in capabilities.committing:
        engine = msgspec.structs.replace(engine, committing="writer")
    if engine.two_phase and not capabilities.two_phase:
        engine = msgspec.structs.replace(engine, two_phase=())
    workload = scenario.workload if capabilities.enumerators else statically_assigned(scenario.workload)
    return msgspec.structs.replace(
        scenario,
        workload=workload,
        engine=engine,
        faults=tuple(fault for fault in scenario.faults if kind_of(fault) in capabilities.faults),
        commands=tuple(
            command if capabilities.rescales else _as_wide(command)
            for command in scenario.commands
            if command_kind(command) in capabilities.commands and (capabilities.refuses_unfit or not _is_unfit(command))
        ),
        deviations=scenario.deviations if capabilities.deviations else (),
    )


def _is_unfit(command: AnyCommand) -> bool:
    """Whether it asks for a job that is to be refused."""
    return isinstance(command, Resume) and bool(command.inserted)


def _as_wide(command: AnyCommand) -> AnyCommand:
    """The command without another parallelism."""
    return msgspec.structs.replace(command, parallelism={}) if isinstance(command, Resume) else command
