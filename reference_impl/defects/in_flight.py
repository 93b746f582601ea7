"""Groups B and C: what unaligned checkpoints hold of data in flight, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..core.decisions.alignment import AwaitedBarriers
from ..core.decisions.in_flight import Capture, Recorded, T
from ..core.decisions.snapshots.contents import SnapshotContents
from ..core.vocabulary.ids import CheckpointId, is_newer
from ..core.vocabulary.messages import Barrier, CancelBarrier, Element
from ..core.vocabulary.state import Passing, TaskState
from .registry import Defect


class CompletedBefore(Capture):
    """B02: a channel that has delivered the barrier of an older pending checkpoint is not recorded for the next one."""

    def begun(self, checkpoint: CheckpointId, recorded: Mapping[CheckpointId, Recorded]) -> Recorded:
        own = super().begun(checkpoint, recorded)
        done = {channel for other in recorded.values() for channel in own.missing if channel not in other.missing}
        self.reached = self.reached or bool(done)
        return Recorded(tuple(channel for channel in own.missing if channel not in done))


class StaleBarrier(Capture):
    """B04: an older barrier in front of the current one decides how much of the queue is kept."""

    def before_barrier(self, restored: Sequence[Element], live: Sequence[Element]) -> Sequence[Element]:
        kept = super().before_barrier(restored, live)
        for place, element in enumerate(kept):
            if isinstance(element, Barrier | CancelBarrier):
                self.reached = True
                return kept[:place]
        return kept


class OutOfOrder(AwaitedBarriers):
    """B07: the snapshot of an older checkpoint is taken after that of a newer one."""

    def is_obsolete(
        self, checkpoint: CheckpointId, begun: CheckpointId | None, cancelled: Sequence[CheckpointId]
    ) -> bool:
        obsolete = super().is_obsolete(checkpoint, begun, cancelled)
        older = obsolete and is_newer(begun, checkpoint)
        self.reached = self.reached or older
        return obsolete and not older


class AttachedToTheNext(Capture):
    """B09: the recorded in-flight data of an aborted checkpoint stays, and the next checkpoint continues it."""

    def __init__(self) -> None:
        self._aborted: set[CheckpointId] = set()

    def kept(self, recorded: Sequence[CheckpointId], aborted: CheckpointId) -> list[CheckpointId]:
        self._aborted.add(aborted)
        return list(recorded)

    def begun(self, checkpoint: CheckpointId, recorded: Mapping[CheckpointId, Recorded]) -> Recorded:
        queued: dict[int, tuple[Passing, ...]] = {}
        for one, other in recorded.items():
            if one in self._aborted and other.queued:
                self.reached = True
                for channel, passing in other.queued.items():
                    queued[channel] = (*queued.get(channel, ()), *passing)
        return Recorded(super().begun(checkpoint, recorded).missing, queued)


class TimesOutOnNeverUnalignedEdges(Capture):
    """B10: the alignment timeout applies to barriers on never unaligned edges too."""

    def alignment_timeout(self, timeout_us: int | None, may_overtake: bool) -> int | None:
        self.reached = self.reached or (timeout_us is not None and not may_overtake)
        return timeout_us


class BroadcastToo(Capture):
    """B13: barriers overtake on broadcast edges as on any other."""

    def may_overtake(self, partitioning: str) -> bool:
        self.reached = self.reached or partitioning == "broadcast"
        return partitioning == "broadcast" or super().may_overtake(partitioning)


class OutputsNotAwaited(Capture):
    """B15: the snapshot is written before the overtaken elements of the outputs are known."""

    def waits(self, missing: Sequence[int], overtaken: Sequence[int], *, ended: bool) -> bool:
        self.reached = self.reached or bool(overtaken)
        return super().waits(missing, (), ended=ended)


class ReplayedIsNotNew(Capture):
    """C01: a checkpoint during the restore leaves out the in-flight data with which the task was restored."""

    def before_barrier(self, restored: Sequence[Element], live: Sequence[Element]) -> Sequence[Element]:
        self.reached = self.reached or bool(restored)
        return live


class BehindTheLive(Capture):
    """C04: restored elements are processed after elements that have arrived meanwhile."""

    def handed_over(self, restored: Sequence[T], live: Sequence[T]) -> Sequence[T]:
        self.reached = self.reached or bool(restored and live)
        return (*live, *restored)


class NothingMeanwhile(Capture):
    """C06: elements that arrive before the restored ones are handed over are dropped."""

    def handed_over(self, restored: Sequence[T], live: Sequence[T]) -> Sequence[T]:
        self.reached = self.reached or bool(live)
        return restored


class NothingPutBack(SnapshotContents):
    """C08: a task is restored without its in-flight data."""

    def restored(self, state: TaskState) -> TaskState:
        self.reached = self.reached or bool(state.queued)
        return msgspec.structs.replace(state, queued={})


class EndedWaitsForNothing(Capture):
    """J09: a task whose input has ended is assumed to have no data in flight."""

    def waits(self, missing: Sequence[int], overtaken: Sequence[int], *, ended: bool) -> bool:
        waits = super().waits(missing, overtaken, ended=ended)
        self.reached = self.reached or (ended and waits)
        return waits and not ended


DEFECTS = (
    Defect(
        id="B02",
        upstream="FLINK-20645",
        title="in-flight data is not recorded if the barriers arrive in an unusual order",
        invariant="consistent-cut",
        replacements=lambda: {"capture": CompletedBefore()},
    ),
    Defect(
        id="B04",
        upstream="FLINK-20654/21104",
        title="an obsolete barrier decides which elements of a queue are kept",
        invariant="consistent-cut",
        replacements=lambda: {"capture": StaleBarrier()},
    ),
    Defect(
        id="B07",
        upstream="FLINK-17994",
        title="the snapshot of an older checkpoint is taken after that of a newer one",
        invariant="consistent-cut",
        replacements=lambda: {"awaited_barriers": OutOfOrder()},
    ),
    Defect(
        id="B09",
        upstream="FLINK-17869 / FLINK-28474",
        title="the in-flight data of an aborted checkpoint gets into the next one",
        invariant="consistent-cut",
        replacements=lambda: {"capture": AttachedToTheNext()},
    ),
    Defect(
        id="B10",
        upstream="FLINK-33693",
        title="the alignment timeout applies to edges that are never unaligned",
        invariant="consistent-cut",
        replacements=lambda: {"capture": TimesOutOnNeverUnalignedEdges()},
    ),
    Defect(
        id="B13",
        upstream="FLINK-22815 / FLINK-22686",
        title="barriers overtake on broadcast edges",
        invariant="consistent-cut",
        replacements=lambda: {"capture": BroadcastToo()},
    ),
    Defect(
        id="B15",
        upstream="FLINK-27251 (invariant)",
        title="a snapshot is written without the overtaken output",
        invariant="consistent-cut",
        replacements=lambda: {"capture": OutputsNotAwaited()},
    ),
    Defect(
        id="C01",
        upstream="FLINK-20654 (decline)",
        title="a checkpoint during the restore leaves out restored in-flight data",
        invariant="consistent-cut",
        replacements=lambda: {"capture": ReplayedIsNotNew()},
    ),
    Defect(
        id="C04",
        upstream="FLINK-16536 (invariant)",
        title="new data overtakes restored input",
        invariant="consistent-cut",
        replacements=lambda: {"capture": BehindTheLive()},
    ),
    Defect(
        id="C06",
        upstream="FLINK-38544 hunt (PR#28544)",
        title="data that arrives before the restored input is processed is dropped",
        invariant="consistent-cut",
        replacements=lambda: {"capture": NothingMeanwhile()},
    ),
    Defect(
        id="C08",
        upstream="FLINK-22684 (knob as mutant)",
        title="in-flight data is not restored",
        invariant="restored-state",
        replacements=lambda: {"snapshot_contents": NothingPutBack()},
    ),
    Defect(
        id="J09",
        upstream="FLINK-25305",
        title="the snapshot of a task whose input has ended does not wait for its in-flight data",
        invariant="consistent-cut",
        replacements=lambda: {"capture": EndedWaitsForNothing()},
    ),
)
