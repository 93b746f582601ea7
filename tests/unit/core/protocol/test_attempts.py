"""Attempts of the dataflow as the coordinator leads them: deployed, running, lost, started again (ABS-6)."""

from __future__ import annotations

from typing import get_args

import pytest

from cutproof.reference_impl.core.protocol.attempts import Attempts
from cutproof.reference_impl.core.vocabulary.causes import (
    AttemptFailed,
    EngineRaised,
    Killed,
    NotUpInTime,
    SnapshotsLost,
    Submitted,
    TaskFailed,
)
from cutproof.reference_impl.core.vocabulary.effects import (
    Discard,
    SaveJob,
    SendToTask,
    SetTimer,
    Sweep,
)
from cutproof.reference_impl.core.vocabulary.ends import JobEnd, Status
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.events import Closure, JobRecord
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Cancel, Deploy, Running
from cutproof.reference_impl.core.vocabulary.stages import NAMES, Stage, StageName, Working
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.status_changes import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
)
from cutproof.reference_impl.core.vocabulary.timeouts import (
    CheckpointInterval,
    CheckpointTimeout,
    DeployTimeout,
    RestartDelay,
)
from unit.core.coordinator_rig import (
    OP,
    SINK,
    SOURCE,
    TASKS,
    CoordinatorRig,
    addressed,
    cancels,
    changes,
    complete_snapshot,
    deployed,
    discarded,
    end,
    handle,
    handles,
    of,
)

# -- numbers -----------------------------------------------------------------------------------------------------


def test_before_the_first_attempt_there_is_no_number_and_nobody_to_cancel() -> None:
    attempts = Attempts(AttemptId(5), channels_stay=True)
    assert not attempts.has_begun
    for ask in (lambda: attempts.newest, lambda: attempts.newest_full, lambda: attempts.number_of(TASKS[0])):
        with pytest.raises(ProtocolViolated, match="no attempt of the job has begun"):
            ask()
    attempts.begin()
    assert (attempts.newest, attempts.channels_of(TASKS[0])) == (5, None), "the channels are created when all start"
    assert (attempts.all_deployed(), attempts.channels_of(TASKS[0])) == (5, 5)


def test_a_coordinator_that_takes_over_counts_on() -> None:
    attempts = Attempts(AttemptId(1), channels_stay=False)
    attempts.take_over(AttemptId(7))
    assert (attempts.has_begun, attempts.newest) == (True, 7)
    attempts.begin()
    assert attempts.newest == 8


def test_a_job_that_fails_before_its_first_attempt_cancels_no_task() -> None:
    job = CoordinatorRig(snapshots_in_memory=True, coordinator={"had_snapshot": True})
    assert (job.machine.newest_attempt, job.machine.attempt_of(TASKS[0])) == (None, None)
    (save,) = job.start()
    assert isinstance(save, SaveJob)
    assert save.record.closure == Closure(Status.FAILED, SnapshotsLost())


# -- coming up ---------------------------------------------------------------------------------------------------


def test_an_attempt_is_deployed_only_when_its_number_is_durable() -> None:
    job = CoordinatorRig()
    (save,) = job.start()
    assert save == SaveJob(JobRecord(job=1, attempt=1, next_checkpoint=1, version=1))
    assert job.saved() == [
        AttemptStarted(1, None, Submitted()),
        *(SendToTask(task, Deploy(job=1, attempt=1)) for task in TASKS),
        SetTimer(DeployTimeout(AttemptId(1)), 100_000),
    ]


def test_it_runs_when_every_task_reports_it() -> None:
    job = CoordinatorRig()
    job.start()
    job.saved()
    assert job.running(SOURCE, SINK, SINK) == []
    assert not isinstance(job.machine.stage, Working)
    assert job.running(OP) == [AttemptRunning(1), SetTimer(CheckpointInterval(), 10_000)]
    assert isinstance(job.machine.stage, Working)
    assert job.running(OP) == []


def test_tasks_that_do_not_come_up_in_time_are_named() -> None:
    job = CoordinatorRig()
    job.start()
    job.saved()
    job.running(OP)
    effects = job.timer(DeployTimeout(AttemptId(1)))
    assert effects == [*cancels(1), SetTimer(RestartDelay(), 1_000)]
    assert of(AttemptStarted, job.again())[0].cause == NotUpInTime((SOURCE, SINK))
    assert job.timer(DeployTimeout(AttemptId(1))) == [], "the timer of an older attempt"


def test_the_deploy_timer_means_nothing_once_it_runs() -> None:
    assert CoordinatorRig().up().timer(DeployTimeout(AttemptId(1))) == []


def test_a_resumed_job_starts_from_what_it_is_given() -> None:
    """The newest of it, whatever its kind; only this job's own endings suspend its sources."""
    initial = (complete_snapshot(3, savepoint=True, ending=JobEnd.STOP, job=1), complete_snapshot(2))
    job = CoordinatorRig(job=2, coordinator={"first_attempt": 5, "first_checkpoint": 12, "initial": initial})
    sweep, save = job.start()
    assert isinstance(sweep, Sweep)
    assert sorted(sweep.keep) == sorted([*handles(2), *handles(3)]), "what the job before left behind is nobody's now"
    assert save == SaveJob(JobRecord(job=2, attempt=5, next_checkpoint=12, version=1, had_snapshot=True))
    orders = deployed(job.saved())
    assert orders[OP] == Deploy(job=2, attempt=5, checkpoint=3, handle=handle(3, OP))
    job.running()
    assert changes(job.trigger())[0] == (CheckpointTriggered, 12)


