"""What users ask of a job: savepoint, stop with and without drain, cancel; each is answered always."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cutproof.reference_impl.core.vocabulary.causes import JobClosed, StopFailed, TimedOut
from cutproof.reference_impl.core.vocabulary.effects import Discard, EndJob, Return, SaveJob
from cutproof.reference_impl.core.vocabulary.ends import JobEnd, Status
from cutproof.reference_impl.core.vocabulary.events import JobRecord
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Cancel, Complete, Terminate, Trigger
from cutproof.reference_impl.core.vocabulary.status_changes import (
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
)
from cutproof.reference_impl.core.vocabulary.timeouts import (
    CheckpointInterval,
    CheckpointTimeout,
    DeployTimeout,
    MinimumPause,
    RestartDelay,
    RetryFence,
    RetryListing,
    RetryTerminate,
)
from unit.core.coordinator_rig import (
    OP,
    SOURCE,
    TASKS,
    CoordinatorRig,
    addressed,
    answer,
    changes,
    complete_snapshot,
    end,
    of,
    sent_to_tasks,
    stored,
)


def test_a_savepoint_is_answered_when_it_is_complete() -> None:
    job = CoordinatorRig().up()
    assert [type(effect) for effect in job.command("savepoint")] == [SaveJob]
    effects = job.saved()
    assert effects[0] == CheckpointTriggered(1, 1, True)
    assert sent_to_tasks(Trigger, effects) == [(SOURCE, Trigger(job=1, attempt=1, checkpoint=1))]
    (snapshot,) = stored(job.ack(1))
    assert snapshot == complete_snapshot(1, savepoint=True)
    effects = job.stored(1)
    assert answer(effects) == (9, 1, "")
    assert addressed(Complete, effects) == list(TASKS), "it commits side effects as any other"


@pytest.mark.parametrize("kind", ["savepoint", "stop-with-savepoint"])
def test_a_savepoint_that_is_aborted_is_answered_with_the_reason(kind: str) -> None:
    job = CoordinatorRig().up()
    job.command(kind)
    job.saved()
    assert answer(job.decline(1)) == (9, None, "op-0 declined: no room")


@pytest.mark.parametrize("kind", ["savepoint", "stop-with-savepoint"])
def test_a_savepoint_with_files_is_refused_where_snapshots_are_in_memory(kind: str) -> None:
    """The state by key would be in files that nobody writes."""
    job = CoordinatorRig(snapshots_in_memory=True).up()
    refused = job.command(kind, format_name="native")
    assert answer(refused) == (9, None, "snapshots in the coordinator's memory have no files for the format native")
    assert len(refused) == 1
    assert [type(effect) for effect in job.command(kind, format_name="canonical")] == [SaveJob]


def test_a_savepoint_whose_record_cannot_be_stored_is_answered() -> None:
    job = CoordinatorRig().up()
    job.command("savepoint")
    job.saved()
    job.ack(1)
    assert answer(job.store_fails(1)) == (9, None, "disk full")


def test_a_failure_answers_the_savepoint_that_it_ends() -> None:
    job = CoordinatorRig().up()
    job.command("savepoint")
    assert answer(job.lose()) == (9, None, "the attempt failed: op-0: it was killed")


def test_a_savepoint_that_was_being_stored_when_its_attempt_failed_is_answered_by_the_store() -> None:
    job = CoordinatorRig().up()
    job.command("savepoint")
    job.saved()
    job.ack(1)
    assert of(Return, job.lose()) == []
    effects = job.stored(1)
    assert answer(effects) == (9, 1, "")
    assert not addressed(Complete, effects), "no task of it is there to be told"


@pytest.mark.parametrize(
    ("drain", "ending", "status"), [(False, JobEnd.STOP, "stopped"), (True, JobEnd.DRAIN, "drained")]
)
def test_stop_takes_a_savepoint_and_then_ends_the_job(drain: bool, ending: JobEnd, status: str) -> None:
    job = CoordinatorRig().up()
    job.command("stop-with-savepoint", drain=drain)
    assert sent_to_tasks(Trigger, job.saved()) == [(SOURCE, Trigger(job=1, attempt=1, checkpoint=1, ending=ending))]
    (snapshot,) = stored(job.ack(1))
    assert (snapshot.savepoint, snapshot.ending) == (True, ending)
    effects = job.stored(1)
    assert answer(effects) == (9, 1, "")
    assert sent_to_tasks(Terminate, effects) == [(task, Terminate(job=1, attempt=1, checkpoint=1)) for task in TASKS]
    assert end(job.finished()) == (status, 1, "")


def test_a_stop_that_fails_fails_the_attempt_over() -> None:
    """Its sources have stopped already: only a new attempt goes on reading."""
    job = CoordinatorRig().up()
    job.command("stop-with-savepoint")
    job.saved()
    effects = job.timer(CheckpointTimeout(CheckpointId(1)))
    assert answer(effects) == (9, None, "it timed out")
    assert addressed(Cancel, effects) == list(TASKS)
    (change,) = of(AttemptStarted, job.again())
    assert change.cause == StopFailed(TimedOut())
    job.running()
    assert answer(job.savepoint(2)) == (9, 2, "")


def test_input_that_ends_during_a_drain_takes_no_checkpoint_of_its_own() -> None:
    job = CoordinatorRig().up()
    job.command("stop-with-savepoint", drain=True)
    job.saved()
    assert job.ended() == []
    job.ack(1)
    assert addressed(Terminate, job.stored(1)) == list(TASKS)


def test_nothing_follows_a_stop() -> None:
    job = CoordinatorRig(concurrent_checkpoints=3).up()
    job.command("stop-with-savepoint")
    assert changes(job.timer(CheckpointInterval())) == []
    assert answer(job.command("savepoint", number=10)) == (10, None, "the job is ending already")
    job.saved()
    job.ack(1)
    assert answer(job.command("stop-with-savepoint", number=11)) == (11, None, "the job is ending already")
    job.stored(1)
    assert answer(job.command("savepoint", number=12)) == (12, None, "the job is ending already")
    job.finished()
    assert answer(job.command("savepoint", number=13)) == (13, None, "the job is ending already")


def test_a_checkpoint_under_way_does_not_hinder_a_stop() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.command("stop-with-savepoint")
    job.saved()
    job.ack(2)
    effects = job.stored(2)
    assert answer(effects) == (9, 2, "")
    assert (CheckpointAborted, 1) in changes(effects)


@pytest.mark.parametrize("kind", ["savepoint", "stop-with-savepoint"])
def test_a_request_while_the_job_comes_up_waits(kind: str) -> None:
    job = CoordinatorRig()
    job.start()
    assert job.command(kind) == []
    job.saved()
    effects = job.running()
    assert of(Return, effects) == []
    assert (CheckpointTriggered, 1) in changes(job.saved())
    job.ack(1)
    assert answer(job.stored(1)) == (9, 1, "")


def test_a_request_that_waits_is_made_once() -> None:
    job = CoordinatorRig()
    job.start()
    job.command("savepoint")
    job.saved()
    job.running()
    job.saved()
    job.lose()
    job.again()
    assert of(SaveJob, job.running()) == []


def test_a_request_while_what_is_durable_is_read_waits_too() -> None:
    job = CoordinatorRig()
    job.start(JobRecord(job=1, attempt=1, next_checkpoint=2, version=2))
    assert job.command("savepoint") == []
    job.listed()
    job.saved()
    job.running()
    assert (CheckpointTriggered, 2) in changes(job.saved())


def test_what_waits_when_the_job_ends_is_answered() -> None:
    job = CoordinatorRig(sink="plain")
    job.start()
    job.command("savepoint")
    job.command("cancel", number=10)
    job.saved()
    effects = job.saved()
    assert of(Return, effects) == [Return(10), Return(9, cause=JobClosed(Status.CANCELLED))]
    assert end(effects) == ("cancelled", None, "by its user")


def test_at_most_once_takes_no_savepoints() -> None:
    job = CoordinatorRig(guarantee="at-most-once", sink="plain").up()
    assert answer(job.command("savepoint")) == (9, None, "at-most-once takes no snapshots")


# -- cancel ------------------------------------------------------------------------------------------------------


def saving() -> CoordinatorRig:
    job = CoordinatorRig(sink="plain")
    job.start()
    return job


def deploying() -> CoordinatorRig:
    job = saving()
    job.saved()
    return job


def restarting() -> CoordinatorRig:
    job = CoordinatorRig(sink="plain").up()
    job.lose()
    return job


def checkpointing() -> CoordinatorRig:
    job = CoordinatorRig(sink="plain").up()
    job.trigger()
    return job


def terminating() -> CoordinatorRig:
    job = CoordinatorRig(sink="plain").up()
    job.ended()
    job.saved()
    job.ack(1)
    job.stored(1)
    return job


@pytest.mark.parametrize("stage", [saving, deploying, restarting, checkpointing, terminating])
def test_cancel_at_each_stage(stage: Callable[[], CoordinatorRig]) -> None:
    job = stage()
    assert of(Return, job.command("cancel")) == []
    while len(job.unsaved) > 1:
        assert of(Return, job.saved()) == [], "of a record that was on its way before"
    effects = job.saved()
    assert answer(effects) == (9, None, ""), "once nothing can bring the job back"
    assert end(effects)[::2] == ("cancelled", "by its user")
    for timeout in (
        CheckpointInterval(),
        RestartDelay(),
        RetryTerminate(),
        CheckpointTimeout(CheckpointId(1)),
        DeployTimeout(AttemptId(1)),
        RetryFence(),
        MinimumPause(),
        RetryListing(),
    ):
        assert job.timer(timeout) == [], timeout
    assert [job.running(), job.ended(), job.finished(), job.lose(), job.decline(1)] == [[], [], [], [], []]
    assert answer(job.command("cancel", number=10)) == (10, None, "the job has ended")


def test_cancel_while_what_is_durable_is_read_waits_until_it_is() -> None:
    job = CoordinatorRig(sink="plain")
    job.start(JobRecord(job=1, attempt=1, next_checkpoint=2, version=2))
    assert job.command("cancel") == []
    job.listed()
    job.saved()
    assert of(Return, job.running()) == []
    effects = job.saved()
    assert answer(effects) == (9, None, "")
    assert end(effects) == ("cancelled", None, "by its user")


def test_cancel_answers_the_savepoint_that_it_ends() -> None:
    job = CoordinatorRig().up()
    job.command("savepoint")
    assert of(Return, job.command("cancel", number=10)) == [Return(9, cause=JobClosed(Status.CANCELLED))]
    assert job.saved() == [], "its id is durable by now, but nobody wants it"
    assert answer(job.saved()) == (10, None, "")


def test_cancel_while_it_is_closing_down() -> None:
    job = CoordinatorRig().up()
    job.command("cancel")
    assert answer(job.command("cancel", number=10)) == (10, None, "the job has ended")
    assert answer(job.command("savepoint", number=11)) == (11, None, "the job is ending already")


def test_a_cancelled_attempt_is_shut_out_by_its_number() -> None:
    job = CoordinatorRig().up()
    (save,) = of(SaveJob, job.command("cancel"))
    assert save.record.attempt == 2
    assert [type(effect) for effect in job.ack(1, OP, attempt=1)] == [Discard]


def test_a_job_ends_once() -> None:
    job = terminating()
    assert len(of(EndJob, job.finished())) == 1
    assert job.finished() == []
