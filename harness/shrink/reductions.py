"""The single steps by which a scenario gets smaller, as pure functions.

Each returns a scenario with one thing less, and adapts everything that refers to that thing: a fault on a removed task
hits a neighbour, a trigger that counts records or time comes earlier.  What cannot be adapted is dropped.  A result may
be invalid or behave differently; the caller checks both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from ...faults.plan import AnyFault, AnyTrigger, AtAim, AtPoint, AtTime, ChannelFault, InPhase
from ...properties.model.stages import COMMITTERS, width
from ...properties.model.workload import SINK, Edge, Input, InputRecord, Node, Topology, Workload
from ..scenario.forecast import RECORD_POINTS
from ..scenario.layout import layout_of
from ..scenario.model import AnyCommand, Fork, Perturbation, Resume, Scenario
from ..scenario.upgrades import among

replace = msgspec.structs.replace
Item = TypeVar("Item")


def record_order(workload: Workload) -> list[tuple[int, int]]:
    """(split, offset) of all records, about in the order in which they are read."""
    found = [(offset, split) for split, _, records in workload.splits() for offset in range(len(records))]
    return [(split, offset) for offset, split in sorted(found)]


def without_records(scenario: Scenario, first: int, end: int) -> Scenario:
    """Drop records `first` to `end` - 1 of `record_order`; triggers move with them."""
    order = record_order(scenario.workload)
    removed = set(order[first:end])
    inputs = _without(scenario.workload, removed)
    sources = max(1, sum(scenario.topology.parallelism[source.name] for source in inputs))
    return _moved(
        replace(scenario, workload=replace(scenario.workload, inputs=inputs)),
        lambda trigger: _sooner(trigger, first, end, scenario.engine.read_interval_us, sources),
    )


def without_split(scenario: Scenario, split: int) -> Scenario:
    """Drop a split; an input keeps at least one."""
    inputs: list[Input] = []
    number = 0
    for source in scenario.workload.inputs:
        kept = tuple(records for index, records in enumerate(source.splits) if number + index != split)
        times = tuple(times for index, times in enumerate(source.times) if number + index != split)
        number += len(source.splits)
        inputs.append(replace(source, splits=kept, times=times) if kept else source)
    return replace(scenario, workload=replace(scenario.workload, inputs=tuple(inputs)))


def with_records(scenario: Scenario, change: Callable[[InputRecord], InputRecord]) -> Scenario:
    inputs = _mapped_splits(scenario.workload, lambda _, records: tuple(change(record) for record in records))
    return replace(scenario, workload=replace(scenario.workload, inputs=inputs))


def with_record(scenario: Scenario, at: tuple[int, int], change: Callable[[InputRecord], InputRecord]) -> Scenario:
    inputs = _mapped_splits(
        scenario.workload,
        lambda split, records: (
            tuple(change(record) if (split, offset) == at else record for offset, record in enumerate(records))
            if split == at[0]
            else records
        ),
    )
    return replace(scenario, workload=replace(scenario.workload, inputs=inputs))


def without_node(scenario: Scenario, name: str) -> Scenario | None:
    """Drop a node of one input: its reader reads its input."""
    node = scenario.workload.node(name)
    if len(node.inputs) != 1:
        return None
    return _spliced(scenario, node, node.inputs[0])


def without_branch(scenario: Scenario, name: str, kept: str) -> Scenario:
    """Keep one of the inputs of a union or join, and drop the node."""
    node = scenario.workload.node(name)
    removed: set[str] = set()
    for other in node.inputs:
        if other != kept:
            removed |= _feeding(scenario.workload, other)
    pruned = replace(
        scenario.workload,
        inputs=tuple(source for source in scenario.workload.inputs if source.name not in removed),
        nodes=tuple(other for other in scenario.workload.nodes if other.name not in removed),
    )
    edges = tuple(edge for edge in scenario.topology.edges if edge.sender not in removed)
    parallelism = {key: value for key, value in scenario.topology.parallelism.items() if key not in removed}
    topology = replace(scenario.topology, edges=edges, parallelism=parallelism)
    reader = next(edge.receiver for edge in edges if edge.sender == name)
    smaller = _renamed(
        replace(scenario, workload=pruned, topology=topology),
        lambda task: f"{reader}-0" if operator_of(task) in removed else task,
    )
    return _spliced(smaller, node, kept)


def with_inputs_merged(scenario: Scenario, name: str) -> Scenario | None:
    """If plain inputs meet in a node, make one input with the splits of all, and drop the node."""
    workload, topology = scenario.workload, scenario.topology
    node = workload.node(name)
    merged = [source for source in workload.inputs if source.name in node.inputs]
    if len(merged) < len(node.inputs):
        return None
    first, removed = merged[0], {source.name for source in merged[1:]}
    whole = replace(
        first,
        splits=tuple(split for source in merged for split in source.splits),
        times=tuple(times for source in merged for times in source.times),
        delay=max(source.delay for source in merged),
    )
    inputs = tuple(whole if source is first else source for source in workload.inputs if source.name not in removed)
    smaller = replace(
        scenario,
        workload=replace(workload, inputs=inputs),
        topology=replace(
            topology,
            parallelism={key: number for key, number in topology.parallelism.items() if key not in removed},
            edges=tuple(edge for edge in topology.edges if edge.sender not in removed),
        ),
    )
    renamed = _renamed(smaller, lambda task: f"{first.name}-0" if operator_of(task) in removed else task)
    return _spliced(renamed, node, first.name)


def branches(workload: Workload) -> list[tuple[str, str]]:
    """(node, input) of every union or join: what `without_branch` can keep."""
    return [(node.name, name) for node in workload.nodes if len(node.inputs) > 1 for name in node.inputs]


def without_committers(scenario: Scenario) -> Scenario:
    """Each subtask of the sink commits by itself; a fault on a committer hits that subtask."""

    def rename(task: str) -> str:
        operator, _, subtask = task.rpartition("-")
        return f"{SINK}-{subtask}" if operator in COMMITTERS else task

    return _renamed(replace(scenario, engine=replace(scenario.engine, committing="writer")), rename)


def with_parallelism(scenario: Scenario, parallelism: dict[str, int]) -> Scenario:
    """Lower the parallelism; a forward edge between operators of unequal parallelism becomes a hash edge."""
    edges = tuple(
        replace(edge, partitioning="hash")
        if edge.partitioning == "forward" and parallelism[edge.sender] != parallelism[edge.receiver]
        else edge
        for edge in scenario.topology.edges
    )
    topology = replace(scenario.topology, parallelism=parallelism, edges=edges)

    def rename(task: str) -> str:
        operator, _, subtask = task.rpartition("-")
        return task if int(subtask) < width(topology, operator) else f"{operator}-0"

    return _renamed(replace(scenario, topology=topology), rename)


COORDINATOR = "coordinator"
"""the name, in a schedule perturbation, of the one part of a job that is not a task"""

PACED = (
    "checkpoint_interval_us",
    "minimum_pause_us",
    "restart_delay_us",
    "channel_latency_us",
    "control_latency_us",
    "snapshot_write_us",
    "transaction_us",
    "alignment_timeout_us",
    "spill_after_us",
    "spill_flush_us",
    "compaction_us",
)
"""the durations of an engine that `squeezed` shortens: not the times that a record takes, nor the checkpoint timeout"""


def squeezed(scenario: Scenario, numerator: int, denominator: int) -> Scenario:
    """The same in less time.  A fraction of the records is kept, and the times of triggers and the durations `PACED`
    are multiplied by it.  The durations of faults stay."""

    def shorter(time_us: int) -> int:
        return time_us * numerator // denominator

    def earlier(trigger: AnyTrigger) -> AnyTrigger:
        if isinstance(trigger, AtTime):
            return replace(trigger, at_us=shorter(trigger.at_us))
        if isinstance(trigger, (InPhase, AtAim)):
            return replace(trigger, after_us=shorter(trigger.after_us))
        if isinstance(trigger, AtPoint) and trigger.point in RECORD_POINTS:
            return replace(trigger, occurrence=max(1, shorter(trigger.occurrence)))
        return trigger

    records = scenario.workload.records()
    fewer = without_records(scenario, records * numerator // denominator, records)
    times = {name: max(1, shorter(getattr(scenario.engine, name))) for name in PACED}
    times["minimum_pause_us"] = shorter(scenario.engine.minimum_pause_us)
    kept = replace(fewer, engine=replace(scenario.engine, **times), faults=scenario.faults, commands=scenario.commands)
    return _moved(kept, earlier)


def operator_of(task: str) -> str:
    return task.rpartition("-")[0]


def with_fault(scenario: Scenario, index: int, fault: AnyFault) -> Scenario:
    faults = (*scenario.faults[:index], fault, *scenario.faults[index + 1 :])
    return replace(scenario, faults=faults)


def with_command(scenario: Scenario, index: int, command: AnyCommand) -> Scenario:
    commands = (*scenario.commands[:index], command, *scenario.commands[index + 1 :])
    return replace(scenario, commands=commands)


def _mapped_splits(
    workload: Workload, change: Callable[[int, tuple[InputRecord, ...]], tuple[InputRecord, ...]]
) -> tuple[Input, ...]:
    inputs: list[Input] = []
    number = 0
    for source in workload.inputs:
        splits = tuple(change(number + index, records) for index, records in enumerate(source.splits))
        number += len(source.splits)
        inputs.append(replace(source, splits=splits))
    return tuple(inputs)


def _without(workload: Workload, removed: set[tuple[int, int]]) -> tuple[Input, ...]:
    """The inputs without the records at these (split, offset), and without their event times."""

    def kept(split: int, items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(item for offset, item in enumerate(items) if (split, offset) not in removed)

    inputs: list[Input] = []
    number = 0
    for source in workload.inputs:
        splits = tuple(kept(number + index, records) for index, records in enumerate(source.splits))
        times = tuple(kept(number + index, timed) for index, timed in enumerate(source.times))
        inputs.append(replace(source, splits=splits, times=times))
        number += len(source.splits)
    return tuple(inputs)


def _feeding(workload: Workload, name: str) -> set[str]:
    """The names of the subtree that ends at an input or node."""
    found = {name}
    for node in reversed(workload.nodes):
        if node.name in found:
            found.update(node.inputs)
    return found


def _spliced(scenario: Scenario, node: Node, kept: str) -> Scenario:
    """Without the node: `kept` feeds the node's readers."""
    topology = scenario.topology
    onward = next(edge for edge in topology.edges if edge.sender == node.name)
    reader = onward.receiver
    unequal = topology.parallelism[kept] != topology.parallelism[reader]
    how = "hash" if unequal and onward.partitioning == "forward" else onward.partitioning
    joined = Edge(sender=kept, receiver=reader, partitioning=how)
    edges = tuple(edge for edge in topology.edges if node.name not in (edge.sender, edge.receiver))
    nodes = tuple(
        replace(other, inputs=tuple(kept if name == node.name else name for name in other.inputs))
        for other in scenario.workload.nodes
        if other.name != node.name
    )
    parallelism = {name: number for name, number in topology.parallelism.items() if name != node.name}
    return _renamed(
        replace(
            scenario,
            workload=replace(scenario.workload, nodes=nodes),
            topology=Topology(parallelism=parallelism, edges=(*edges, joined), key_groups=topology.key_groups),
        ),
        lambda task: f"{reader}-0" if operator_of(task) == node.name else task,
    )


