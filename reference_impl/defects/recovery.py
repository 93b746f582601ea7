"""Group F: which snapshot is restored, and which one is still there."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.events import CompletedSnapshot
from ..core.ids import AttemptId, CheckpointId, Handle, TaskId
from ..core.parts import Cleanup, Naming, RestoreChoice, StartPosition
from .registry import Defect


class SkipsUnreadable(RestoreChoice):
    """F01: a newest checkpoint that cannot be read just now is passed over in silence."""

    def despite_unreadable(self, unreadable: Sequence[CheckpointId]) -> bool:
        self.reached = True
        return True


class IgnoresSavepoints(RestoreChoice):
    """F03: savepoints commit side effects and are no point of recovery."""

    def eligible(self, snapshot: CompletedSnapshot) -> bool:
        self.reached = self.reached or snapshot.savepoint
        return not snapshot.savepoint


class CleansUpOnFailure(Cleanup):
    """F07: a failed attempt looks like the end of the job, and its snapshots go."""

    def on_failure(self) -> bool:
        self.reached = True
        return True


class StartedFromIncompatible(RestoreChoice):
    """P10: a job begins with whatever snapshot there is, though its operators are not those of the snapshot."""

    def despite_incompatible(self, reason: str) -> bool:
        self.reached = True
        return True


class KindBeforeAge(RestoreChoice):
    """F08: a savepoint is restored before any newer checkpoint."""

    def choose(self, retained: Sequence[CompletedSnapshot]) -> CompletedSnapshot | None:
        chosen = max(retained, key=lambda one: (one.savepoint, one.checkpoint), default=None)
        self.reached = self.reached or chosen != super().choose(retained)
        return chosen


class OneSlot(Naming):
    """F12: every snapshot of an attempt is written to the one current place."""

    def handle(self, job: int, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId) -> Handle:
        self.reached = True
        return Handle(f"job-{job}/current/{task}-{attempt}")


class SweepsBeforeLoading(Cleanup):
    """F13: the garbage is collected before it is known what is still referred to."""

    def on_takeover(self, listed: bool) -> bool:
        self.reached = self.reached or not listed
        return True


class ClampedToInitial(StartPosition):
    """F16: a restored position is overridden by a freshly computed one, the end of the log."""

    def position(self, split: int, restored: int, length: int) -> int:
        self.reached = self.reached or 0 < restored < length
        return max(restored, length) if restored else restored


DEFECTS = (
    Defect(
        id="F01",
        upstream="FLINK-22502",
        title="an unreadable latest checkpoint is skipped in silence",
        invariant="restored-state",
        replacements=lambda: {"restore_choice": SkipsUnreadable()},
    ),
    Defect(
        id="F03",
        upstream="FLINK-6328 -> FLINK-10354",
        title="a savepoint commits side effects and is not restored",
        invariant="exactly-once",
        replacements=lambda: {"restore_choice": IgnoresSavepoints()},
    ),
    Defect(
        id="F07",
        upstream="FLINK-34518",
        title="snapshots are cleaned up because an inner state looked final",
        invariant="progress",
        replacements=lambda: {"cleanup": CleansUpOnFailure()},
    ),
    Defect(
        id="F08",
        upstream="SAMZA#1571 (c125b1514)",
        title="the kind of a snapshot goes before its age",
        invariant="restored-state",
        replacements=lambda: {"restore_choice": KindBeforeAge()},
    ),
    Defect(
        id="F12",
        upstream="JET#1191 (992b7f0b3e) / JET 3dedfbe5fb",
        title="all snapshots share one current place",
        invariant="restored-state",
        replacements=lambda: {"naming": OneSlot()},
    ),
    Defect(
        id="F13",
        upstream="HZ-2415 (hazelcast#24576)",
        title="snapshots are deleted before the references are loaded",
        invariant="progress",
        replacements=lambda: {"cleanup": SweepsBeforeLoading()},
    ),
    Defect(
        id="F16",
        upstream="PAIMON#8205",
        title="a restored offset is clamped to the initial one",
        invariant="no-data-loss",
        replacements=lambda: {"start_position": ClampedToInitial()},
    ),
    Defect(
        id="P10",
        upstream="FLIP-147 (compatibility)",
        title="a job begins with a new operator before one that had finished",
        invariant="restored-state",
        replacements=lambda: {"restore_choice": StartedFromIncompatible()},
    ),
)
