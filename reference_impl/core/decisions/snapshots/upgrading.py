"""Which state each operator of an upgraded job takes over from the snapshot of another job (SNAP-5).

A snapshot holds the states of an operator under the operator's uid.  Where a uid has changed, the user's mapping says
which state moves to it.  As in Flink without `allowNonRestoredState`, a job is refused if a state would be left over.
With it, the state of an operator that the job no longer has is dropped.  An operator that is new begins empty.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...job.topology import JobGraph
from ...vocabulary.causes import (
    AnyIncompatible,
    OperatorsRemoved,
    OperatorsRenamed,
    StatesRetyped,
    UpgradedFromCheckpoint,
)
from ...vocabulary.events import CompletedCheckpoint
from ...vocabulary.ids import operator_of
from ...vocabulary.upgrades import CONVERSIONS, TOTAL, WHOLE, StateMapping
from ..part import Part


class Upgrading(Part):
    """How the states of a snapshot find the operators of a job."""

    def mapping(self, given: StateMapping, restores: CompletedCheckpoint, job: int) -> StateMapping:
        """The mapping with which an attempt restores a snapshot: the one that the user gave on submitting the job, if
        the snapshot is of another job.  Until the job's first checkpoint, each attempt restores such a snapshot."""
        return given if restores.job != job else StateMapping()

    def refusal(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> AnyIncompatible | None:
        """Why states of the snapshot cannot find their operators, or not be read by them; None if they can.  Only a
        savepoint can be restored under other uids, or as states of another type, or by a job with other operators: its
        barriers were aligned, so that nothing is in flight in channels that may be gone."""
        changed, retyped = _changed(graph, restores), _retyped(graph, restores)
        gone, new = _gone(graph, restores), _new(graph, restores)
        held = tuple(name for name in gone if name not in restores.stateless)
        if held and not mapping.allow_non_restored_state:
            entries = tuple(restores.uids.get(name, name) for name in held)
            return OperatorsRemoved(held, restores.checkpoint, entries)
        unmapped = tuple((name, old, new) for name, (old, new) in changed.items() if mapping.moves.get(old, old) != new)
        if unmapped:
            return OperatorsRenamed(tuple(name for name, _, _ in unmapped), restores.checkpoint, unmapped)
        uids = restores.uids
        unread = tuple(
            (name, uids.get(name, name), f"{old}-to-{new}")
            for name, (old, new) in retyped.items()
            if (old, new) not in CONVERSIONS or mapping.converts.get(uids.get(name, name)) != CONVERSIONS[old, new]
        )
        if unread:
            return StatesRetyped(tuple(name for name, _, _ in unread), restores.checkpoint, unread)
        if (changed or retyped or gone or new) and not restores.savepoint:
            operators = dict.fromkeys((*changed, *retyped, *gone, *new))
            return UpgradedFromCheckpoint(tuple(operators), restores.checkpoint)
        return None

    def adopted(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> CompletedCheckpoint:
        """The snapshot as a job restores it: without the states that none of its operators takes."""
        changed = _changed(graph, restores)
        left = [name for name, (old, new) in changed.items() if mapping.moves.get(old, old) != new]
        drops = mapping.allow_non_restored_state
        gone = [name for name in _gone(graph, restores) if drops or name in restores.stateless]
        kept = without(restores, [*left, *gone]) if left or gone else restores
        if not gone or kept.parallelism is None:
            return kept
        there = {name: number for name, number in kept.parallelism.items() if name not in gone}
        return msgspec.structs.replace(kept, parallelism=there)

    def migrates(self, stored: Mapping[str, str], now: Mapping[str, str]) -> bool:
        """Whether a task converts the state that it has restored: if its type is `stored` as another than the operator
        keeps `now`.  A state that was converted is stored as one of the new type."""
        return stored.get(TOTAL, WHOLE) != now.get(TOTAL, WHOLE)


def _gone(graph: JobGraph, restores: CompletedCheckpoint) -> tuple[str, ...]:
    """The operators of the job that took the snapshot which this job does not have."""
    return tuple(name for name in operators_in(restores) if name not in graph.parallelism)


def _new(graph: JobGraph, restores: CompletedCheckpoint) -> tuple[str, ...]:
    """The operators that begin empty, since the job that took the snapshot did not have them."""
    there = operators_in(restores)
    return tuple(name for name in graph.begins_empty if name not in there)


def operators_in(restores: CompletedCheckpoint) -> tuple[str, ...]:
    """The operators of the job that took the snapshot: where they are not recorded, those that have a part in it."""
    if restores.parallelism is not None:
        return tuple(restores.parallelism)
    return tuple(dict.fromkeys(operator_of(task) for task in (*restores.handles, *restores.finished)))


def _changed(graph: JobGraph, restores: CompletedCheckpoint) -> Mapping[str, tuple[str, str]]:
    """By operator whose uid is another than in the snapshot: (the uid there, the uid now)."""
    before, now = restores.uids, graph.uids
    if before == now:
        return {}
    there = operators_in(restores)
    uids = {name: (before.get(name, name), now.get(name, name)) for name in graph.parallelism if name in there}
    return {name: pair for name, pair in uids.items() if pair[0] != pair[1]}


def _retyped(graph: JobGraph, restores: CompletedCheckpoint) -> Mapping[str, tuple[str, str]]:
    """By operator whose state has another type than in the snapshot: (the type there, the type now)."""
    before, now = restores.state_types, graph.state_types
    if before == now:
        return {}
    there = operators_in(restores)
    types = {name: (before.get(name, WHOLE), now.get(name, WHOLE)) for name in graph.parallelism if name in there}
    return {name: pair for name, pair in types.items() if pair[0] != pair[1]}


def without(restores: CompletedCheckpoint, operators: list[str]) -> CompletedCheckpoint:
    """A snapshot without the states of some operators."""
    return msgspec.structs.replace(
        restores,
        handles={task: handle for task, handle in restores.handles.items() if operator_of(task) not in operators},
        states={task: state for task, state in restores.states.items() if operator_of(task) not in operators},
        finished=tuple(task for task in restores.finished if operator_of(task) not in operators),
        enumerators={name: state for name, state in restores.enumerators.items() if name not in operators},
        files={task: files for task, files in restores.files.items() if operator_of(task) not in operators},
    )
