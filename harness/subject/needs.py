"""The capabilities that a scenario needs, all in this module.

Every new feature of scenarios needs a line here.  Then no strategy draws it for a subject
that has not declared it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...faults.plan import AnyFault, FailWrite, TearWrite
from ...faults.plan import kind_of as fault_kind
from ...properties.model.workload import Input, Node, Topology, Workload
from ..runtime.exit_codes import UsageError
from ..scenario.model import Fork, Resume, Scenario, format_of
from ..scenario.model import kind_of as command_kind
from ..scenario.upgrades import absent_of, upgrade_of
from .abilities import VOCABULARIES, edge_of, names_of, operators_of
from .port import Capabilities

_NONE: frozenset[str] = frozenset()


def needs(scenario: Scenario) -> Capabilities:
    """The least capabilities that a subject must have.  There are no defaults: all that is not needed is left out."""
    engine = scenario.engine
    resumes = [command for command in scenario.commands if isinstance(command, Resume)]
    overtakes, seals = engine.alignment != "aligned", engine.sink == "transactional"
    spills = engine.spilling != "at-once"
    local = engine.failover == "local"
    return Capabilities(
        faults=frozenset(fault_kind(fault) for fault in scenario.faults),
        commands=frozenset(command_kind(command) for command in scenario.commands),
        operators=_operators(scenario.workload.nodes),
        edges=_edges(scenario.topology),
        sources=_sources(scenario.workload.inputs),
        guarantees=frozenset({engine.guarantee}),
        alignments=frozenset({engine.alignment}) if engine.guarantee == "exactly-once" or overtakes else _NONE,
        spilling=frozenset({engine.spilling}) if overtakes or spills else _NONE,
        spill_stores=frozenset({engine.spill_store}) if spills else _NONE,
        sinks=frozenset({engine.sink}),
        committing=frozenset({engine.committing}) if seals or engine.committing != "writer" else _NONE,
        pooled_ids=engine.pooled_ids,
        two_phase=bool(engine.two_phase),
        state_backends=frozenset({engine.state_backend}),
        snapshot_modes=frozenset({engine.snapshot_mode}),
        snapshot_stores=frozenset({engine.snapshot_store}),
        snapshot_formats=frozenset({engine.snapshot_format, *map(format_of, scenario.commands)} - {"", "canonical"}),
        concurrent_checkpoints=engine.concurrent_checkpoints > 1,
        final_checkpoint_alone=not engine.checkpoints_after_finish,
        trims_logs=engine.trims_logs,
        file_faults=any(map(_is_of_files, scenario.faults)),
        local_channels=engine.local_channels,
        deviations=bool(scenario.deviations),
        rescales=any(command.parallelism for command in scenario.commands if isinstance(command, Resume | Fork)),
        resumes_older=any(resume.snapshot != "newest" for resume in resumes),
        claims_snapshots=any(resume.claim_mode != "by-kind" for resume in resumes),
        forks_memory=engine.snapshot_store == "memory" and any(isinstance(one, Fork) for one in scenario.commands),
        forks_by_reference=any(isinstance(one, Fork) and one.by_reference for one in scenario.commands),
        upgrades=any(upgrade_of(resume) is not None for resume in resumes),
        changes_operators=any(map(_changes_operators, resumes)) or any(absent_of(scenario)),
        refuses_incompatible=any(resume.inserted for resume in resumes),
        regional_recovery=engine.failover == "region",
        local_recovery=local,
        local_spilling=frozenset({engine.spilling}) if local else _NONE,
        enumerators=any(source.is_enumerated for source in scenario.workload.inputs),
    )


def _changes_operators(resume: Resume) -> bool:
    upgrade = upgrade_of(resume)
    return upgrade is not None and bool(upgrade.removed or upgrade.added)


def lacks(scenario: Scenario, capabilities: Capabilities) -> tuple[str, ...]:
    """The capabilities, in words, that a scenario needs and a subject has not declared."""
    return tuple(_missing(needs(scenario), capabilities))


def demand_given(workload: Workload, topology: Topology | None, capabilities: Capabilities, who: str) -> None:
    """Raise UsageError, in one line, if a user's workload needs a capability that the subject has not declared."""
    needed = Capabilities(
        operators=_operators(workload.nodes),
        edges=frozenset(filter(None, (edge_of(type(node.operator)) for node in workload.nodes))) | _edges(topology),
        sources=_sources(workload.inputs),
        enumerators=any(source.is_enumerated for source in workload.inputs),
        guarantees=_NONE,
        alignments=_NONE,
        spilling=_NONE,
        spill_stores=_NONE,
        sinks=_NONE,
        committing=_NONE,
        state_backends=_NONE,
        snapshot_modes=_NONE,
        snapshot_stores=_NONE,
        snapshot_formats=_NONE,
        local_spilling=_NONE,
    )
    missing = tuple(_missing(needed, capabilities))
    if missing:
        raise UsageError(
            f"{who} cannot run the workload {workload.name}: "
            f"it needs {', '.join(missing)}, which {who} does not declare"
        )


def _missing(needed: Capabilities, capabilities: Capabilities) -> Iterator[str]:
    for field in Capabilities.__struct_fields__:
        wanted = getattr(needed, field)
        if wanted is True and not getattr(capabilities, field):
            yield field.replace("_", " ")
        elif not isinstance(wanted, bool):
            declared = operators_of(capabilities) if field == "operators" else getattr(capabilities, field)
            yield from (f"the {VOCABULARIES[field][0]} {name}" for name in sorted(wanted - declared))


def _is_of_files(fault: AnyFault) -> bool:
    """Whether a fault is of a mode that needs snapshots in files."""
    return (isinstance(fault, FailWrite) and fault.what != "write") or (
        isinstance(fault, TearWrite) and fault.how != "torn"
    )


def _operators(nodes: Iterable[Node]) -> frozenset[str]:
    return _NONE.union(*(names_of(node.operator) for node in nodes))


def _edges(topology: Topology | None) -> frozenset[str]:
    return frozenset(edge.partitioning for edge in topology.edges) if topology is not None else _NONE


def _sources(inputs: Iterable[Input]) -> frozenset[str]:
    found: set[str] = set()
    for source in inputs:
        found.add("bounded" if source.bounded else "unbounded")
        if source.idle_after_us:
            found.add("idle")
        if not source.rewindable:
            found.add("not-rewindable")
    return frozenset(found)
