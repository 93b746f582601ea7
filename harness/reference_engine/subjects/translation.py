"""Translates the engine-independent description of a workload into a job graph of the reference engine.

The functions made here are the user functions of the engine under test.  The quick checker
and PySpark read the same description and share none of this code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from ....faults.plan import AtAim
from ....properties.model import upgrade as described_upgrade
from ....properties.model import workload as described
from ....properties.model.absent import first_absent
from ....properties.model.stages import COMMITTERS
from ....properties.model.upgrade import absent_after
from ....properties.model.workload import SINK, Topology, Workload
from ....reference_impl import observed as o
from ....reference_impl.core.job.config import Config
from ....reference_impl.core.job.split_log import SplitLog
from ....reference_impl.core.job.topology import EdgeSpec, EventTime, JobGraph, OperatorSpec
from ....reference_impl.core.operators import broadcast, bursts, folding, holding, retractions, windows
from ....reference_impl.core.operators import operators as engine
from ....reference_impl.core.vocabulary.events import CommandKind
from ....reference_impl.core.vocabulary.ids import CheckpointId
from ....reference_impl.core.vocabulary.upgrades import HUNDREDTHS, StateMapping, Upgrade
from ....reference_impl.driver.settings import Settings
from ...scenario.bounds import LIMIT_STEPS
from ...scenario.model import Engine, Resume, Scenario
from ...scenario.upgrades import upgrade_of
from ...subject.port import ScenarioRefused
from ..functions.operators import shares_state, user_operator


def job_graph(workload: Workload, topology: Topology, configured: Engine | None = None) -> JobGraph:
    """The engine's graph: sources, operators, one sink, and the committers behind it.  The nodes in `two_phase` become
    two-phase operators: they change nothing, and commit the rows that they pass on."""
    configured = configured or Engine()
    two_phase = configured.two_phase
    specs = [
        OperatorSpec(
            name=source.name,
            parallelism=topology.parallelism[source.name],
            splits=workload.splits_of(source.name),
            bounded=source.bounded,
            event_time=EventTime(delay=source.delay, idle_after_us=source.idle_after_us) if source.times else None,
            rewindable=source.rewindable,
            enumerated=source.is_enumerated,
            appears_us=source.discovered_us,
            role="source",
        )
        for source in workload.inputs
    ]
    for node in workload.nodes:
        specs.append(
            OperatorSpec(
                name=node.name,
                parallelism=topology.parallelism[node.name],
                inputs=_edges(topology, node.inputs, node.name),
                build=None if node.name in two_phase else builder(node.operator),
                role="two-phase" if node.name in two_phase else "operator",
                shares=shares(node.operator),
                keeps_state=isinstance(node.operator, (described.Batch, *described.STATEFUL)),
            )
        )
    specs.append(
        OperatorSpec(
            name=SINK,
            parallelism=topology.parallelism[SINK],
            inputs=_edges(topology, (workload.output,), SINK),
            role="sink",
        )
    )
    specs.extend(_committers(topology.parallelism[SINK], configured.committing))
    return JobGraph(tuple(specs), topology.key_groups)


def _committers(parallelism: int, committing: str) -> Iterable[OperatorSpec]:
    """A committer behind each subtask of the sink, and a global one behind all of them."""
    committer, published = COMMITTERS
    if committing != "writer":
        before = EdgeSpec(sender=SINK, partitioning="forward")
        yield OperatorSpec(name=committer, parallelism=parallelism, inputs=(before,), role="committer")
    if committing == "global":
        before = EdgeSpec(sender=committer, partitioning="rebalance")
        yield OperatorSpec(name=published, parallelism=1, inputs=(before,), role="global-committer")


def job_graphs(
    scenario: Scenario, before: int = 0, upgraded: described_upgrade.Upgrade | None = None
) -> tuple[JobGraph, ...]:
    """The graphs of a scenario's jobs: the first, and one for each that is resumed.

    Jobs are numbered from 1.  If `before` jobs of another run have the first numbers, a graph stands for each of these
    too.  `upgraded`: the uids, types and nodes of the first job.  Raises InvalidGraph if a resume requests an
    impossible parallelism.
    """
    graph = job_graph(scenario.workload, scenario.topology, scenario.engine)
    absent = first_absent(scenario.workload)
    if upgraded is not None:
        graph = retyped(graph.upgraded(upgraded.renamed), upgraded.retyped)
        absent = absent_after(absent, upgraded)
    graphs = [without_nodes(graph, absent)] * (before + 1)
    for command in scenario.commands:
        if isinstance(command, Resume):
            parallelism = _with_committers(command.parallelism, scenario.engine)
            graph = graph.rescaled(parallelism) if parallelism else graph
            upgrade = _upgrade(command)
            graph = retyped(graph.upgraded(upgrade.renamed), upgrade.retyped) if upgrade is not None else graph
            changed = upgrade_of(command)
            absent = absent_after(absent, changed) if changed is not None else absent
            there = without_nodes(graph, absent)
            graphs.append(_with_inserted(there, command.inserted) if command.inserted else there)
            if upgrade is not None:
                graphs[-1] = graphs[-1].taking_over(upgrade.mapping)
    return tuple(graphs)


def retyped(graph: JobGraph, types: Mapping[str, str]) -> JobGraph:
    """The graph with sums whose state has another type."""
    if not types:
        return graph
    specs = [
        msgspec.structs.replace(spec, build=summing(types[spec.name]), state_type=types[spec.name])
        if spec.name in types
        else spec
        for spec in graph.operators
    ]
    return JobGraph(tuple(specs), graph.key_groups, graph.mapping)


def summing(state_type: str) -> Callable[[], engine.Operator]:
    """A factory of sums whose state has this type."""
    return lambda: engine.Sum(engine.IN_HUNDREDTHS if state_type == HUNDREDTHS else 1)


def without_nodes(graph: JobGraph, absent: Collection[str]) -> JobGraph:
    """The graph of a job that lacks some nodes: what sent to such a node sends to its reader."""
    specs = list(graph.operators)
    for gone in [spec for spec in specs if spec.name in absent]:
        (before,) = next(spec.inputs for spec in specs if spec.name == gone.name)
        specs = [
            msgspec.structs.replace(spec, inputs=tuple(_past(gone.name, before, edge) for edge in spec.inputs))
            for spec in specs
            if spec.name != gone.name
        ]
    return JobGraph(tuple(specs), graph.key_groups, graph.mapping)


def _past(gone: str, before: EdgeSpec, edge: EdgeSpec) -> EdgeSpec:
    """An input of an operator; if it came from the one that is gone, from what sent to that."""
    if edge.sender != gone:
        return edge
    return before if edge.partitioning == "forward" else EdgeSpec(sender=before.sender, partitioning=edge.partitioning)


def _with_inserted(graph: JobGraph, inserted: Mapping[str, str]) -> JobGraph:
    """The graph with maps inserted, each before an operator and as parallel as its sender.  They change nothing."""
    specs = list(graph.operators)
    for name, behind in inserted.items():
        at = next(index for index, spec in enumerate(specs) if spec.name == behind)
        first, *others = specs[at].inputs
        wide = next(spec.parallelism for spec in specs if spec.name == first.sender)
        straight = EdgeSpec(sender=first.sender, partitioning="forward")
        onward = EdgeSpec(sender=name, partitioning=first.partitioning)
        specs[at] = msgspec.structs.replace(specs[at], inputs=(onward, *others))
        specs.insert(at, OperatorSpec(name=name, parallelism=wide, inputs=(straight,), build=builder(described.Map())))
    return JobGraph(tuple(specs), graph.key_groups, graph.mapping)


def _with_committers(parallelism: Mapping[str, int], configured: Engine) -> dict[str, int]:
    """The parallelism of a resume, with one committer for each subtask of the sink."""
    follows = configured.committing != "writer" and SINK in parallelism
    return {**parallelism, COMMITTERS[0]: parallelism[SINK]} if follows else dict(parallelism)


def _edges(topology: Topology, senders: Iterable[str], receiver: str) -> tuple[EdgeSpec, ...]:
    return tuple(
        EdgeSpec(sender=sender, partitioning=topology.edge(sender, receiver).partitioning) for sender in senders
    )


def shares(operator: described.Operator) -> bool:
    """Whether an operator holds a union."""
    if isinstance(operator, described.User):
        return shares_state(operator.function)
    return isinstance(operator, described.Tally)


def builder(operator: described.Operator) -> Callable[[], engine.Operator]:
    """A factory that makes an instance of the operator for one subtask."""
    if isinstance(operator, described.Map):
        return lambda: engine.Map(_mapping(operator))
    if isinstance(operator, described.Filter):
        modulus, drop = operator.modulus, operator.drop
        return lambda: engine.Filter(lambda value: value is not None and value % modulus != drop)
    if isinstance(operator, described.FlatMap):
        fan = operator.fan
        return lambda: engine.FlatMap(
            lambda value: () if value is None else tuple(value + copy for copy in range(value % (fan + 1)))
        )
    if isinstance(operator, described.User):
        return user_operator(operator.function)
    if described.is_signed(operator):
        return _signed[type(operator)]
    if isinstance(operator, described.Count):
        return lambda: engine.Count(operator.tagged)
    if isinstance(operator, described.Burst):
        gap_us, of = operator.gap_us, operator.of
        return lambda: bursts.Burst(gap_us, of)
    if isinstance(operator, described.Window):
        return _window(operator)
    if isinstance(operator, described.Batch):
        size = operator.size
        return lambda: holding.Batch(size)
    if isinstance(operator, described.Dedup):
        return lambda: engine.Dedup(operator.keys_only)
    plain: dict[type[described.Operator], Callable[[], engine.Operator]] = {
        described.Sum: engine.Sum,
        described.Greater: engine.Greater,
        described.Union: engine.Union,
        described.Join: engine.Join,
        described.Tally: holding.Tally,
        described.Rules: broadcast.Rules,
        described.Model: folding.Model,
    }
    return plain[type(operator)]


_signed: dict[type[described.Operator], Callable[[], engine.Operator]] = {
    described.Count: retractions.SignedCount,
    described.Sum: retractions.SignedSum,
    described.Join: retractions.SignedJoin,
}


def _window(operator: described.Window) -> Callable[[], engine.Operator]:
    of, lateness = operator.of, operator.lateness
    if isinstance(operator, described.Tumbling):
        size = operator.size
        return lambda: windows.Tumbling(size, of, lateness)
    if isinstance(operator, described.Sliding):
        size, slide = operator.size, operator.slide
        return lambda: windows.Sliding(size, slide, of, lateness)
    if isinstance(operator, described.Session):
        gap = operator.gap
        return lambda: windows.Session(gap, of, lateness)
    raise TypeError(operator)


def _mapping(operator: described.Map) -> Callable[[int | None, int | None], tuple[int | None, int | None]]:
    multiply, add, rekey = operator.multiply, operator.add, operator.rekey

    def mapped(key: int | None, value: int | None) -> tuple[int | None, int | None]:
        new_key = key if rekey is None or key is None else key % rekey
        return new_key, None if value is None else value * multiply + add

    return mapped


def logs(workload: Workload) -> list[SplitLog]:
    times = workload.times()
    return [
        SplitLog(split=number, records=records, times=times.get(number, ())) for number, _, records in workload.splits()
    ]


def dated_inputs(workload: Workload) -> list[str]:
    """The inputs whose splits become idle after a time: their records and watermarks are recorded with their times."""
    return [source.name for source in workload.inputs if source.idle_after_us]


def identity(workload: Workload) -> str:
    """What identifies a row in an idempotent sink: the key if there is one row for each key, which only grows (a count,
    a deduplication by key), else the whole row."""
    operator = workload.nodes[-1].operator if workload.nodes else None
    if isinstance(operator, described.Count | described.Dedup | described.Tally) and not described.is_changelog(
        operator
    ):
        return "key"
    return "row"


def refuse_aims(scenario: Scenario) -> None:
    """Raise ScenarioRefused if a fault or a command has an aim, which only a pipeline's file defines."""
    for one in (*scenario.faults, *scenario.commands):
        if isinstance(one.trigger, AtAim):
            raise ScenarioRefused(
                f"the aim {one.trigger.aim!r} belongs to a pipeline's file; this engine has points and phases"
            )


