"""Whether a job can start from a snapshot (FIN-2; FLIP-147)."""

from __future__ import annotations

from collections.abc import Sequence

from ...job.topology import JobGraph
from ...vocabulary.causes import (
    AnyIncompatible,
    FinishedBehindUnfinished,
    KeyGroupsChanged,
    OperatorsAdded,
    StateMissing,
)
from ...vocabulary.events import CompletedCheckpoint
from ...vocabulary.ids import task_id


def layout_of(graph: JobGraph, restores: CompletedCheckpoint) -> JobGraph:
    """The graph at the parallelism at which a snapshot was taken; a new operator is as parallel as those that forward
    edges join it to."""
    if restores.parallelism is None:
        return graph
    there = graph.parallelism
    before = {name: number for name, number in restores.parallelism.items() if name in there}
    forward = [(edge.sender, spec.name) for spec in graph.operators for edge in spec.inputs if edge.is_forward]
    for one, other in (*forward, *((receiver, sender) for sender, receiver in reversed(forward))):
        if one in before:
            before.setdefault(other, before[one])
    return graph if all(there[name] == number for name, number in before.items()) else graph.laid_out(before)


def refusal(graph: JobGraph, restores: CompletedCheckpoint) -> AnyIncompatible | None:
    """Why a job cannot start from a snapshot; None if it can (FIN-2; FLIP-147).

    `Upgrading.adopted` has dropped the operators of the snapshot that the job lacks.  Other than in Flink, a job is
    refused if an operator would begin without state and its user does not say so.
    """
    if reason := _by_other_key_groups(graph, restores) or _with_new_operators(graph, restores):
        return reason
    graph = layout_of(graph, restores)
    whole = graph.whole(restores.finished)
    for name in whole:
        before = [edge.sender for edge in graph.spec(name).inputs if edge.sender not in whole]
        if before:
            return _before_a_finished(restores, name, before)
    old = restores.parallelism
    without = [*whole, *(name for name in graph.begins_empty if old is not None and name not in old)]
    tasks = [task for task, spec, _ in graph.tasks() if spec.name not in without]
    lost = tuple(task for task in tasks if task not in restores.handles)
    return StateMissing((), restores.checkpoint, lost) if lost else None


def _before_a_finished(restores: CompletedCheckpoint, name: str, before: Sequence[str]) -> FinishedBehindUnfinished:
    return FinishedBehindUnfinished((name, *before), restores.checkpoint)


def _with_new_operators(graph: JobGraph, restores: CompletedCheckpoint) -> AnyIncompatible | None:
    """Why a job with operators that the snapshot does not have cannot start from it; None if it has none, or if all of
    them begin empty as its user says.

    This goes by the recorded parallelism, in which a new operator is missing.  A new operator in front of a finished
    one is reported first.
    """
    old = restores.parallelism
    if old is None:
        return None
    new = [spec.name for spec in graph.operators if spec.name not in old]
    unannounced = tuple(name for name in new if name not in graph.begins_empty)
    for spec in graph.operators:
        before = [edge.sender for edge in spec.inputs if edge.sender in new]
        subtasks = [task_id(spec.name, subtask) for subtask in range(old.get(spec.name, 0))]
        if before and subtasks and all(task in restores.finished for task in subtasks):
            return _before_a_finished(restores, spec.name, before)
    return OperatorsAdded(unannounced, restores.checkpoint) if unannounced else None


def _by_other_key_groups(graph: JobGraph, restores: CompletedCheckpoint) -> KeyGroupsChanged | None:
    """Why a job with another number of key groups cannot start; None if it has the same."""
    if restores.key_groups is None or restores.key_groups == graph.key_groups:
        return None
    keyed = tuple(spec.name for spec in graph.operators if spec.role == "operator")
    return KeyGroupsChanged(keyed, restores.checkpoint, restores.key_groups, graph.key_groups)
