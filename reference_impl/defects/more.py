"""Groups D, E, F, I, J, K, M and X: what other groups share with aligned snapshots."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.checkpoints import Checkpoints, Pending
from ..core.coordinator import Coordinator
from ..core.effects import Effect, Mail
from ..core.ids import AttemptId, CheckpointId, Handle, TaskId
from ..core.messages import Ack
from ..core.parts import (
    CheckpointIds,
    Committing,
    Completion,
    Failover,
    Naming,
    SinkRecovery,
    SourceCut,
    Triggering,
)
from ..core.source import SourceTask
from ..core.stages import Restarting
from ..core.state import Sealed
from ..core.transactions import NoAnswer, Outcome
from .registry import Defect


class OperatorOnly(Naming):
    """D16: a snapshot is named by its operator, so that subtasks overwrite each other's."""

    def handle(self, job: int, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId) -> Handle:
        self.reached = True
        return super().handle(job, checkpoint, TaskId(task.rpartition("-")[0]), attempt)


class UnknownIsDiscarded(Completion):
    """E04: the periodic book does not know a savepoint, and has the state of its
    acknowledgements discarded."""

    def find(self, checkpoints: Checkpoints, ack: Ack) -> Pending | None:
        pending = super().find(checkpoints, ack)
        if pending is not None and pending.savepoint:
            self.reached = True
            checkpoints.unsettled[ack.handle] = None
        return pending


class AfterTheLast(Triggering):
    """E07: a checkpoint is triggered though the job's last one is under way."""

    def allowed(self, coordinator: Coordinator) -> bool:
        self.reached = self.reached or coordinator.is_ending
        return coordinator.is_running


class CountsEveryLoss(Failover):
    """E13: a restart that is under way is begun once more by each task that is lost meanwhile."""

    def restarts_again(self, coordinator: Coordinator) -> bool:
        again = isinstance(coordinator.stage, Restarting)
        self.reached = self.reached or again
        return again or super().restarts_again(coordinator)


class StartsAgain(CheckpointIds):
    """F09: each attempt counts its checkpoints from the beginning."""

    def first_of_attempt(self, checkpoints: Checkpoints) -> None:
        self.reached = self.reached or checkpoints.next_id > 1
        checkpoints.next_id = CheckpointId(1)


class StaysInTransaction(Committing):
    """I10: after a commit that failed its handle is still taken to be in use, and its
    next use refused."""

    _in_use = False

    def verdict(self, outcome: Outcome, recovering: bool) -> str:
        if self._in_use:
            self.reached, self._in_use = True, False
            return "fail"
        self._in_use = isinstance(outcome, NoAnswer)
        return super().verdict(outcome, recovering)


class NobodyListens(SinkRecovery):
    """I22: what is restored is announced before anybody listens, and so never committed."""

    def __init__(self) -> None:
        self.unheard: list[Sealed] = []

    def to_commit(self, restored: Sequence[Sealed]) -> list[Sealed]:
        self.reached = self.reached or bool(restored)
        self.unheard.extend(restored)
        return []


class CommitsWhatItHeard(Committing):
    """I22: and a later notification commits only what was announced since."""

    def __init__(self, recovery: NobodyListens) -> None:
        self._recovery = recovery

    def due(self, sealed: Sequence[Sealed], checkpoint: CheckpointId) -> list[Sealed]:
        return [one for one in super().due(sealed, checkpoint) if one not in self._recovery.unheard]


class RefusesRepeats(Completion):
    """I32: an acknowledgement that came before is not known again, and its state discarded."""

    def find(self, checkpoints: Checkpoints, ack: Ack) -> Pending | None:
        pending = super().find(checkpoints, ack)
        if pending is not None and ack.task in pending.acknowledged:
            self.reached = True
            return None
        return pending


class CommitsAllSealed(Committing):
    """J17: a notification, late or not, commits whatever is sealed, newer or not."""

    def due(self, sealed: Sequence[Sealed], checkpoint: CheckpointId) -> list[Sealed]:
        self.reached = self.reached or any(one.checkpoint > checkpoint for one in sealed)
        return list(sealed)


class PartOfPositions(SourceCut):
    """A source whose snapshot leaves some splits out: `keeps` says which stay."""

    def __init__(self, keeps: Callable[[SourceTask, int], bool]) -> None:
        self._keeps = keeps

    def cut(self, source: SourceTask, checkpoint: CheckpointId) -> list[Effect]:
        everything = source.positions
        source.positions = {split: at for split, at in everything.items() if self._keeps(source, split)}
        self.reached = self.reached or len(source.positions) < len(everything)
        effects = super().cut(source, checkpoint)
        source.positions = everything
        return effects


