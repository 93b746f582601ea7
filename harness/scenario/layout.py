"""A topology as a list of its tasks, by name, and of the channels between them.

A task is named by its operator and subtask ("count-1"), a channel by the two tasks that it joins ("source-0>count-1").
Faults, perturbations and histories address the parts of a running job by these names only.
"""

from __future__ import annotations

from itertools import chain, pairwise

import msgspec

from ...properties.model.absent import laid_without, without
from ...properties.model.stages import COMMITTERS
from ...properties.model.workload import SINK, Topology, Workload
from ...properties.reconstruct.layouts import rescaled, widest
from .model import Resume, Scenario
from .upgrades import absent_of


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a job, by role and in topological order, and its channels."""

    sources: tuple[str, ...]
    operators: tuple[str, ...]
    sinks: tuple[str, ...]
    committers: tuple[str, ...] = ()
    """the committers behind the sink, the global one last"""
    channels: tuple[tuple[str, str], ...]
    """(sender, receiver)"""

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.sources + self.operators + self.sinks + self.committers

    @property
    def committing(self) -> tuple[str, ...]:
        """The tasks that request commits."""
        return self.committers or self.sinks


def task_names(operator: str, parallelism: int) -> tuple[str, ...]:
    return tuple(f"{operator}-{subtask}" for subtask in range(parallelism))


def layout_of(workload: Workload, topology: Topology, committing: str = "writer") -> Layout:
    """The tasks and channels of a valid pair (see `workload.problems`); `committing` as in `model.Engine`."""
    by_operator = {name: task_names(name, topology.parallelism[name]) for name in _operators(workload)}
    channels: list[tuple[str, str]] = []
    for edge in topology.edges:
        senders, receivers = by_operator[edge.sender], by_operator[edge.receiver]
        if edge.partitioning == "forward":
            channels.extend(zip(senders, receivers, strict=True))
        else:
            channels.extend((sender, receiver) for sender in senders for receiver in receivers)
    sinks = by_operator[SINK]
    committer, published = COMMITTERS
    local = task_names(committer, len(sinks)) if committing != "writer" else ()
    last = task_names(published, 1) if committing == "global" else ()
    channels.extend(zip(sinks, local, strict=False))
    channels.extend((sender, receiver) for sender in local for receiver in last)
    return Layout(
        sources=tuple(task for source in workload.inputs for task in by_operator[source.name]),
        operators=tuple(task for node in workload.nodes for task in by_operator[node.name]),
        sinks=sinks,
        committers=local + last,
        channels=tuple(channels),
    )


def layout_of_any_job(scenario: Scenario) -> Layout:
    """The tasks and channels that some job of a scenario has, and those of a job with all nodes of the workload and
    each operator's greatest parallelism."""
    workload, topologies = scenario.workload, topologies_of(scenario)
    jobs = [(workload, widest(topologies))]
    for topology, absent in zip(topologies, absent_of(scenario), strict=True):
        jobs.append((without(workload, absent), laid_without(topology, absent)))
    layouts = [layout_of(*job, scenario.engine.committing) for job in jobs]
    parts = [[getattr(layout, field) for layout in layouts] for field in Layout.__struct_fields__]
    together = (tuple(dict.fromkeys(chain.from_iterable(part))) for part in parts)
    return Layout(**dict(zip(Layout.__struct_fields__, together, strict=True)))


NEVER_UNALIGNED = ("forward", "broadcast")


def never_unaligned(scenario: Scenario) -> dict[tuple[str, str], str]:
    """The edges between operators on which no barrier may overtake, whatever the job's alignment is; by (sender,
    receiver), with the reason.

    The reason is the kind of the edge, or another such edge into the same operator (which aligns on all its inputs
    then), or that the edge leads to a commit.
    """
    edges = scenario.topology.edges
    held = {edge.receiver: edge.sender for edge in edges if edge.partitioning in NEVER_UNALIGNED}
    found = {
        (edge.sender, edge.receiver): edge.partitioning
        if edge.partitioning in NEVER_UNALIGNED
        else f"same receiver as {held[edge.receiver]}>{edge.receiver}"
        for edge in edges
        if edge.receiver in held
    }
    behind = {"writer": 0, "committer": 1, "global": 2}[scenario.engine.committing]
    return {**found, **dict.fromkeys(pairwise((SINK, *COMMITTERS[:behind])), "to its commit")}


def topologies_of(scenario: Scenario) -> tuple[Topology, ...]:
    """The topologies of a scenario's jobs, in order: each resume begins another job."""
    found = [scenario.topology]
    for command in scenario.commands:
        if isinstance(command, Resume):
            found.append(rescaled(found[-1], command.parallelism))
    return tuple(found)


def reads_by_source(workload: Workload, topology: Topology) -> dict[str, int]:
    """How many records each source task has to read."""
    reads: dict[str, int] = {}
    for source in workload.inputs:
        parallelism = topology.parallelism[source.name]
        for task in task_names(source.name, parallelism):
            reads[task] = 0
        for split, records in enumerate(source.splits):
            reads[f"{source.name}-{split % parallelism}"] += len(records)
    return reads


def _operators(workload: Workload) -> tuple[str, ...]:
    return (*(source.name for source in workload.inputs), *(node.name for node in workload.nodes), SINK)
