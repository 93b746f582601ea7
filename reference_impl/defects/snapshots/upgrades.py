"""Upgraded jobs that do not find the states of their operators in a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...core.decisions.checkpointing import RestoreChoice
from ...core.decisions.snapshots.upgrading import Upgrading, operators_in
from ...core.job.topology import JobGraph
from ...core.vocabulary.causes import AnyIncompatible, OperatorsRemoved, StateMissing
from ...core.vocabulary.events import CompletedCheckpoint
from ...core.vocabulary.ids import TaskId, operator_of
from ...core.vocabulary.upgrades import TOTAL, WHOLE, StateMapping
from ..registry import Defect


class StoredUnderItsName(Upgrading):
    """D17: states are stored under the names of their operators and looked up under the uids.  Where the original then
    began empty, this engine refuses by name what it cannot find."""

    def refusal(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> AnyIncompatible | None:
        self.reached = self.reached or bool(restores.uids)
        return super().refusal(graph, msgspec.structs.replace(restores, uids={}), mapping)

    def adopted(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> CompletedCheckpoint:
        return super().adopted(graph, msgspec.structs.replace(restores, uids={}), mapping)


class LeavesStatesOver(Upgrading):
    """P41: a job begins although its mapping lacks states of the snapshot; operators without a state begin empty."""

    def refusal(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> AnyIncompatible | None:
        self.reached = self.reached or super().refusal(graph, restores, mapping) is not None
        return None


class MappedOnce(Upgrading):
    """P42: the mapping is known to the first attempt alone; the next one restores the same snapshot without it."""

    def __init__(self) -> None:
        self._begun: dict[int, None] = {}
        """the jobs whose first attempt has begun"""

    def mapping(self, given: StateMapping, restores: CompletedCheckpoint, job: int) -> StateMapping:
        again, self._begun[job] = job in self._begun, None
        self.reached = self.reached or (again and given != StateMapping())
        return StateMapping() if again else super().mapping(given, restores, job)


class ConvertedAtEachRestart(Upgrading):
    """P43: a task converts what it restores whenever its operator was retyped, also a state that was converted."""

    def migrates(self, stored: Mapping[str, str], now: Mapping[str, str]) -> bool:
        due = super().migrates(stored, now)
        again = not due and now.get(TOTAL, WHOLE) != WHOLE
        self.reached = self.reached or again
        return due or again


class NeverConverted(Upgrading):
    """P44: a state is taken as if it were of the type that its operator keeps now."""

    def migrates(self, stored: Mapping[str, str], now: Mapping[str, str]) -> bool:
        self.reached = self.reached or super().migrates(stored, now)
        return False


class DropsUnasked(Upgrading):
    """P45: the state of an operator that the job no longer has is dropped, and nobody has allowed it."""

    def refusal(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> AnyIncompatible | None:
        reason = super().refusal(graph, restores, mapping)
        if not isinstance(reason, OperatorsRemoved):
            return reason
        self.reached = True
        return super().refusal(graph, restores, _dropping(mapping))

    def adopted(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> CompletedCheckpoint:
        return super().adopted(graph, restores, _dropping(mapping))


class HandedOnByPosition(Upgrading):
    """P46: states are found by the position of their operators: a new one takes the state of one that is gone."""

    def adopted(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> CompletedCheckpoint:
        there = operators_in(restores)
        gone = [name for name in there if name not in graph.parallelism and name not in restores.stateless]
        new = [name for name in graph.parallelism if name not in there and name not in graph.stateless]
        self.reached = self.reached or bool(gone and new)
        return super().adopted(graph, _renamed(restores, dict(zip(gone, new, strict=False))), mapping)


class RemembersWhatItDropped(Upgrading):
    """P47: the state of an operator that was removed comes back with the operator."""

    def __init__(self) -> None:
        super().__init__()
        self._dropped: dict[str, CompletedCheckpoint] = {}

    def adopted(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> CompletedCheckpoint:
        there = operators_in(restores)
        self._dropped.update({name: restores for name in there if name not in graph.parallelism})
        back = [name for name in graph.begins_empty if name not in there and name in self._dropped]
        adopted = super().adopted(graph, restores, mapping)
        for name in back:
            self.reached = True
            adopted = _with_states_of(adopted, self._dropped[name], name)
        return adopted


class BeginsWithItsNeighbours(Upgrading):
    """P48: a new operator begins with the state of the keyed operator next to it."""

    def adopted(self, graph: JobGraph, restores: CompletedCheckpoint, mapping: StateMapping) -> CompletedCheckpoint:
        adopted = super().adopted(graph, restores, mapping)
        keyed = [spec.name for spec in graph.operators if spec.role == "operator" and spec.keeps_state]
        there, still_there = operators_in(restores), operators_in(adopted)
        for name in [one for one in graph.begins_empty if one in keyed and one not in there]:
            beside = [other for other in keyed if other in there and other in still_there]
            if beside:
                self.reached = True
                twin = _renamed(restores, {beside[0]: name})
                adopted = _with_states_of(adopted, twin, name)
        return adopted


def _dropping(mapping: StateMapping) -> StateMapping:
    return msgspec.structs.replace(mapping, allow_non_restored_state=True)


def _renamed(restores: CompletedCheckpoint, names: Mapping[str, str]) -> CompletedCheckpoint:
    """The snapshot with the states of some operators under the names of others."""

    def task(old: TaskId) -> TaskId:
        name = operator_of(old)
        return TaskId(f"{names[name]}{old[len(name) :]}") if name in names else old

    return msgspec.structs.replace(
        restores,
        handles={task(one): handle for one, handle in restores.handles.items()},
        states={task(one): state for one, state in restores.states.items()},
        files={task(one): files for one, files in restores.files.items()},
        finished=tuple(task(one) for one in restores.finished),
        parallelism={names.get(name, name): number for name, number in (restores.parallelism or {}).items()},
    )


def _with_states_of(restores: CompletedCheckpoint, other: CompletedCheckpoint, name: str) -> CompletedCheckpoint:
    """The snapshot with the states that another has of an operator."""
    handles = {task: handle for task, handle in other.handles.items() if operator_of(task) == name}
    return msgspec.structs.replace(
        restores,
        handles={**restores.handles, **handles},
        states={**restores.states, **{task: one for task, one in other.states.items() if task in handles}},
        files={**restores.files, **{task: files for task, files in other.files.items() if task in handles}},
        parallelism={**(restores.parallelism or {}), name: (other.parallelism or {})[name]},
    )


class BeginsEmpty(RestoreChoice):
    """P41: an operator of which the snapshot holds no state begins without one."""

    def refusal(self, graph: JobGraph, snapshot: CompletedCheckpoint) -> AnyIncompatible | None:
        reason = super().refusal(graph, snapshot)
        return None if isinstance(reason, StateMissing) else reason


DEFECTS = (
    Defect(
        id="D17",
        upstream="FLINK-13973",
        title="states are stored under a generated id and looked up under the user's",
        invariant="progress",
        replacements=lambda: {"upgrading": StoredUnderItsName()},
    ),
    Defect(
        id="P41",
        upstream="FLIP-47 (upgrade)",
        title="a job drops the states of its savepoint that its mapping lacks, and nobody has allowed it",
        invariant="restored-state",
        replacements=lambda: {"upgrading": LeavesStatesOver(), "restore_choice": BeginsEmpty()},
    ),
    Defect(
        id="P42",
        upstream="FLIP-47 (upgrade)",
        title="a job that restarts before its first checkpoint restores its savepoint without the mapping",
        invariant="progress",
        replacements=lambda: {"upgrading": MappedOnce()},
    ),
    Defect(
        id="P43",
        upstream="FLIP-47 (upgrade)",
        title="a state that was converted is converted again when it is restored",
        invariant="restored-state",
        replacements=lambda: {"upgrading": ConvertedAtEachRestart()},
    ),
    Defect(
        id="P44",
        upstream="FLIP-47 (upgrade)",
        title="a state of the old type is taken for one of the new type",
        invariant="restored-state",
        replacements=lambda: {"upgrading": NeverConverted()},
    ),
    Defect(
        id="P45",
        upstream="FLIP-47 (upgrade)",
        title="the state of an operator that was removed is dropped, and nobody has allowed it",
        invariant="restored-state",
        replacements=lambda: {"upgrading": DropsUnasked()},
    ),
    Defect(
        id="P46",
        upstream="FLIP-47 (upgrade)",
        title="a new operator takes the state of a removed one, whose position it has",
        invariant="restored-state",
        replacements=lambda: {"upgrading": HandedOnByPosition()},
    ),
    Defect(
        id="P47",
        upstream="FLIP-47 (upgrade)",
        title="the state of a removed operator is restored when the operator is added again",
        invariant="restored-state",
        replacements=lambda: {"upgrading": RemembersWhatItDropped()},
    ),
    Defect(
        id="P48",
        upstream="FLIP-47 (upgrade)",
        title="a new operator begins with the state of another one",
        invariant="restored-state",
        replacements=lambda: {"upgrading": BeginsWithItsNeighbours()},
    ),
)
