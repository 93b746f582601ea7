"""Group J, E07 and X03: how tasks finish, how a job ends, and who is asked meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..core.decisions.alignment import AwaitedBarriers
from ..core.decisions.checkpointing import CheckpointPlan, Situation, Triggering, TriggerStep
from ..core.decisions.finishing import Ending, Finishing, OrderStep
from ..core.job.topology import JobGraph
from ..core.vocabulary.causes import SnapshotNotWritten
from ..core.vocabulary.ends import JobEnd
from ..core.vocabulary.ids import TaskId
from ..core.vocabulary.messages import Control, Decline, Element, Finished, ToCoordinator, Trigger
from ..core.vocabulary.stages import Working
from .registry import Defect


class DuringTheFinalCheckpoint(Triggering):
    """E07: a checkpoint is started while the job's last one is in progress."""

    def allowed(self, now: Situation) -> bool:
        is_allowed = isinstance(now.stage, Working) and now.under_way < now.concurrent
        self.reached = self.reached or (is_allowed and now.is_ending)
        return is_allowed


class LastTransactionStaysOpen(Finishing):
    """J05: the last snapshot opens one more transaction, which nobody closes."""

    def may_finish(self, unanswered: int, *, is_open: bool) -> bool:
        self.reached = self.reached or (is_open and not unanswered)
        return super().may_finish(unanswered, is_open=False)


class PartOfAnOperator(Finishing):
    """J06: a snapshot holds the states of an operator's running subtasks, not of those that have finished."""

    def kept(self, graph: JobGraph, finished: Sequence[TaskId]) -> list[TaskId]:
        self.reached = self.reached or bool(super().kept(graph, finished))
        return []


class NotifiedOnce(Ending):
    """J07: a task may finish once it is notified of the final checkpoint, and the notification is sent only once."""

    def steps(self) -> tuple[OrderStep, ...]:
        self.reached = True
        return (OrderStep.send,)


class StopsAtTheEnd(Ending):
    """J01: a stop with a savepoint and without drain is handled as the end of the input."""

    def ends_input(self, ending: JobEnd) -> bool:
        self.reached = self.reached or ending is JobEnd.STOP
        return True


class DrainsNothing(Ending):
    """J02: a drain is handled as a stop without drain: the input does not end."""

    def ends_input(self, ending: JobEnd) -> bool:
        self.reached = self.reached or ending is JobEnd.DRAIN
        return False


class NoTimeOut(Triggering):
    """J08, J25: the engine has no timeout for checkpoints."""

    def steps(self) -> tuple[TriggerStep, ...]:
        return (TriggerStep.trigger_tasks,)


class DeafToTheEnd(AwaitedBarriers):
    """J08: an alignment goes on waiting for the barrier of a channel that has ended."""

    def ended_channel_completes(self, delivered: Sequence[int], inputs: int) -> bool:
        self.reached = self.reached or super().ended_channel_completes(delivered, inputs)
        return False


class SilentWhenRestored(Finishing):
    """J10: a task that had finished before the restored snapshot sends nothing downstream: an attempt that has sent no
    end is taken for one that has sent all."""

    def unsent_ends(self, sent: Sequence[Element]) -> tuple[Element, ...]:
        self.reached = self.reached or not sent
        return super().unsent_ends(sent) if sent else ()


class SilentWhenFinished(Finishing):
    """J18: a task that has just finished accepts every message, and does not report that it has finished."""

    def answer(self, message: Control, finished: Finished) -> ToCoordinator | None:
        self.reached = self.reached or super().answer(message, finished) is not None
        return None


class StillWaitedFor(Finishing):
    """J25: a pending checkpoint goes on waiting for a task that has finished meanwhile."""

    def still_expected(self, expected: Sequence[TaskId], finished: TaskId) -> tuple[TaskId, ...]:
        self.reached = True
        return tuple(expected)


class AsksTheFinished(Triggering):
    """J26: every task is triggered, also those that have finished."""

    def plan(self, graph: JobGraph, finished: Sequence[TaskId]) -> CheckpointPlan:
        return msgspec.structs.replace(super().plan(graph, ()), finished=tuple(finished))


