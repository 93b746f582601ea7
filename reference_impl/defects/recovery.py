"""Group F: which snapshot is restored, and which one is still there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.decisions.checkpointing import Cleanup, RestoreChoice, WhenListed
from ..core.decisions.snapshots.naming import Naming
from ..core.decisions.tasks import StartPosition
from ..core.job.split_log import SplitLog
from ..core.job.topology import JobGraph
from ..core.vocabulary.causes import AnyIncompatible
from ..core.vocabulary.effects import Effect, Sweep
from ..core.vocabulary.events import Claims, CompletedCheckpoint
from ..core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from .registry import Defect


class SkipsUnreadable(RestoreChoice):
    """F01: the newest checkpoint is skipped silently if it cannot be read at the moment."""

    def when_listed(self, unreadable: Sequence[CheckpointId], tries_left: int) -> WhenListed:
        self.reached = self.reached or bool(unreadable)
        return WhenListed.choose


class IgnoresSavepoints(RestoreChoice):
    """F03: the completion of a savepoint commits transactions, but no recovery restores it."""

    def choose(self, retained: Sequence[CompletedCheckpoint]) -> CompletedCheckpoint | None:
        own = [snapshot for snapshot in retained if not snapshot.savepoint]
        self.reached = self.reached or len(own) < len(retained)
        return super().choose(own)


class CleansUpOnFailure(Cleanup):
    """F07: a failed attempt looks like the end of the job: with its pending checkpoints the complete snapshots are
    deleted."""

    def left_behind(self, acknowledged: Mapping[TaskId, Handle], complete: Sequence[Handle]) -> tuple[Handle, ...]:
        self.reached = self.reached or bool(complete)
        return (*super().left_behind(acknowledged, complete), *complete)


class StartedFromIncompatible(RestoreChoice):
    """P10: a job begins with any snapshot, even if its operators are not those of the snapshot."""

    def refusal(self, graph: JobGraph, snapshot: CompletedCheckpoint) -> AnyIncompatible | None:
        self.reached = self.reached or super().refusal(graph, snapshot) is not None
        return None


class KindBeforeAge(RestoreChoice):
    """F08: a savepoint is restored before any newer checkpoint."""

    def choose(self, retained: Sequence[CompletedCheckpoint]) -> CompletedCheckpoint | None:
        chosen = max(retained, key=lambda one: (one.savepoint, one.checkpoint), default=None)
        self.reached = self.reached or chosen != super().choose(retained)
        return chosen


class OneSlot(Naming):
    """F12: all snapshots of an attempt are written to one place."""

    def handle(self, job: int, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId) -> Handle:
        self.reached = True
        return Handle(f"job-{job}/current/{task}-{attempt}")


class SweepsBeforeLoading(Cleanup):
    """F13: unreferenced snapshots are deleted before the references are known."""

    def on_takeover(self, referred_to: tuple[Handle, ...] | None) -> list[Effect]:
        self.reached = self.reached or referred_to is None
        return [Sweep(referred_to or ())]


class TrimsUpToTheNewest(Cleanup):
    """P11: sources discard what they read before the newest checkpoint, whatever older ones are retained or pending."""

    def oldest_needed(self, restorable: Sequence[CheckpointId], pending: Sequence[CheckpointId]) -> CheckpointId | None:
        newest = max(restorable, default=None)
        self.reached = self.reached or newest != super().oldest_needed(restorable, pending)
        return newest


class ForgetsWhatWasNamed(RestoreChoice):
    """P12: a job that its user began from an older snapshot restores the newest one of the former job."""

    def recoverable(
        self, retained: tuple[CompletedCheckpoint, ...], job: int, named: CheckpointId | None, savepoints: bool
    ) -> tuple[CompletedCheckpoint, ...]:
        passed_over = named is not None and any(one.job != job and one.checkpoint > named for one in retained)
        self.reached = self.reached or passed_over
        return super().recoverable(retained, job, None, savepoints)


class DeletesByAge(Cleanup):
    """P13: a user's savepoint is deleted once a few newer checkpoints have completed."""

    def subsumed(self, retained: Sequence[CompletedCheckpoint], keep: int, claims: Claims) -> list[CompletedCheckpoint]:
        old = [one for one in retained[: max(0, len(retained) - keep)] if one.savepoint]
        self.reached = self.reached or bool(old)
        return [*super().subsumed(retained, keep, claims), *old]


class ClampedToInitial(StartPosition):
    """F16: a restored position is replaced by a newly computed one, the end of the log."""

    def position(self, log: SplitLog, restored: Mapping[int, int]) -> int:
        position = super().position(log, restored)
        self.reached = self.reached or 0 < position < len(log.records)
        return max(position, len(log.records)) if position else position


DEFECTS = (
    Defect(
        id="F01",
        upstream="FLINK-22502",
        title="the newest checkpoint is skipped silently when it cannot be read",
        invariant="restored-state",
        replacements=lambda: {"restore_choice": SkipsUnreadable()},
    ),
    Defect(
        id="F03",
        upstream="FLINK-6328 -> FLINK-10354",
        title="a savepoint commits side effects, but is never restored",
        invariant="exactly-once",
        replacements=lambda: {"restore_choice": IgnoresSavepoints()},
    ),
    Defect(
        id="F07",
        upstream="FLINK-34518",
        title="snapshots are deleted because a failed attempt looks like the end of the job",
        invariant="progress",
        replacements=lambda: {"cleanup": CleansUpOnFailure()},
    ),
    Defect(
        id="F08",
        upstream="SAMZA#1571 (c125b1514)",
        title="a savepoint is restored although a checkpoint is newer",
        invariant="restored-state",
        replacements=lambda: {"restore_choice": KindBeforeAge()},
    ),
    Defect(
        id="F12",
        upstream="JET#1191 (992b7f0b3e) / JET 3dedfbe5fb",
        title="all snapshots are written to one place",
        invariant="restored-state",
        replacements=lambda: {"naming": OneSlot()},
    ),
    Defect(
        id="F13",
        upstream="HZ-2415 (hazelcast#24576)",
        title="snapshots are deleted before the references to them are loaded",
        invariant="progress",
        replacements=lambda: {"cleanup": SweepsBeforeLoading()},
    ),
    Defect(
        id="F16",
        upstream="PAIMON#8205",
        title="a restored position is replaced by a newly computed initial one",
        invariant="no-data-loss",
        replacements=lambda: {"start_position": ClampedToInitial()},
    ),
    Defect(
        id="P11",
        upstream="ABS-15 (retained snapshots)",
        title="sources discard records that an older retained snapshot needs",
        invariant="restorable",
        replacements=lambda: {"cleanup": TrimsUpToTheNewest()},
    ),
    Defect(
        id="P12",
        upstream="FLIP-47 (resume from a named snapshot)",
        title="a job that was begun from an older snapshot restores the newest one",
        invariant="restored-state",
        replacements=lambda: {"restore_choice": ForgetsWhatWasNamed()},
    ),
    Defect(
        id="P13",
        upstream="FLIP-47 (user-induced snapshots)",
        title="a user's savepoint is deleted when it is old",
        invariant="restored-state",
        replacements=lambda: {"cleanup": DeletesByAge()},
    ),
    Defect(
        id="P10",
        upstream="FLIP-147 (compatibility)",
        title="a job starts from a snapshot that is incompatible with its operators",
        invariant="restored-state",
        replacements=lambda: {"restore_choice": StartedFromIncompatible()},
    ),
)
