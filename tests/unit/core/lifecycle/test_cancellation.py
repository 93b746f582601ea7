"""What is aborted with the tasks that are lost, and what is not."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.lifecycle.cancellation import Cancellation
from cutproof.reference_impl.core.lifecycle.commands import Commands
from cutproof.reference_impl.core.protocol.checkpoints import PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.causes import AnyCause, Killed
from cutproof.reference_impl.core.vocabulary.effects import Effect, Return, SendToTask
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Cancel
from unit.core.coordinator_rig import GRAPH, OP, SINK, SOURCE, TASKS, attempts_up_to
from unit.core.neighbours import Told, neighbour

CAUSE = Killed()


class Job:
    """In its third attempt a savepoint is pending, for which a user waits."""

    def __init__(self) -> None:
        self.under_way, self.failures_forgotten = UnderWay(), 0
        checkpoint = CheckpointId(6)
        self.under_way.pending[checkpoint] = PendingCheckpoint(
            checkpoint=checkpoint, attempt=AttemptId(3), expected=TASKS, command=9
        )
        self.attempts = attempts_up_to(3)
        job: Any = self
        self.cancellation = Cancellation(
            1, GRAPH, attempts=self.attempts, checkpoints=job, failures=job, commands=Commands(self.under_way)
        )

    # it stands in for its checkpoints, which forget the pending one, and for its failure manager

    def abort_with_attempt(self, cause: AnyCause) -> list[Effect]:
        self.under_way.pending.clear()
        return neighbour("checkpoints").abort_with_attempt(cause)

    def abort_all(self, cause: AnyCause) -> list[Effect]:
        self.under_way.pending.clear()
        return neighbour("checkpoints").abort_all(cause)

    def attempt_over(self) -> None:
        self.failures_forgotten += 1


def cancels(*tasks: TaskId, attempt: int = 3) -> list[SendToTask]:
    return [SendToTask(task, Cancel(job=1, attempt=AttemptId(attempt))) for task in tasks]


def test_with_an_attempt_its_checkpoints_are_aborted_its_tasks_cancelled_and_commands_refused() -> None:
    job = Job()
    assert job.cancellation.end_attempt(CAUSE) == [
        Told("checkpoints.abort_with_attempt", (CAUSE,)),
        *cancels(*TASKS),
        Return(9, cause=CAUSE),
    ]
    assert job.failures_forgotten == 1, "the next attempt counts failed checkpoints anew"


def test_users_hear_first_that_the_job_is_closed() -> None:
    job = Job()
    assert job.cancellation.end_last_attempt(CAUSE) == [
        Return(9, cause=CAUSE),
        Told("checkpoints.abort_with_attempt", (CAUSE,)),
        *cancels(*TASKS),
    ]


def test_with_a_region_pending_checkpoints_are_aborted_at_all_tasks_and_only_its_own_are_cancelled() -> None:
    job = Job()
    assert job.cancellation.end_region((OP, SINK), CAUSE) == [
        Told("checkpoints.abort_all", (CAUSE,)),
        *cancels(OP, SINK),
        Return(9, cause=CAUSE),
    ]
    assert job.failures_forgotten == 0, "the attempt goes on"


def test_tasks_are_cancelled_each_under_its_own_attempt_and_nothing_else_is_done() -> None:
    job = Job()
    job.attempts.begin(survivors=[SOURCE])
    assert job.cancellation.cancel_all() == [*cancels(SOURCE), *cancels(OP, SINK, attempt=4)]
    assert job.under_way.commands == [9]