def config(engine_settings: Engine, lateness_us: int = 0) -> Config:
    """The engine's settings.  The timeout of a deployment is longer than all perturbations (`lateness_us`) together."""
    return Config(
        guarantee=engine_settings.guarantee,
        sink=engine_settings.sink,
        committing=engine_settings.committing,
        pooled_ids=engine_settings.pooled_ids,
        alignment=engine_settings.alignment,
        alignment_timeout_us=engine_settings.alignment_timeout_us,
        spilling=engine_settings.spilling,
        spill_after_us=engine_settings.spill_after_us,
        spill_store=engine_settings.spill_store,
        state_backend=engine_settings.state_backend,
        memtable_entries=engine_settings.memtable_entries,
        compaction_files=engine_settings.compaction_files,
        synchronous=engine_settings.snapshot_mode == "synchronous",
        snapshots_in_memory=engine_settings.snapshot_store == "memory",
        snapshot_format=engine_settings.snapshot_format,
        full_every=engine_settings.full_every,
        checkpoint_interval_us=engine_settings.checkpoint_interval_us,
        minimum_pause_us=engine_settings.minimum_pause_us,
        checkpoint_timeout_us=engine_settings.checkpoint_timeout_us,
        concurrent_checkpoints=engine_settings.concurrent_checkpoints,
        tolerated_failures=engine_settings.tolerated_failures,
        retained_checkpoints=engine_settings.retained_checkpoints,
        restart_attempts=engine_settings.restart_attempts,
        trims_logs=engine_settings.trims_logs,
        restart_delay_us=engine_settings.restart_delay_us,
        checkpoints_after_finish=engine_settings.checkpoints_after_finish,
        finishing=engine_settings.finishing,
        savepoints=engine_settings.savepoints,
        failover=engine_settings.failover,
        deploy_timeout_us=100_000
        + lateness_us
        + 20
        * (engine_settings.control_latency_us + engine_settings.snapshot_write_us + engine_settings.transaction_us),
    )


