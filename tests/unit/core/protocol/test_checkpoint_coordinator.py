"""When checkpoints are taken, and what follows from each: their coordinator alone (ABS-1, ABS-3, ABS-4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.task_ends import TaskEnds
from cutproof.reference_impl.core.protocol.checkpoint_coordinator import CheckpointCoordinator
from cutproof.reference_impl.core.protocol.checkpoints import PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.causes import (
    AnyCause,
    CheckpointsFailed,
    Declined,
    Killed,
    NotStored,
    SnapshotNotWritten,
    StopFailed,
    TimedOut,
)
from cutproof.reference_impl.core.vocabulary.effects import Effect, Return, SetTimer
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import RecordStored, StoreFailed
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Ack, Complete, Decline
from cutproof.reference_impl.core.vocabulary.stages import PartialFailover, Restarting, Stage, Working
from cutproof.reference_impl.core.vocabulary.timeouts import CheckpointInterval, CheckpointTimeout, MinimumPause
from unit.core.coordinator_rig import GRAPH, OP, SINK, SOURCE, TASKS, attempts_up_to, handle
from unit.core.neighbours import Told, life_at

INTERVAL = SetTimer(CheckpointInterval(), 500)
NUMBER = CheckpointId(4)
STORED, CLEANED, GONE_ON = Told("stored"), Told("aborted"), Told("gone on")


class Job:
    """It is in its second attempt.  It stands in for those whom its coordinator of checkpoints asks: checkpoints,
    records, failures and finishing tasks."""

    def __init__(
        self, stage: Stage | None = None, *, put_off: Callable[[CheckpointId], None] | None = None, **settings: Any
    ) -> None:
        self.under_way, self.ends = UnderWay(), TaskEnds(GRAPH)
        self.too_many, self.failed_so_far = False, list[AnyCause]()
        self.latest, self.oldest, self.logs_from = None, CheckpointId(3), None
        self.ordered_or_finished: tuple[TaskId, ...] = ()
        self.attempts = attempts_up_to(2)
        job: Any = self
        self.machine = CheckpointCoordinator(
            1,
            TASKS,
            Config(**{"checkpoint_interval_us": 500, **settings}),
            Parts(),
            attempts=self.attempts,
            checkpoints=job,
            under_way=self.under_way,
            completed=job,
            failures=job,
            ends=self.ends,
            finishing=job,
            life=life_at(stage or Working()),
            records=job,
            fail_over=lambda cause: [Told("fail over", (cause,))],
            go_on_after_storing=lambda: [GONE_ON],
            put_off=put_off,
        )

    def pending(self, **more: Any) -> PendingCheckpoint:
        fields = {"checkpoint": NUMBER, "attempt": AttemptId(2), "expected": TASKS, **more}
        pending = PendingCheckpoint(**fields)
        self.under_way.pending[pending.checkpoint] = pending
        return pending

    def interval_over(self) -> list[Effect]:
        return self.machine.on_interval_over(CheckpointInterval())

    def all_input_ends(self) -> None:
        for task in TASKS:
            self.ends.end_input(task)

    # what it stands in for

    def create(self, **how: Any) -> PendingCheckpoint:
        self.created = how
        return self.pending()

    def trigger(self, pending: PendingCheckpoint) -> list[Effect]:
        return [Told("triggered", (pending.checkpoint,))]

    def acknowledge(self, ack: Ack) -> list[Effect]:
        return [Told("acknowledged", (ack.task,))]

    def complete(self, checkpoint: CheckpointId) -> tuple[PendingCheckpoint, list[Effect]]:
        return self.under_way.pending.pop(checkpoint), [STORED]

    def abort_not_stored(self, checkpoint: CheckpointId, cause: AnyCause) -> tuple[PendingCheckpoint, list[Effect]]:
        return self.under_way.pending.pop(checkpoint), [CLEANED]

    def abort(self, pending: PendingCheckpoint, cause: AnyCause) -> list[Effect]:
        return [CLEANED]

    def save_then_trigger(self, checkpoint: CheckpointId) -> list[Effect]:
        return [Told("saved", (checkpoint,))]

    def save_had_snapshot_before(self, effects: list[Effect]) -> list[Effect]:
        return [Told("saved"), *effects]

    def completed(self) -> None:
        self.failed_so_far.clear()

    def failed(self, checkpoint: CheckpointId, cause: AnyCause) -> bool:
        self.failed_so_far.append(cause)
        return self.too_many

    def order(self, complete: PendingCheckpoint) -> list[Effect]:
        return [Told("ordered", (complete.checkpoint,))]

    def terminate(self, checkpoint: CheckpointId | None, ending: JobEnd) -> list[Effect]:
        return [Told("terminate", (checkpoint, ending))]


SAVED = Told("saved", (NUMBER,))
A_PART_RESTARTS = PartialFailover((OP,), Killed())
PLAIN = {"guarantee": "at-most-once", "sink": "plain"}


# -- a checkpoint is created and triggered -------------------------------------------------------------


def test_each_interval_creates_a_checkpoint_whose_id_is_made_durable() -> None:
    job = Job()
    assert job.machine.on_all_running() == [INTERVAL]
    assert job.interval_over() == [SAVED, INTERVAL]
    assert job.created == {"savepoint": False, "ending": None, "command": None, "format_name": None}


@pytest.mark.parametrize(
    ("stage", "again"), [(Restarting(Killed()), []), (A_PART_RESTARTS, [INTERVAL])], ids=["all restart", "a part"]
)
def test_none_is_created_while_some_task_does_not_run(stage: Stage, again: list[Effect]) -> None:
    assert Job(stage).interval_over() == again


def test_none_is_created_beside_as_many_as_may_be_or_while_the_job_is_ending() -> None:
    job = Job(concurrent_checkpoints=2)
    job.pending()
    assert job.interval_over() == [SAVED, INTERVAL]
    job.pending(checkpoint=CheckpointId(5))
    assert job.interval_over() == [INTERVAL]
    job.under_way.pending.clear()
    job.pending(ending=JobEnd.STOP)
    assert job.interval_over() == [INTERVAL]


@pytest.mark.parametrize(("goes_on", "effects"), [(True, [SAVED, INTERVAL]), (False, [INTERVAL])])
def test_once_some_input_has_ended_it_depends_on_the_setting(goes_on: bool, effects: list[Effect]) -> None:
    job = Job(checkpoints_after_finish=goes_on)
    job.ends.end_input(SOURCE)
    assert job.machine.may_trigger_before_final is goes_on
    assert job.interval_over() == effects


def test_a_users_command_asks_for_a_savepoint() -> None:
    job = Job()
    assert job.machine.create_checkpoint(ending=JobEnd.DRAIN, command=0, format_name="native") == [SAVED]
    assert job.created == {"savepoint": True, "ending": JobEnd.DRAIN, "command": 0, "format_name": "native"}


def test_a_checkpoint_is_triggered_once_its_id_is_durable_unless_its_attempt_is_over() -> None:
    job = Job()
    assert job.machine.trigger_checkpoint(NUMBER) == [], "it was aborted"
    job.pending()
    assert job.machine.trigger_checkpoint(NUMBER) == [Told("triggered", (NUMBER,))]
    job.attempts.begin()
    assert job.machine.trigger_checkpoint(NUMBER) == []


def test_whoever_puts_checkpoints_off_triggers_them() -> None:
    waiting: list[CheckpointId] = []
    job = Job(put_off=waiting.append)
    job.pending()
    assert job.machine.trigger_checkpoint(NUMBER) == []
    assert waiting == [NUMBER]


def test_what_an_acknowledgement_completes_may_have_to_wait_for_the_jobs_record() -> None:
    ack = Ack(job=1, attempt=AttemptId(2), task=OP, checkpoint=NUMBER, handle=handle(4, OP))
    assert Job().machine.on_ack(ack) == [Told("saved"), Told("acknowledged", (OP,))]


# -- it is complete ------------------------------------------------------------------------------------


def news(*tasks: TaskId) -> list[Effect]:
    complete = Complete(job=1, attempt=AttemptId(2), checkpoint=NUMBER, oldest=CheckpointId(3), logs_from=None)
    return [attempts_up_to(2).message_to(task, complete) for task in tasks]


def stored(job: Job, **pending: Any) -> list[Effect]:
    job.pending(**pending)
    return job.machine.on_record_stored(RecordStored(NUMBER))


def test_all_tasks_hear_that_a_checkpoint_is_complete_and_some_are_ordered_to_finish() -> None:
    assert stored(Job()) == [STORED, *news(*TASKS), Told("ordered", (NUMBER,)), GONE_ON]


def test_those_that_were_ordered_to_finish_are_not_notified() -> None:
    job = Job()
    job.ordered_or_finished = (SOURCE,)
    assert stored(job)[1:3] == news(OP, SINK)


def test_the_failures_in_a_row_are_over_with_it() -> None:
    job = Job()
    job.failed_so_far.append(TimedOut())
    stored(job)
    assert job.failed_so_far == []


def test_a_user_is_answered_with_the_savepoint_and_one_without_side_effects_commits_nothing() -> None:
    assert stored(Job(), command=9, savepoint=True)[:2] == [STORED, Return(9, NUMBER)]
    assert stored(Job(), command=9, savepoint=True, is_separate=True) == [STORED, Return(9, NUMBER), GONE_ON]


def test_a_checkpoint_that_ends_the_job_lets_all_tasks_finish() -> None:
    assert stored(Job(), ending=JobEnd.STOP, command=9) == [
        STORED,
        Return(9, NUMBER),
        Told("terminate", (NUMBER, JobEnd.STOP)),
    ]


@pytest.mark.parametrize(("stage", "attempt"), [(Restarting(Killed()), 2), (Working(), 1)])
def test_nobody_hears_of_a_checkpoint_of_an_attempt_that_is_over(stage: Stage, attempt: int) -> None:
    for ending in (None, JobEnd.STOP):
        assert stored(Job(stage), attempt=AttemptId(attempt), ending=ending) == [STORED, GONE_ON]


def test_the_survivors_of_a_region_hear_of_it() -> None:
    assert stored(Job(A_PART_RESTARTS))[1:4] == news(*TASKS)


def test_the_next_waits_for_the_minimum_pause() -> None:
    job = Job(minimum_pause_us=70)
    assert stored(job)[-2:] == [SetTimer(MinimumPause(), 70), GONE_ON]
    assert job.interval_over() == [INTERVAL]
    assert job.machine.on_pause_over(MinimumPause()) == []
    assert job.interval_over() == [SAVED, INTERVAL]


# -- it is aborted ------------------------------------------------------------------------------------

DECLINE = Decline(job=1, attempt=AttemptId(2), task=OP, checkpoint=NUMBER, cause=SnapshotNotWritten("busy"))


def test_a_checkpoint_that_is_declined_or_times_out_is_aborted_and_counted() -> None:
    job = Job()
    assert job.machine.on_decline(DECLINE) == job.machine.on_checkpoint_timeout(CheckpointTimeout(NUMBER)) == []
    job.pending(command=9)
    declined = Declined(OP, SnapshotNotWritten("busy"))
    assert job.machine.on_decline(DECLINE) == [CLEANED, Return(9, cause=declined)]
    job.pending()
    assert job.machine.on_checkpoint_timeout(CheckpointTimeout(NUMBER)) == [CLEANED]
    assert job.failed_so_far == [declined, TimedOut()]


def test_one_whose_record_was_not_stored_is_aborted_and_what_waited_for_it_goes_on_last() -> None:
    job = Job()
    job.pending(command=9)
    failed = NotStored("disk full")
    assert job.machine.on_record_not_stored(StoreFailed(NUMBER, "disk full")) == [
        CLEANED,
        Return(9, cause=failed),
        GONE_ON,
    ]
    assert job.failed_so_far == [failed]


def test_too_many_failures_fail_the_attempt() -> None:
    job = Job()
    job.too_many = True
    job.pending()
    cause = CheckpointsFailed(TimedOut())
    assert job.machine.on_checkpoint_timeout(CheckpointTimeout(NUMBER)) == [CLEANED, Told("fail over", (cause,))]


@pytest.mark.parametrize(
    ("ending", "fails"), [(JobEnd.STOP, [Told("fail over", (StopFailed(TimedOut()),))]), (JobEnd.FINISH, [])]
)
def test_a_stop_that_failed_fails_the_attempt_and_the_final_checkpoint_is_taken_again(
    ending: JobEnd, fails: list[Effect]
) -> None:
    job = Job()
    job.pending(ending=ending)
    assert job.machine.on_checkpoint_timeout(CheckpointTimeout(NUMBER)) == [CLEANED, *fails]


@pytest.mark.parametrize(("stage", "attempt"), [(A_PART_RESTARTS, 2), (Working(), 1)])
def test_a_failure_while_a_part_restarts_or_of_an_older_attempt_is_not_counted(stage: Stage, attempt: int) -> None:
    job = Job(stage)
    job.too_many = True
    job.pending(attempt=AttemptId(attempt))
    assert job.machine.on_checkpoint_timeout(CheckpointTimeout(NUMBER)) == [CLEANED]
    assert job.failed_so_far == []


# -- the final checkpoint --------------------------------------------------------------------------------


def test_once_all_input_has_ended_the_final_checkpoint_is_taken_once() -> None:
    job = Job()
    assert job.machine.finish_if_all_ended() == []
    job.all_input_ends()
    assert job.machine.on_all_running() == [SAVED, INTERVAL]
    assert job.created["ending"] is JobEnd.FINISH
    job.pending(ending=JobEnd.FINISH)
    assert job.machine.finish_if_all_ended() == []
    assert job.interval_over() == [INTERVAL]
    job.under_way.pending.clear()
    assert job.interval_over() == [SAVED, INTERVAL], "it was aborted"


def test_it_is_not_taken_while_some_task_does_not_run() -> None:
    job = Job(A_PART_RESTARTS)
    job.all_input_ends()
    assert job.machine.finish_if_all_ended() == []
    assert job.interval_over() == [INTERVAL]


@pytest.mark.parametrize(("settings", "timer"), [(PLAIN, []), ({"finishing": "commit-at-finish"}, [INTERVAL])])
def test_a_job_that_takes_none_at_the_end_finishes_at_once(settings: dict[str, str], timer: list[Effect]) -> None:
    job = Job(**settings)
    job.all_input_ends()
    assert job.machine.on_all_running() == [Told("terminate", (None, JobEnd.FINISH)), *timer]