# -- failing and starting again ----------------------------------------------------------------------------------


def test_a_lost_task_restarts_the_whole_dataflow_from_the_newest_checkpoint() -> None:
    job = CoordinatorRig().up()
    job.checkpoint(1)
    job.savepoint(2)
    assert job.lose() == [*cancels(1), SetTimer(RestartDelay(), 1_000)]
    (save,) = job.timer(RestartDelay())
    assert isinstance(save, SaveJob)
    assert save.record.attempt == 2
    change, *orders, timer = job.saved()
    assert change == AttemptStarted(2, 2, TaskFailed(OP, Killed()))
    assert orders == [
        SendToTask(task, Deploy(job=1, attempt=2, checkpoint=2, handle=handle(2, task))) for task in TASKS
    ]
    assert timer == SetTimer(DeployTimeout(AttemptId(2)), 100_000)


def test_states_from_memory_travel_with_the_deployment() -> None:
    job = CoordinatorRig(snapshots_in_memory=True).up()
    job.trigger()
    job.ack(1, state=TaskState(positions={0: 7}))
    job.saved()
    job.stored(1)
    job.lose()
    assert deployed(job.again())[SOURCE] == Deploy(job=1, attempt=2, checkpoint=1, state=TaskState(positions={0: 7}))


def test_what_is_pending_is_aborted_with_the_attempt() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1, OP)
    assert job.lose() == [
        CheckpointAborted(1, 1, AttemptFailed(TaskFailed(OP, Killed())), failed=False),
        Discard((handle(1, OP),)),
        *cancels(1),
        SetTimer(RestartDelay(), 1_000),
    ]
    assert job.timer(CheckpointTimeout(CheckpointId(1))) == []
    job.again()
    job.running()
    assert discarded(job.checkpoint(2)) == [handle(1, SOURCE), handle(1, SINK)]


def test_a_failure_counts_once() -> None:
    job = CoordinatorRig().up()
    job.lose()
    assert job.lose(SINK) == []
    job.again()
    assert job.lose(attempt=1) == [], "of the attempt before"
    assert addressed(Cancel, job.lose()) == list(TASKS), "while the next one comes up"


def test_messages_of_an_older_attempt_change_nothing() -> None:
    job = CoordinatorRig().up()
    job.lose()
    job.again()
    assert [job.report(Running, task, attempt=1) for task in TASKS] == [[], [], []]
    assert not isinstance(job.machine.stage, Working)
    job.running()
    job.trigger()
    assert job.decline(1, attempt=1) == []


def test_a_restart_waits_for_a_record_that_is_being_stored() -> None:
    """It may be the newest complete checkpoint by the time that it is answered."""
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1)
    assert job.lose() == [*cancels(1), SetTimer(RestartDelay(), 1_000)]
    assert job.timer(RestartDelay()) == []
    (save,) = job.stored(1)
    assert isinstance(save, SaveJob)
    assert (AttemptStarted, 1) in changes(job.saved())


def test_a_restart_waits_for_its_delay_too() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1)
    job.lose()
    assert job.stored(1) == []
    assert (AttemptStarted, 1) in changes(job.again())


def test_a_restart_goes_on_when_the_record_could_not_be_stored() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1)
    job.lose()
    job.timer(RestartDelay())
    effects = job.store_fails(1)
    assert of(SaveJob, effects)
    assert (AttemptStarted, None) in changes(job.saved())


def test_the_book_of_a_failed_attempt_leaves_no_room_taken() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.lose()
    job.again()
    job.running()
    assert changes(job.trigger())[0] == (CheckpointTriggered, 2)


def closed(record: JobRecord) -> tuple[Status, str]:
    """How and why the job is closed, as the record has it."""
    assert record.closure is not None
    return record.closure.status, str(record.closure.cause)


def test_restarts_are_used_up_in_the_end() -> None:
    job = CoordinatorRig(restart_attempts=1, sink="plain").up()
    job.lose()
    job.again()
    job.running()
    effects = job.lose(SINK, cause=EngineRaised("ValueError: no"))
    assert addressed(Cancel, effects) == [*TASKS, *TASKS]
    (save,) = of(SaveJob, effects)
    wanted = "1 restarts are used up; the last cause was sink-0: the engine raised ValueError: no"
    assert closed(save.record) == (Status.FAILED, wanted)
    assert end(job.saved()) == ("failed", None, wanted)
    assert job.lose() == []
    assert job.timer(RestartDelay()) == []


@pytest.mark.parametrize(
    ("held", "missing"), [((SOURCE, SINK), "op-0"), ((OP,), "source-0, sink-0")], ids=["one", "several"]
)
def test_a_snapshot_that_lacks_a_state_ends_the_job_by_name(held: tuple[TaskId, ...], missing: str) -> None:
    """No task starts from nothing where the others have a past."""
    partial = complete_snapshot(3, handles={task: handle(3, task) for task in held})
    job = CoordinatorRig(sink="plain", coordinator={"initial": (partial,)})
    effects = job.start()
    assert deployed(effects) == {}
    (save,) = of(SaveJob, effects)
    assert closed(save.record) == (Status.FAILED, f"checkpoint 3 holds no state of {missing}")
    effects = job.saved()
    assert deployed(effects) == {}
    assert end(effects) == ("failed", 3, f"checkpoint 3 holds no state of {missing}")


def test_every_stage_has_a_name_of_its_own() -> None:
    assert set(NAMES) == set(get_args(Stage))
    assert sorted(NAMES.values(), key=str) == sorted(StageName, key=str)