class AfterASavepoint(Triggering):
    """J29: the newest snapshot is a savepoint, so the job is taken to be stopped."""

    def allowed(self, coordinator: Coordinator) -> bool:
        newest = coordinator.checkpoints.newest()
        stopped = newest is not None and newest.savepoint
        self.reached = self.reached or stopped
        return super().allowed(coordinator) and not stopped


class LatePosition:
    """A mail: the source's snapshot, put off."""

    def __init__(self, checkpoint: CheckpointId) -> None:
        self._checkpoint = checkpoint

    def open(self, task: SourceTask) -> list[Effect]:
        return task.record(self._checkpoint)


class PositionLast(SourceCut):
    """M14: the positions are read once the state is on its way; they may be past it."""

    def cut(self, source: SourceTask, checkpoint: CheckpointId) -> list[Effect]:
        self.reached = True
        return [*source.barrier(checkpoint), Mail(LatePosition(checkpoint))]


class OnlyWhileAllRun(Triggering):
    """X03: no checkpoint once the input of any task has ended."""

    def allowed(self, coordinator: Coordinator) -> bool:
        some_ended = bool(coordinator._ended_inputs)
        self.reached = self.reached or some_ended
        return super().allowed(coordinator) and not some_ended


def _heard_too_late() -> dict[str, SinkRecovery | Committing]:
    recovery = NobodyListens()
    return {"sink_recovery": recovery, "committing": CommitsWhatItHeard(recovery)}


def _is_unfinished(source: SourceTask, split: int) -> bool:
    return any(log.split == split and source.positions[split] < len(log.records) for log in source._logs)


def _is_latest(source: SourceTask, split: int) -> bool:
    return bool(source.positions) and split == list(source.positions)[source.fixed_state().turn - 1]


DEFECTS = (
    Defect(
        id="D16",
        upstream="JET#840 (894f3a8c21)",
        title="snapshots of subtasks share one key",
        invariant="restored-state",
        replacements=lambda: {"naming": OperatorOnly()},
    ),
    Defect(
        id="E04",
        upstream="FLINK-5246",
        title="an acknowledgement of a savepoint is discarded as unknown",
        invariant="progress",
        replacements=lambda: {"completion": UnknownIsDiscarded()},
    ),
    Defect(
        id="E07",
        upstream="JET#868 (d52982f0e8)",
        title="a checkpoint starts while the job ends",
        invariant="no-leaks",
        replacements=lambda: {"triggering": AfterTheLast()},
    ),
    Defect(
        id="E13",
        upstream="FLINK-9788",
        title="a second failure restarts a job that is restarting",
        invariant="progress",
        replacements=lambda: {"failover": CountsEveryLoss()},
    ),
    Defect(
        id="F09",
        upstream="AMORO#561 / PR#568",
        title="checkpoint ids start again after a failure",
        invariant="restored-state",
        replacements=lambda: {"checkpoint_ids": StartsAgain()},
    ),
    Defect(
        id="I10",
        upstream="FLINK-25126",
        title="a handle is not reset when its commit failed",
        invariant="progress",
        replacements=lambda: {"committing": StaysInTransaction()},
    ),
    Defect(
        id="I22",
        upstream="FLINK-19166 / FLINK-18110",
        title="a listener is registered after the restore",
        invariant="progress",
        replacements=lambda: _heard_too_late(),
    ),
    Defect(
        id="I32",
        upstream="RISINGWAVE#25690",
        title="what is sent again is not known again",
        invariant="progress",
        replacements=lambda: {"completion": RefusesRepeats()},
    ),
    Defect(
        id="J17",
        upstream="FLINK-25920",
        title="a late notification commits what is newer",
        invariant="visibility",
        replacements=lambda: {"committing": CommitsAllSealed()},
    ),
    Defect(
        id="J23",
        upstream="BYTEWAX 0bb9daae / 4b83d6f2",
        title="a split at its end is missing from the snapshot",
        invariant="exactly-once",
        replacements=lambda: {"source_cut": PartOfPositions(_is_unfinished)},
    ),
    Defect(
        id="J29",
        upstream="SEATUNNEL#4985 / PR#5051",
        title="after a savepoint no checkpoint is taken",
        invariant="progress",
        replacements=lambda: {"triggering": AfterASavepoint()},
    ),
    Defect(
        id="K10",
        upstream="FLINK-2314 (review)",
        title="only the latest split's position is kept",
        invariant="exactly-once",
        replacements=lambda: {"source_cut": PartOfPositions(_is_latest)},
    ),
    Defect(
        id="M14",
        upstream="SAMZA-1384",
        title="positions are read after the state",
        invariant="consistent-cut",
        replacements=lambda: {"source_cut": PositionLast()},
    ),
    Defect(
        id="X03",
        upstream="FLINK-2491",
        title="checkpoints stop once any input has ended",
        invariant="progress",
        replacements=lambda: {"triggering": OnlyWhileAllRun()},
    ),
)