def _renamed(scenario: Scenario, rename: Callable[[str], str]) -> Scenario:
    """Rename every task that a fault, command or schedule perturbation names."""
    channels = layout_of(scenario.workload, scenario.topology, scenario.engine.committing).channels

    def on_trigger(trigger: AnyTrigger) -> AnyTrigger:
        if isinstance(trigger, AtPoint) and trigger.task is not None:
            return replace(trigger, task=rename(trigger.task))
        return trigger

    def on_fault(fault: AnyFault) -> AnyFault:
        fault = replace(fault, trigger=on_trigger(fault.trigger))
        if isinstance(fault, ChannelFault):
            wanted = (rename(fault.sender), rename(fault.receiver))
            sender, receiver = _nearest(wanted, channels)
            return replace(fault, sender=sender, receiver=receiver)
        task = getattr(fault, "task", None)
        return fault if task is None else replace(fault, task=rename(task))

    def on_perturbation(perturbation: Perturbation) -> Perturbation:
        what, *rest = perturbation.what.split(" ")
        if what == "message":
            sender, _, receiver = rest[0].partition(">")
            rest = [">".join(_nearest((rename(sender), rename(receiver)), channels))]
        elif rest[-1] != COORDINATOR:
            rest[-1] = rename(rest[-1])
        return replace(perturbation, what=" ".join((what, *rest)))

    def on_command(command: AnyCommand) -> AnyCommand:
        if isinstance(command, Resume):
            there = scenario.topology.parallelism
            kept = {name: number for name, number in command.parallelism.items() if name in there}
            inserted = {name: behind for name, behind in command.inserted.items() if behind in there}
            return replace(command, parallelism=kept, inserted=inserted, upgrade=among(command, there))
        if isinstance(command, Fork):
            there = scenario.topology.parallelism
            kept = {name: number for name, number in command.parallelism.items() if name in there}
            command = replace(command, parallelism=kept)
        return replace(command, trigger=on_trigger(command.trigger))

    return replace(
        scenario,
        faults=tuple(on_fault(fault) for fault in scenario.faults),
        commands=tuple(on_command(command) for command in scenario.commands),
        deviations=tuple(on_perturbation(perturbation) for perturbation in scenario.deviations),
    )


