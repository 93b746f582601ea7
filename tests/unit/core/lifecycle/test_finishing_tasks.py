"""The orders to finish: to whom they go, on which checkpoint they rest, and that they are repeated (FIN-1, FIN-3)."""

from __future__ import annotations

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.finishing_tasks import FinishingTasks
from cutproof.reference_impl.core.lifecycle.job_life import JobLife
from cutproof.reference_impl.core.lifecycle.task_ends import TaskEnds
from cutproof.reference_impl.core.protocol.checkpoints import PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.causes import Killed
from cutproof.reference_impl.core.vocabulary.effects import Effect, SendToTask, SetTimer
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Terminate
from cutproof.reference_impl.core.vocabulary.stages import Deploying, Restarting, Saving, Terminating, Working
from cutproof.reference_impl.core.vocabulary.timeouts import RetryTerminate, RetryTerminateTasks
from unit.core.coordinator_rig import GRAPH, OP, SINK, SOURCE, TASKS, attempts_up_to
from unit.core.neighbours import Told, neighbour

RETRY_US = 700
REMINDER = SetTimer(RetryTerminateTasks(), RETRY_US)


class Job:
    """It runs in its second attempt; no task has finished."""

    def __init__(self) -> None:
        self.under_way, self.ends, self.life = UnderWay(), TaskEnds(GRAPH), JobLife()
        self.attempts = attempts_up_to(2)
        for stage in (Saving(None), Deploying(None, TASKS), Working()):
            self.life.enter(stage)
        self.finishing = FinishingTasks(
            1,
            Config(retry_us=RETRY_US),
            Parts().ending,
            attempts=self.attempts,
            under_way=self.under_way,
            ends=self.ends,
            life=self.life,
            ending=neighbour("ending"),
        )

    def complete(self, checkpoint: int, *ended: TaskId) -> list[Effect]:
        """A checkpoint is complete that these tasks acknowledged after all their input."""
        return self.finishing.order(pending(checkpoint, ended=ended))

    def finished(self, task: TaskId) -> None:
        self.ends.reported(task)
        self.ends.count_next_finished()

    def again(self) -> list[Effect]:
        return self.finishing.order_again(RetryTerminateTasks())


def pending(checkpoint: int, *, ended: tuple[TaskId, ...] = (), ending: JobEnd | None = None) -> PendingCheckpoint:
    number, attempt = CheckpointId(checkpoint), AttemptId(2)
    return PendingCheckpoint(checkpoint=number, attempt=attempt, expected=TASKS, ended=ended, ending=ending)


def order(task: TaskId, checkpoint: int | None, attempt: int = 2) -> SendToTask:
    return SendToTask(
        task,
        Terminate(
            job=1, attempt=AttemptId(attempt), checkpoint=None if checkpoint is None else CheckpointId(checkpoint)
        ),
    )


def test_the_tasks_whose_input_ended_before_a_complete_checkpoint_are_ordered_to_finish() -> None:
    assert Job().complete(4, SOURCE, OP) == [order(SOURCE, 4), order(OP, 4), REMINDER]


def test_nobody_is_ordered_when_no_input_has_ended() -> None:
    assert Job().complete(4) == []


def test_a_task_is_ordered_once_and_one_reminder_serves_all() -> None:
    job = Job()
    job.complete(4, SOURCE)
    assert job.complete(5, SOURCE, OP) == [order(OP, 5)]
    assert job.complete(6, SOURCE, OP) == []


def test_the_reminder_begins_anew_once_all_that_were_ordered_have_finished() -> None:
    job = Job()
    job.complete(4, SOURCE)
    job.finished(SOURCE)
    assert job.complete(5, SOURCE, OP) == [order(OP, 5), REMINDER]


def test_nobody_is_ordered_one_by_one_while_the_job_is_about_to_end() -> None:
    job = Job()
    job.under_way.pending[CheckpointId(5)] = pending(5, ending=JobEnd.STOP)
    assert job.complete(4, SOURCE) == []
    job.under_way.pending.clear()
    assert job.complete(6, SOURCE) == [order(SOURCE, 6), REMINDER], "the stop has failed"


def test_orders_are_repeated_to_those_that_have_not_reported_each_with_its_own_checkpoint() -> None:
    job = Job()
    assert job.again() == []
    job.complete(4, SOURCE)
    job.complete(5, OP)
    job.finished(SOURCE)
    job.complete(6, OP, SINK)
    assert job.again() == [order(OP, 5), order(SINK, 6), REMINDER]


def test_orders_are_not_repeated_while_all_tasks_restart() -> None:
    job = Job()
    job.complete(4, SOURCE)
    job.life.enter(Restarting(Killed()))
    assert job.again() == []


def test_a_task_that_did_not_restart_is_ordered_under_its_own_attempt() -> None:
    job = Job()
    job.attempts.begin(survivors=[SOURCE])
    assert job.complete(4, SOURCE, OP) == [order(SOURCE, 4, attempt=2), order(OP, 4, attempt=3), REMINDER]


def test_those_leave_that_were_ordered_and_those_that_count_as_finished() -> None:
    job = Job()
    job.complete(4, SOURCE, OP)
    assert job.finishing.ordered_or_finished == (SOURCE, OP)
    job.finished(SOURCE)
    assert job.finishing.ordered_or_finished == (OP, SOURCE)
    job.ends.end_input(SINK)
    assert SINK not in job.finishing.ordered_or_finished


# -- all tasks, and with them the job ------------------------------------------------------------

REMINDER_TO_ALL = SetTimer(RetryTerminate(), RETRY_US)


def test_all_tasks_that_have_not_finished_are_ordered_to_when_the_job_ends() -> None:
    job = Job()
    job.finished(SOURCE)
    assert job.finishing.terminate(CheckpointId(8), JobEnd.DRAIN) == [
        order(OP, 8),
        order(SINK, 8),
        REMINDER_TO_ALL,
        Told("ending.end_if_settled"),
    ]
    assert job.life.stage == Terminating(CheckpointId(8), JobEnd.DRAIN, (OP, SINK))


def test_without_a_checkpoint_they_finish_on_none() -> None:
    assert Job().finishing.terminate(None, JobEnd.FINISH)[:3] == [order(task, None) for task in TASKS]


def test_the_end_is_looked_at_again_with_each_task_that_has_finished() -> None:
    job = Job()
    job.finishing.terminate(CheckpointId(8), JobEnd.FINISH)
    for task, left in [(OP, (SOURCE, SINK)), (OP, (SOURCE, SINK)), (SINK, (SOURCE,)), (SOURCE, ())]:
        assert job.finishing.finished_with_all(task) == [Told("ending.end_if_settled")]
        assert job.life.stage == Terminating(CheckpointId(8), JobEnd.FINISH, left)


def test_those_that_have_not_finished_are_ordered_again() -> None:
    job = Job()
    job.finishing.terminate(CheckpointId(8), JobEnd.FINISH)
    job.finishing.finished_with_all(OP)
    assert job.finishing.order_all(RetryTerminate()) == [order(SOURCE, 8), order(SINK, 8), REMINDER_TO_ALL]


def test_a_job_that_does_not_end_orders_nobody_and_hears_of_no_end() -> None:
    job = Job()
    assert job.finishing.order_all(RetryTerminate()) == []
    assert job.finishing.finished_with_all(SOURCE) == []
