"""Groups A and E, and M02: how the coordinator counts, completes and gives up, and whom its messages reach."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.attempts import Attempts
from ..core.checkpoints import Checkpoints, Pending
from ..core.events import CompletedSnapshot
from ..core.ids import AttemptId, CheckpointId, Handle, TaskId
from ..core.messages import Ack, Cancel, ToTask
from ..core.parts import CheckpointIds, Cleanup, Completion, Failover, Fencing, Triggering
from ..core.stages import Restarting, Saving
from .registry import Defect


class CompletedInBatches(Completion):
    """A14: acknowledgements are applied in batches, what they complete is asked afterwards,
    newest first."""

    def finished(self, checkpoints: Checkpoints, pending: Pending) -> list[Pending]:
        ready = [one for one in checkpoints.pending.values() if one.is_acknowledged]
        waiting = [one for one in checkpoints.pending.values() if not one.is_acknowledged]
        if any(one.checkpoint < ready[-1].checkpoint for one in waiting) if ready else True:
            return []
        self.reached = self.reached or len(ready) > 1
        return ready[::-1]


class NewestIsLastCompleted(Cleanup):
    """A14: and the checkpoint that completed last counts as the newest."""

    def __init__(self) -> None:
        self._completed: list[CheckpointId] = []

    def subsumed(self, retained: Sequence[CompletedSnapshot], keep: int) -> list[CompletedSnapshot]:
        for snapshot in retained:
            if snapshot.checkpoint not in self._completed:
                self._completed.append(snapshot.checkpoint)
        by_completion = sorted(retained, key=lambda snapshot: self._completed.index(snapshot.checkpoint))
        return super().subsumed(by_completion, keep)


class EndsSuffice(Triggering):
    """A15: only the ends of the dataflow are waited for; the rest counts as acknowledged."""

    def expected(self, tasks: Sequence[TaskId], sources: Sequence[TaskId]) -> tuple[TaskId, ...]:
        ends = (*sources, *(task for task in tasks if task.startswith("sink-")))
        self.reached = self.reached or len(ends) < len(tasks)
        return ends


class NeverTimesOut(Triggering):
    """A16: a trigger is taken to arrive; nothing gives its checkpoint up."""

    def times_out(self) -> bool:
        self.reached = True
        return False


class KeepsRejectedState(Completion):
    """E03: the state that a rejected acknowledgement carries is neither used nor freed."""

    def rejected(self, ack: Ack) -> list[Handle]:
        self.reached = True
        return []


class RestartsAtOnce(Failover):
    """E05: a restart chooses its snapshot while a newer one's record is being written."""

    def awaits_store(self) -> bool:
        self.reached = True
        return False


class CompletedTwice(Completion):
    """E09: a checkpoint stays pending until it is stored, so that another acknowledgement
    completes it again."""

    def claim(self, checkpoints: Checkpoints, pending: Pending) -> None:
        self.reached = self.reached or pending in checkpoints.storing


class SharedId(CheckpointIds):
    """E10: the counter is read, and advanced only later: two checkpoints get one id."""

    def allocate(self, checkpoints: Checkpoints) -> CheckpointId:
        last = CheckpointId(checkpoints.next_id - 1)
        twin = checkpoints.pending.get(last)
        if twin is not None and not twin.acknowledged:
            self.reached = True
            return last
        return super().allocate(checkpoints)


class KeepsCounting(Failover):
    """E11: the number of checkpoints under way survives the attempt that they belonged to."""

    def reset(self, checkpoints: Checkpoints) -> None:
        self.reached = True


class BeginsAgain(Failover):
    """E13: a failure of which the coordinator is notified while the job restarts begins another restart."""

    def restarts_again(self, coordinator: Attempts) -> bool:
        if isinstance(coordinator.stage, Restarting | Saving):
            self.reached = True
            return True
        return super().restarts_again(coordinator)


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


class StopsTheNext(Fencing):
    """M02: an order to stop goes by the task's name: one of a former job stops the task of the job that followed."""

    def addressed(self, message: ToTask, job: int, newest: AttemptId) -> AttemptId | None:
        if isinstance(message, Cancel) and message.job < job and newest:
            self.reached = True
            return newest
        return super().addressed(message, job, newest)


class RefusesRepeats(Completion):
    """I32: an acknowledgement that came before is not known again, and its state discarded."""

    def find(self, checkpoints: Checkpoints, ack: Ack) -> Pending | None:
        pending = super().find(checkpoints, ack)
        if pending is not None and ack.task in pending.acknowledged:
            self.reached = True
            return None
        return pending


DEFECTS = (
    Defect(
        id="A14",
        upstream="RISINGWAVE#20627",
        title="completion events lose their order",
        invariant="restored-state",
        replacements=lambda: {"completion": CompletedInBatches(), "cleanup": NewestIsLastCompleted()},
    ),
    Defect(
        id="A15",
        upstream="RISINGWAVE#22384",
        title="a worker is marked as having collected a barrier that it has not",
        invariant="consistent-cut",
        replacements=lambda: {"triggering": EndsSuffice()},
    ),
    Defect(
        id="A16",
        upstream="JET#1435 (97f2654f01)",
        title="a lost trigger is waited for without a time-out",
        invariant="progress",
        replacements=lambda: {"triggering": NeverTimesOut()},
    ),
    Defect(
        id="E03",
        upstream="FLINK-5063",
        title="late acknowledgements of aborted checkpoints leak their state",
        invariant="no-leaks",
        replacements=lambda: {"completion": KeepsRejectedState()},
    ),
    Defect(
        id="E05",
        upstream="JET#2824 (3e83a671ae)",
        title="completion of a checkpoint races with a restart",
        invariant="progress",
        replacements=lambda: {"failover": RestartsAtOnce()},
    ),
    Defect(
        id="E09",
        upstream="SEATUNNEL#4854 (6101fcda06)",
        title="one pending checkpoint is completed twice",
        invariant="progress",
        replacements=lambda: {"completion": CompletedTwice()},
    ),
    Defect(
        id="E10",
        upstream="SEATUNNEL#3875 (41751d8b63)",
        title="two checkpoints under way share one id",
        invariant="progress",
        replacements=lambda: {"checkpoint_ids": SharedId()},
    ),
    Defect(
        id="E11",
        upstream="SEATUNNEL#3213 (a66923a93a)",
        title="the count of pending checkpoints is not reset by a restart",
        invariant="progress",
        replacements=lambda: {"failover": KeepsCounting()},
    ),
    Defect(
        id="E13",
        upstream="FLINK-9788",
        title="second failure while restarting",
        invariant="progress",
        replacements=lambda: {"failover": BeginsAgain()},
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
        id="I32",
        upstream="RISINGWAVE#25690",
        title="what is sent again is not known again",
        invariant="progress",
        replacements=lambda: {"completion": RefusesRepeats()},
    ),
    Defect(
        id="M02",
        upstream="KAFKA-15690",
        title="a late order to stop a task of a former job stops that of the next",
        invariant="progress",
        replacements=lambda: {"fencing": StopsTheNext()},
    ),
)
