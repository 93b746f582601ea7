"""What the groups on coordination, recovery and sinks have besides, and what other groups
share with aligned snapshots: D, J, K and M."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.alignment import Alignment
from ..core.checkpoints import Checkpoints, Pending
from ..core.effects import Effect, Mail
from ..core.ids import AttemptId, CheckpointId, Handle, TaskId
from ..core.messages import Ack
from ..core.parts import (
    CheckpointIds,
    Committing,
    Completion,
    Naming,
    Part,
    SinkRecovery,
    SourceCut,
)
from ..core.source import SourceTask
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
    """J23, K10: the snapshot of a source leaves some of its splits out; `keeps` says which stay.

    J23: those of a source that has come to its end.  K10: all but the one that was read last."""

    def __init__(self, keeps: Callable[[SourceTask, int], bool]) -> None:
        self._keeps = keeps

    def cut(self, source: SourceTask, checkpoint: CheckpointId) -> list[Effect]:
        everything = source.positions
        source.positions = {split: at for split, at in everything.items() if self._keeps(source, split)}
        self.reached = self.reached or len(source.positions) < len(everything)
        effects = super().cut(source, checkpoint)
        source.positions = everything
        return effects


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


def _heard_too_late() -> dict[str, Part | Alignment]:
    recovery = NobodyListens()
    return {"sink_recovery": recovery, "committing": CommitsWhatItHeard(recovery)}


def _has_input(source: SourceTask, split: int) -> bool:
    return not source.input_ended


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
        title="a source at its end is missing from the snapshot",
        invariant="exactly-once",
        replacements=lambda: {"source_cut": PartOfPositions(_has_input)},
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
)