def lateness_us(scenario: Scenario) -> int:
    """The sum of the delays of a scenario's schedule perturbations."""
    return sum(perturbation.by_us for perturbation in scenario.deviations)


def settings(scenario: Scenario) -> Settings:
    """The settings of the world.  The time limit grows with the number of records and the faults that must heal."""
    configured = scenario.engine
    return Settings(
        memory=configured.snapshot_store == "memory",
        channel_capacity=configured.channel_capacity,
        nodes=configured.nodes,
        read_interval_us=configured.read_interval_us,
        apply_cost_us=configured.apply_cost_us,
        channel_latency_us=configured.channel_latency_us,
        local_channels=configured.local_channels,
        control_latency_us=configured.control_latency_us,
        mailbox_us=configured.channel_latency_us,
        snapshot_write_us=configured.snapshot_write_us,
        snapshot_byte_ns=configured.snapshot_byte_ns,
        spill_flush_us=configured.spill_flush_us,
        compaction_us=configured.compaction_us,
        transaction_us=configured.transaction_us,
        limit_us=_work_us(scenario, scenario.workload.records()) + _healing_us(scenario) + _timeouts_us(configured),
        limit_steps=LIMIT_STEPS,
    )


def _timeouts_us(configured: Engine) -> int:
    """How long a barrier may wait to overtake, or a row to be spilled.  A run is not at rest while such a timeout is
    pending, even if the alignment or the job is over."""
    barrier_us = configured.alignment_timeout_us if configured.alignment in ("timeout", "in-turn") else 0
    return max(barrier_us, configured.spill_after_us if configured.spilling == "buffer-timeout" else 0)


