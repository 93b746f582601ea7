"""Groups D, J, K and M as far as aligned snapshots share them: what a source, or a name, leaves out."""

from __future__ import annotations

import msgspec

from ..core.decisions.postponed import Postponed
from ..core.decisions.snapshots.contents import SnapshotContents
from ..core.decisions.snapshots.naming import Naming
from ..core.decisions.tasks import CutStep, SourceCut, StartPosition
from ..core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId, operator_of
from ..core.vocabulary.state import TaskState
from .registry import Defect


class OperatorOnly(Naming):
    """D16: a snapshot is named after its operator, so that its subtasks overwrite each other's snapshots."""

    def handle(self, job: int, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId) -> Handle:
        self.reached = True
        return super().handle(job, checkpoint, TaskId(operator_of(task)), attempt)


class WithoutTheEnded(SnapshotContents):
    """J23: the snapshot of a source that has come to its end leaves its splits out."""

    def stored(self, state: TaskState) -> TaskState:
        self.reached = self.reached or (state.ended and bool(state.positions))
        return msgspec.structs.replace(state, positions={}) if state.ended else super().stored(state)


class TheLatestOnly(SnapshotContents):
    """K10: the snapshot of a source has only the position of the split that was read last."""

    def stored(self, state: TaskState) -> TaskState:
        before = state.turn - 1  # the one before that which is to be read next
        self.reached = self.reached or len(state.positions) > 1
        latest = dict([list(state.positions.items())[before]] if state.positions else [])
        return msgspec.structs.replace(state, positions=latest)


class PositionLast(SourceCut):
    """M14: the positions are read when the state is already being written; they may be ahead of it."""

    def steps(self) -> tuple[CutStep | Postponed[CutStep], ...]:
        self.reached = True
        return (CutStep.send_barrier, Postponed((CutStep.record_position,)))


class SavedBehind(StartPosition):
    """K12: the position that is saved does not cover the record that is being sent."""

    def saved(self, offset: int) -> int:
        self.reached = True
        return offset


DEFECTS = (
    Defect(
        id="D16",
        upstream="JET#840 (894f3a8c21)",
        title="snapshots of all subtasks of an operator share one key",
        invariant="restored-state",
        replacements=lambda: {"naming": OperatorOnly()},
    ),
    Defect(
        id="J23",
        upstream="BYTEWAX 0bb9daae / 4b83d6f2",
        title="the splits of a source that has read all of its input are missing from the snapshot",
        invariant="exactly-once",
        replacements=lambda: {"snapshot_contents": WithoutTheEnded()},
    ),
    Defect(
        id="K10",
        upstream="FLINK-2314 (review)",
        title="a source's snapshot has only the position of the split that was read last",
        invariant="exactly-once",
        replacements=lambda: {"snapshot_contents": TheLatestOnly()},
    ),
    Defect(
        id="M14",
        upstream="SAMZA-1384",
        title="a source's positions are read after its state",
        invariant="consistent-cut",
        replacements=lambda: {"source_cut": PositionLast()},
    ),
    Defect(
        id="K12",
        upstream="KAFKA-13469",
        title="a source saves its position without the record that is being sent",
        invariant="at-most-once",
        replacements=lambda: {"start_position": SavedBehind()},
    ),
)
