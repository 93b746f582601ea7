"""Upgraded jobs that do not find the states of their operators in a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.decisions.checkpointing import RestoreChoice
from ..core.decisions.upgrading import Upgrading
from ..core.job.topology import JobGraph
from ..core.vocabulary.causes import AnyIncompatible, StateMissing
from ..core.vocabulary.events import CompletedSnapshot
from ..core.vocabulary.upgrades import TOTAL, WHOLE, StateMapping
from .registry import Defect


class StoredUnderItsName(Upgrading):
    """D17: states are stored under the names of their operators and looked up under the uids.  Where the original then
    began empty, this engine refuses by name what it cannot find."""

    def recorded(self, graph: JobGraph) -> dict[str, str]:
        self.reached = self.reached or bool(graph.uids)
        return {}


class LeavesStatesOver(Upgrading):
    """P41: a job begins although its mapping lacks states of the snapshot; operators without a state begin empty."""

    def refusal(self, graph: JobGraph, restores: CompletedSnapshot, mapping: StateMapping) -> AnyIncompatible | None:
        self.reached = self.reached or super().refusal(graph, restores, mapping) is not None
        return None


class MappedOnce(Upgrading):
    """P42: the mapping is known to the first attempt alone; the next one restores the same snapshot without it."""

    def __init__(self) -> None:
        self._begun: dict[int, None] = {}
        """the jobs whose first attempt has begun"""

    def mapping(self, given: StateMapping, restores: CompletedSnapshot, job: int) -> StateMapping:
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


class BeginsEmpty(RestoreChoice):
    """P41: an operator of which the snapshot holds no state begins without one."""

    def refusal(self, graph: JobGraph, snapshot: CompletedSnapshot) -> AnyIncompatible | None:
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
)