class DeclinesWhenFinished(Finishing):
    """J26: a finished task declines the checkpoint."""

    def answer(self, message: Control, finished: Finished) -> ToCoordinator | None:
        if not isinstance(message, Trigger):
            return super().answer(message, finished)
        self.reached = True
        return Decline(
            job=finished.job,
            attempt=finished.attempt,
            task=finished.task,
            checkpoint=message.checkpoint,
            cause=SnapshotNotWritten("it has finished"),
        )


class NotAfterASavepoint(Triggering):
    """J29: the newest snapshot is a savepoint, which is taken for the end of this run."""

    def allowed(self, now: Situation) -> bool:
        if now.latest is not None and now.latest.savepoint:
            self.reached = True
            return False
        return super().allowed(now)


class OnlyWhileAllRun(Triggering):
    """X03: no checkpoint is started once a task has finished."""

    def allowed(self, now: Situation) -> bool:
        if now.finished:
            self.reached = True
            return False
        return super().allowed(now)


DEFECTS = (
    Defect(
        id="E07",
        upstream="JET#868 (d52982f0e8)",
        title="a checkpoint starts during the job's last one",
        invariant="progress",
        replacements=lambda: {"triggering": DuringTheFinalCheckpoint()},
    ),
    Defect(
        id="J01",
        upstream="FLINK-21132",
        title="stop-with-savepoint without drain ends the input",
        invariant="drain",
        replacements=lambda: {"ending": StopsAtTheEnd()},
    ),
    Defect(
        id="J02",
        upstream="FLINK-21453",
        title="stop-with-savepoint with drain does not end the input",
        invariant="drain",
        replacements=lambda: {"ending": DrainsNothing()},
    ),
    Defect(
        id="J05",
        upstream="FLINK-23473 / 24065",
        title="a sink opens a new transaction after its last snapshot",
        invariant="no-leaks",
        replacements=lambda: {"finishing": LastTransactionStaysOpen()},
    ),
    Defect(
        id="J06",
        upstream="FLINK-21080",
        title="the states of finished subtasks are missing from a snapshot",
        invariant="consistent-cut",
        replacements=lambda: {"finishing": PartOfAnOperator()},
    ),
    Defect(
        id="J07",
        upstream="FLINK-21080 (comment)",
        title="the notification of the final checkpoint is sent only once, and may be lost",
        invariant="progress",
        replacements=lambda: {"ending": NotifiedOnce()},
    ),
    Defect(
        id="J08",
        upstream="FLINK-21086",
        title="alignment waits for a channel that has ended",
        invariant="progress",
        replacements=lambda: {"awaited_barriers": DeafToTheEnd(), "triggering": NoTimeOut()},
    ),
    Defect(
        id="J10",
        upstream="FLINK-23708 / FLINK-23698",
        title="a task that had finished sends nothing downstream after a restore",
        invariant="progress",
        replacements=lambda: {"finishing": SilentWhenRestored()},
    ),
    Defect(
        id="J18",
        upstream="FLINK-23741 / FLINK-21246 / FLINK-33186",
        title="a task that has just finished accepts a trigger",
        invariant="progress",
        replacements=lambda: {"finishing": SilentWhenFinished()},
    ),
    Defect(
        id="J25",
        upstream="JET#1101 (b5db1c10c5) / #508",
        title="a pending checkpoint waits for a task that has finished meanwhile",
        invariant="progress",
        replacements=lambda: {"finishing": StillWaitedFor(), "triggering": NoTimeOut()},
    ),
    Defect(
        id="J26",
        upstream="JET#1397",
        title="a finished task is triggered, and declines the checkpoint",
        invariant="progress",
        replacements=lambda: {"triggering": AsksTheFinished(), "finishing": DeclinesWhenFinished()},
    ),
    Defect(
        id="J29",
        upstream="SEATUNNEL#4985 / PR#5051",
        title="no checkpoint is taken after a restore from a savepoint",
        invariant="progress",
        replacements=lambda: {"triggering": NotAfterASavepoint()},
    ),
    Defect(
        id="X03",
        upstream="FLINK-2491",
        title="no checkpoint is taken once a task has finished",
        invariant="progress",
        replacements=lambda: {"triggering": OnlyWhileAllRun()},
    ),
)