def standstill_us(scenario: Scenario) -> int:
    """How long a correct job may read and take no record: as long as a job without records may last."""
    return _work_us(scenario, 1) + _healing_us(scenario)


def _work_us(scenario: Scenario, records: int) -> int:
    return 20 * records * (scenario.engine.read_interval_us + scenario.engine.apply_cost_us * 8)


def _healing_us(scenario: Scenario) -> int:
    """The time in which every fault heals, every command is answered, and a job without records ends."""
    configured = scenario.engine
    troubles = len(scenario.faults) + len(scenario.commands) + 1
    healing = sum(
        getattr(fault, name, 0) for fault in scenario.faults for name in ("for_us", "down_us", "by_us", "after_us")
    )
    late = lateness_us(scenario)
    each = (
        2 * configured.checkpoint_timeout_us
        + 8 * configured.checkpoint_interval_us
        + 4 * configured.restart_delay_us
        + 250_000
        + late
    )
    return 500_000 + healing + late + troubles * each


def resume_issued(number: int, command: Resume, snapshot: CheckpointId | None, claimed: bool | None) -> o.CommandIssued:
    """What a user's command to resume a job says; `snapshot`: another than the newest, `claimed`: as in `Claims`."""
    return o.CommandIssued(
        number,
        CommandKind.RESUME,
        False,
        dict(command.parallelism),
        dict(command.inserted),
        snapshot,
        claimed=claimed,
        upgrade=_upgrade(command),
    )


def _upgrade(command: Resume) -> Upgrade | None:
    """What a resume changes in the job; None if nothing."""
    changed = upgrade_of(command)
    if changed is None:
        return None
    mapping = StateMapping(
        moves=changed.moves,
        converts=changed.converts,
        begin_empty=changed.begin_empty,
        allow_non_restored_state=changed.allow_non_restored_state,
    )
    return Upgrade(
        renamed=changed.renamed,
        retyped=changed.retyped,
        removed=changed.removed,
        added=changed.added,
        mapping=mapping,
    )
