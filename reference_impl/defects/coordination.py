"""Groups A and E, and M02: how the coordinator counts, completes and aborts, and whom its messages reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..core.decisions.checkpointing import (
    CheckpointFailure,
    CheckpointIds,
    CheckpointPlan,
    Cleanup,
    Completion,
    PendingView,
    Situation,
    Tolerance,
    Triggering,
    TriggerStep,
)
from ..core.decisions.failover_strategy import FailoverStrategy
from ..core.decisions.fencing import Fencing
from ..core.job.topology import JobGraph
from ..core.vocabulary.causes import AnyCause, TimedOut
from ..core.vocabulary.events import Claims, CompletedCheckpoint
from ..core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ..core.vocabulary.messages import Ack, Cancel, ToTask
from ..core.vocabulary.stages import Restarting, Saving, Stage
from .registry import Defect


class CompletedInBatches(Completion):
    """A14: acknowledgements are applied in batches, and the checkpoints that they complete are stored newest first."""

    def to_store(self, acknowledged: Mapping[CheckpointId, bool]) -> tuple[CheckpointId, ...]:
        ready = [one for one, is_acknowledged in acknowledged.items() if is_acknowledged]
        waiting = [one for one, is_acknowledged in acknowledged.items() if not is_acknowledged]
        if any(one < ready[-1] for one in waiting) if ready else True:
            return ()
        self.reached = self.reached or len(ready) > 1
        return tuple(ready[::-1])


class NewestIsLastCompleted(Cleanup):
    """A14: the checkpoint that completed last counts as the newest."""

    def __init__(self) -> None:
        self._completed: list[CheckpointId] = []

    def subsumed(self, retained: Sequence[CompletedCheckpoint], keep: int, claims: Claims) -> list[CompletedCheckpoint]:
        for snapshot in retained:
            if snapshot.checkpoint not in self._completed:
                self._completed.append(snapshot.checkpoint)
        by_completion = sorted(retained, key=lambda snapshot: self._completed.index(snapshot.checkpoint))
        return super().subsumed(by_completion, keep, claims)


class EndsSuffice(Triggering):
    """A15: only sources and sinks must acknowledge a checkpoint; all other tasks count as having acknowledged it."""

    def plan(self, graph: JobGraph, finished: Sequence[TaskId]) -> CheckpointPlan:
        plan = super().plan(graph, finished)
        ends = [task for task, spec, _ in graph.tasks() if spec.role in ("source", "sink")]
        awaited = tuple(task for task in plan.awaited if task in ends)
        self.reached = self.reached or len(awaited) < len(plan.awaited)
        return msgspec.structs.replace(plan, awaited=awaited)


class NeverTimesOut(Triggering):
    """A16: the coordinator assumes that each trigger arrives; no checkpoint times out."""

    def steps(self) -> tuple[TriggerStep, ...]:
        self.reached = True
        return (TriggerStep.trigger_tasks,)


class TimeoutsDoNotCount(Tolerance):
    """E14: a checkpoint that times out does not count as failed: the job goes on without checkpoints."""

    def failed_in_a_row(self, before: int, failure: CheckpointFailure, complete: CheckpointId | None) -> int:
        timed_out = isinstance(failure.cause, TimedOut)
        self.reached = self.reached or timed_out
        return before if timed_out else super().failed_in_a_row(before, failure, complete)


class CountsPastFailures(Tolerance):
    """E15: failures from before a complete checkpoint are counted again with the next one."""

    def __init__(self) -> None:
        self._counted = 0
        self._complete: CheckpointId | None = None

    def failed_in_a_row(self, before: int, failure: CheckpointFailure, complete: CheckpointId | None) -> int:
        again = before if complete == self._complete else self._counted
        self.reached = self.reached or again > before
        self._counted, self._complete = super().failed_in_a_row(again, failure, complete), complete
        return self._counted


class CountsOtherBarrierFirst(Tolerance):
    """P50: a checkpoint counts as failed, although a task declined it for the barrier of a newer one."""

    def has_failed(self, cause: AnyCause) -> bool:
        self.reached = self.reached or not super().has_failed(cause)
        return True


class KeepsRejectedState(Completion):
    """E03: the state in a rejected acknowledgement is neither used nor deleted."""

    def unwanted(self, ack: Ack, taker: PendingView | None) -> list[Handle]:
        self.reached = self.reached or taker is None
        return []


class RestartsAtOnce(FailoverStrategy):
    """E05: a restart chooses its snapshot while the record of a newer one is being written."""

    def must_wait(self, being_stored: Sequence[CheckpointId]) -> bool:
        self.reached = self.reached or bool(being_stored)
        return False


class CompletedTwice(Completion):
    """E09: a checkpoint stays pending until it is stored, so that another acknowledgement
    completes it again."""

    def __init__(self) -> None:
        self._completed: list[CheckpointId] = []

    def still_pending(self, pending: Sequence[CheckpointId], stored: CheckpointId) -> tuple[CheckpointId, ...]:
        self.reached = self.reached or stored in self._completed
        self._completed.append(stored)
        return tuple(pending)


class SharedId(CheckpointIds):
    """E10: the counter is read now and advanced later, so that two checkpoints get one id."""

    def __init__(self) -> None:
        self.unadvanced: CheckpointId | None = None
        """the id that was given, and that the counter has not left behind"""

    def next(self, last: CheckpointId | None) -> CheckpointId:
        if last is not None and last == self.unadvanced:
            self.reached = True
            return last
        self.unadvanced = super().next(last)
        return self.unadvanced


class AdvancesTheCounter(Completion):
    """E10: the counter is advanced when the first task acknowledges."""

    def __init__(self, ids: SharedId) -> None:
        self._ids = ids

    def counts(self, ack: Ack, pending: PendingView) -> bool:
        if ack.checkpoint == self._ids.unadvanced:
            self._ids.unadvanced = None
        return super().counts(ack, pending)


def e10() -> dict[str, CheckpointIds | Completion]:
    ids = SharedId()
    return {"checkpoint_ids": ids, "completion": AdvancesTheCounter(ids)}


class KeepsCounting(Triggering):
    """E11: the coordinator counts pending checkpoints itself, and goes on counting those of a failed attempt."""

    def __init__(self) -> None:
        self._attempt: AttemptId | None = None
        self._of_this_attempt = 0
        self._of_failed_ones = 0

    def allowed(self, now: Situation) -> bool:
        if self._attempt is not None and now.attempt < self._attempt:  # another job has begun
            self._of_failed_ones = 0
        elif now.attempt != self._attempt:
            self._of_failed_ones += self._of_this_attempt
        self._attempt, self._of_this_attempt = now.attempt, now.under_way
        counted = now.under_way + self._of_failed_ones
        is_allowed = super().allowed(msgspec.structs.replace(now, under_way=counted))
        self.reached = self.reached or (super().allowed(now) and not is_allowed)
        return is_allowed

    def steps(self) -> tuple[TriggerStep, ...]:
        self._of_this_attempt += 1
        return super().steps()

    def completed(self, still_pending: int) -> None:
        """A checkpoint is complete."""
        self._of_this_attempt = still_pending


class CountsDown(Completion):
    """E11: the count goes down when a checkpoint is complete."""

    def __init__(self, count: KeepsCounting) -> None:
        self._count = count

    def still_pending(self, pending: Sequence[CheckpointId], stored: CheckpointId) -> tuple[CheckpointId, ...]:
        left = super().still_pending(pending, stored)
        self._count.completed(len(left))
        return left


def e11() -> dict[str, Triggering | Completion]:
    count = KeepsCounting()
    return {"triggering": count, "completion": CountsDown(count)}


class BeginsAgain(FailoverStrategy):
    """E13: a failure that is reported during a restart begins another restart."""

    def restarts(self, stage: Stage) -> bool:
        if isinstance(stage, Restarting | Saving):
            self.reached = True
            return True
        return super().restarts(stage)


class UnknownIsDiscarded(Completion):
    """E04: the book of periodic checkpoints does not know the savepoint; the state in its acknowledgements is
    discarded."""

    def unwanted(self, ack: Ack, taker: PendingView | None) -> list[Handle]:
        unknown = taker is None or taker.savepoint
        self.reached = self.reached or (unknown and taker is not None)
        return super().unwanted(ack, None if unknown else taker)


class StartsAgain(CheckpointIds):
    """F09: each attempt counts its checkpoints from the beginning."""

    def __init__(self) -> None:
        self.has_failed = False
        """the attempt that gave the last id"""

    def next(self, last: CheckpointId | None) -> CheckpointId:
        begins, self.has_failed = self.has_failed, False
        self.reached = self.reached or (begins and last is not None)
        return super().next(None if begins else last)


class SeesAttemptsFail(FailoverStrategy):
    """F09: the attempt has failed when all tasks restart, and not when a region does."""

    def __init__(self, ids: StartsAgain) -> None:
        self._ids = ids
        self._had_failed = False
        """before the loss that is being handled"""

    def restarts(self, stage: Stage) -> bool:
        restarts, self._had_failed = super().restarts(stage), self._ids.has_failed
        self._ids.has_failed = self._had_failed or restarts
        return restarts

    def lost_with(
        self, region: tuple[TaskId, ...], tasks: tuple[TaskId, ...], stage: Stage, is_ending: bool
    ) -> tuple[TaskId, ...]:
        lost = super().lost_with(region, tasks, stage, is_ending)
        self._ids.has_failed = self._had_failed or len(lost) == len(tasks)
        return lost


def f09() -> dict[str, CheckpointIds | FailoverStrategy]:
    ids = StartsAgain()
    return {"checkpoint_ids": ids, "failover_strategy": SeesAttemptsFail(ids)}


class StopsTheNext(Fencing):
    """M02: an order to stop names only the task: one of an earlier job stops the task of the next job."""

    def addressed(self, message: ToTask, job: int, newest: AttemptId | None) -> AttemptId | None:
        if isinstance(message, Cancel) and message.job < job and newest is not None:
            self.reached = True
            return newest
        return super().addressed(message, job, newest)


class RefusesRepeats(Completion):
    """I32: an acknowledgement that is sent again is not recognised, and its state is discarded."""

    def counts(self, ack: Ack, pending: PendingView) -> bool:
        counts, repeated = super().counts(ack, pending), ack.task in pending.acknowledged
        self.reached = self.reached or (counts and repeated)
        return counts and not repeated


DEFECTS = (
    Defect(
        id="A14",
        upstream="RISINGWAVE#20627",
        title="checkpoints that are acknowledged together complete newest first",
        invariant="restored-state",
        replacements=lambda: {"completion": CompletedInBatches(), "cleanup": NewestIsLastCompleted()},
    ),
    Defect(
        id="A15",
        upstream="RISINGWAVE#22384",
        title="a task counts as having acknowledged a checkpoint before it has",
        invariant="consistent-cut",
        replacements=lambda: {"triggering": EndsSuffice()},
    ),
    Defect(
        id="A16",
        upstream="JET#1435 (97f2654f01)",
        title="a checkpoint whose trigger is lost never times out",
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
        title="a restart chooses its snapshot while a newer checkpoint is being completed",
        invariant="progress",
        replacements=lambda: {"failover_strategy": RestartsAtOnce()},
    ),
    Defect(
        id="E09",
        upstream="SEATUNNEL#4854 (6101fcda06)",
        title="a pending checkpoint is completed twice",
        invariant="progress",
        replacements=lambda: {"completion": CompletedTwice()},
    ),
    Defect(
        id="E10",
        upstream="SEATUNNEL#3875 (41751d8b63)",
        title="two checkpoints in progress share one id",
        invariant="progress",
        replacements=e10,
    ),
    Defect(
        id="E11",
        upstream="SEATUNNEL#3213 (a66923a93a)",
        title="a restart does not reset the count of pending checkpoints",
        invariant="progress",
        replacements=e11,
    ),
    Defect(
        id="E13",
        upstream="FLINK-9788",
        title="a second failure during a restart begins another restart",
        invariant="progress",
        replacements=lambda: {"failover_strategy": BeginsAgain()},
    ),
    Defect(
        id="E14",
        upstream="FLINK-17351",
        title="checkpoints that time out do not count as failed, and the job goes on without checkpoints",
        invariant="progress",
        replacements=lambda: {"tolerance": TimeoutsDoNotCount()},
    ),
    Defect(
        id="E15",
        upstream="FLINK-18336",
        title="failures from before a complete checkpoint are counted again",
        invariant="progress",
        replacements=lambda: {"tolerance": CountsPastFailures()},
    ),
    Defect(
        id="P50",
        upstream="FLINK-12364",
        title="a checkpoint whose barrier a newer one overtook counts as failed",
        invariant="progress",
        replacements=lambda: {"tolerance": CountsOtherBarrierFirst()},
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
        replacements=f09,
    ),
    Defect(
        id="I32",
        upstream="RISINGWAVE#25690",
        title="a repeated acknowledgement is not recognised, and its state is discarded",
        invariant="progress",
        replacements=lambda: {"completion": RefusesRepeats()},
    ),
    Defect(
        id="M02",
        upstream="KAFKA-15690",
        title="a late order to stop a task of an earlier job stops the task of the next job",
        invariant="progress",
        replacements=lambda: {"fencing": StopsTheNext()},
    ),
)