def _nearest(wanted: tuple[str, str], channels: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """The channel itself, else one into the same receiver, else one from the same sender, else any."""
    if wanted in channels:
        return wanted
    for end in (1, 0):
        for channel in channels:
            if channel[end] == wanted[end]:
                return channel
    return channels[0]


def _moved(scenario: Scenario, move: Callable[[AnyTrigger], AnyTrigger]) -> Scenario:
    return replace(
        scenario,
        faults=tuple(replace(fault, trigger=move(fault.trigger)) for fault in scenario.faults),
        commands=tuple(
            command if isinstance(command, Resume) else replace(command, trigger=move(command.trigger))
            for command in scenario.commands
        ),
    )


def _sooner(trigger: AnyTrigger, first: int, end: int, read_interval_us: int, sources: int) -> AnyTrigger:
    """The trigger moved earlier, when the records `first` to `end` - 1 are no longer read before it."""
    if isinstance(trigger, AtTime):
        read = trigger.at_us * sources // max(1, read_interval_us)
        before = min(max(0, read - first), end - first)
        return replace(trigger, at_us=max(0, trigger.at_us - before * read_interval_us // sources))
    if isinstance(trigger, AtPoint) and trigger.point in RECORD_POINTS:
        before = min(max(0, trigger.occurrence - 1 - first), end - first)
        return replace(trigger, occurrence=max(1, trigger.occurrence - before))
    return trigger
