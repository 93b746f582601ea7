"""The coordinator's attempts, takeovers and endings, stepped by hand (ABS-6, ABS-14, OPS-5)."""

from __future__ import annotations

from conductor import (
    OP,
    SINK,
    SOURCE,
    TASKS,
    Conductor,
    addressed,
    answer,
    complete_snapshot,
    discarded,
    end,
    handle,
    handles,
    notes,
    of,
    stored,
    timers,
    told,
)

from cutproof.reference_impl.core.effects import (
    Discard,
    Effect,
    EndJob,
    ListSnapshots,
    Note,
    Return,
    SaveJob,
    SetTimer,
    Sweep,
    Tell,
    Transact,
)
from cutproof.reference_impl.core.events import CompletedSnapshot, JobRecord
from cutproof.reference_impl.core.messages import Cancel, Complete, Deploy, Running, Terminate, Trigger
from cutproof.reference_impl.core.state import TaskState
from cutproof.reference_impl.core.transactions import AbortTransaction, Denied, Done, Fence, NoAnswer

SILENCE = NoAnswer(reason="silence")


def cancels(attempt: int) -> list[Tell]:
    return [Tell(task, Cancel(attempt=attempt)) for task in TASKS]


def deployed(effects: list[Effect]) -> dict[str, Deploy]:
    return dict(told(Deploy, effects))


# -- coming up ---------------------------------------------------------------------------------------------------


def test_an_attempt_is_deployed_only_when_its_number_is_durable() -> None:
    job = Conductor()
    (save,) = job.start()
    assert save == SaveJob(JobRecord(job=1, attempt=1, next_checkpoint=1, version=1))
    assert job.saved() == [
        Note("attempt-started", None, 1, "the job was submitted"),
        *(Tell(task, Deploy(attempt=1)) for task in TASKS),
        SetTimer("deploy 1", 100_000),
    ]


def test_it_runs_when_every_task_says_so() -> None:
    job = Conductor()
    job.start()
    job.saved()
    assert job.running(SOURCE, SINK, SINK) == []
    assert not job.machine.is_running
    assert job.running(OP) == [Note("attempt-running", None, 1), SetTimer("checkpoint", 10_000)]
    assert job.machine.is_running
    assert job.running(OP) == []


def test_tasks_that_do_not_come_up_in_time_are_named() -> None:
    job = Conductor()
    job.start()
    job.saved()
    job.running(OP)
    effects = job.timer("deploy 1")
    assert effects == [*cancels(1), SetTimer("restart", 1_000)]
    assert of(Note, job.again())[0].detail == "source-0, sink-0 did not come up in time"
    assert job.timer("deploy 1") == [], "the timer of an older attempt"


def test_the_deploy_timer_means_nothing_once_it_runs() -> None:
    assert Conductor().up().timer("deploy 1") == []


def test_a_resumed_job_starts_from_what_it_is_given() -> None:
    """The newest of it, whatever its kind; only this job's own endings suspend its sources."""
    initial = (complete_snapshot(3, savepoint=True, ending="stop", job=1), complete_snapshot(2))
    job = Conductor(job=2, coordinator={"first_attempt": 5, "first_checkpoint": 12, "initial": initial})
    assert job.start() == [SaveJob(JobRecord(job=2, attempt=5, next_checkpoint=12, version=1, had_snapshot=True))]
    orders = deployed(job.saved())
    assert orders[OP] == Deploy(attempt=5, checkpoint=3, handle=handle(3, OP))
    job.running()
    assert notes(job.trigger())[0] == ("checkpoint-triggered", 12)


# -- failing and starting again ----------------------------------------------------------------------------------


def test_a_lost_task_restarts_the_whole_dataflow_from_the_newest_checkpoint() -> None:
    job = Conductor().up()
    job.checkpoint(1)
    job.savepoint(2)
    assert job.lose() == [*cancels(1), SetTimer("restart", 1_000)]
    (save,) = job.timer("restart")
    assert isinstance(save, SaveJob)
    assert save.record.attempt == 2
    note, *orders, timer = job.saved()
    assert note == Note("attempt-started", 2, 2, "op-0: it was killed")
    assert orders == [Tell(task, Deploy(attempt=2, checkpoint=2, handle=handle(2, task))) for task in TASKS]
    assert timer == SetTimer("deploy 2", 100_000)


def test_states_from_memory_travel_with_the_deployment() -> None:
    job = Conductor(memory=True).up()
    job.trigger()
    job.ack(1, state=TaskState(positions={0: 7}))
    job.saved()
    job.stored(1)
    job.lose()
    assert deployed(job.again())[SOURCE] == Deploy(attempt=2, checkpoint=1, state=TaskState(positions={0: 7}))


def test_what_is_pending_is_given_up_with_the_attempt() -> None:
    job = Conductor().up()
    job.trigger()
    job.ack(1, OP)
    assert job.lose() == [
        Note("checkpoint-aborted", 1, 1, "the attempt failed: op-0: it was killed"),
        Discard((handle(1, OP),)),
        *cancels(1),
        SetTimer("restart", 1_000),
    ]
    assert job.timer("timeout 1") == []
    job.again()
    job.running()
    assert discarded(job.checkpoint(2)) == [handle(1, SOURCE), handle(1, SINK)]


def test_a_failure_counts_once() -> None:
    job = Conductor().up()
    job.lose()
    assert job.lose(SINK) == []
    job.again()
    assert job.lose(attempt=1) == [], "of the attempt before"
    assert addressed(Cancel, job.lose()) == list(TASKS), "while the next one comes up"


def test_messages_of_an_older_attempt_change_nothing() -> None:
    job = Conductor().up()
    job.lose()
    job.again()
    assert [job.say(Running, task, attempt=1) for task in TASKS] == [[], [], []]
    assert not job.machine.is_running
    job.running()
    job.trigger()
    assert job.decline(1, attempt=1) == []


def test_a_restart_waits_for_a_record_that_is_being_stored() -> None:
    """It may be the newest complete checkpoint by the time that it is answered."""
    job = Conductor().up()
    job.trigger()
    job.ack(1)
    assert job.lose() == [*cancels(1), SetTimer("restart", 1_000)]
    assert job.timer("restart") == []
    (save,) = job.stored(1)
    assert isinstance(save, SaveJob)
    assert ("attempt-started", 1) in notes(job.saved())


def test_a_restart_waits_for_its_delay_too() -> None:
    job = Conductor().up()
    job.trigger()
    job.ack(1)
    job.lose()
    assert job.stored(1) == []
    assert ("attempt-started", 1) in notes(job.again())


def test_a_restart_goes_on_when_the_record_could_not_be_stored() -> None:
    job = Conductor().up()
    job.trigger()
    job.ack(1)
    job.lose()
    job.timer("restart")
    effects = job.store_fails(1)
    assert of(SaveJob, effects)
    assert ("attempt-started", None) in notes(job.saved())


def test_the_book_of_a_failed_attempt_leaves_no_room_taken() -> None:
    job = Conductor().up()
    job.trigger()
    job.lose()
    job.again()
    job.running()
    assert notes(job.trigger())[0] == ("checkpoint-triggered", 2)


def test_restarts_are_used_up_in_the_end() -> None:
    job = Conductor(restart_attempts=1, sink="plain").up()
    job.lose()
    job.again()
    job.running()
    effects = job.lose(SINK, reason="its function raised")
    assert addressed(Cancel, effects) == [*TASKS, *TASKS]
    (save,) = of(SaveJob, effects)
    wanted = "1 restarts are used up; the last cause was sink-0: its function raised"
    assert (save.record.closing, save.record.reason) == ("failed", wanted)
    assert end(job.saved()) == ("failed", None, wanted)
    assert job.lose() == []
    assert job.timer("restart") == []


# -- taking over -------------------------------------------------------------------------------------------------

RECORD = JobRecord(job=1, attempt=4, next_checkpoint=7, version=11, had_snapshot=True)


def took_over(
    *retained: CompletedSnapshot, record: JobRecord = RECORD, **settings: object
) -> tuple[Conductor, list[Effect]]:
    job = Conductor(**settings)
    job.start(record)
    return job, job.listed(*retained)


def test_a_new_coordinator_cancels_the_attempt_it_finds_and_reads_what_is_durable() -> None:
    assert Conductor().start(RECORD) == [*cancels(4), ListSnapshots()]


def test_it_goes_on_from_the_newest_snapshot_with_a_new_attempt_and_new_ids() -> None:
    job, effects = took_over(complete_snapshot(3), complete_snapshot(6, 4), complete_snapshot(5, savepoint=True))
    assert effects == [
        Sweep((*handles(3), *handles(5), *handles(6, 4))),
        SaveJob(JobRecord(job=1, attempt=5, next_checkpoint=7, version=12, had_snapshot=True)),
    ]
    note, *_ = job.saved()
    assert note == Note("attempt-started", 6, 5, "a new coordinator took over")
    job.running()
    assert notes(job.trigger())[0] == ("checkpoint-triggered", 7)
    job.ack(7)
    assert {discard.checkpoint for discard in of(Discard, job.stored(7))} == {3, 6}


def test_a_record_that_cannot_be_read_is_read_again_and_fails_the_job_in_the_end() -> None:
    job = Conductor(sink="plain")
    job.start(RECORD)
    for _ in range(4):
        assert job.listed(complete_snapshot(3), unreadable=(5, 6)) == [SetTimer("list", 3_000)]
        assert job.timer("list") == [ListSnapshots()]
    job.listed(unreadable=(5, 6))
    assert end(job.saved())[::2] == ("failed", "the record of checkpoint 5, 6 cannot be read")


def test_a_record_that_could_be_read_the_second_time_is_used() -> None:
    job = Conductor()
    job.start(RECORD)
    job.listed(unreadable=(6,))
    job.timer("list")
    job.listed(complete_snapshot(6, 4))
    assert ("attempt-started", 6) in notes(job.saved())
    assert job.timer("list") == []


def test_when_its_memory_died_with_it_the_job_fails_and_says_so() -> None:
    """It never starts from nothing silently (ABS-14), and aborts nothing that may be promised."""
    job, effects = took_over(memory=True)
    (save,) = of(SaveJob, effects)
    assert save.record.closing == "failed"
    assert of(Transact, job.saved()) == [Transact(1, Fence(writer=SINK, attempt=5))]
    effects = job.store_answers(1, Done(unfinished=(("sealed", 6), ("open", None))))
    assert [asked.request.name for asked in of(Transact, effects)] == ["open"]
    assert end(effects)[::2] == ("failed", "its snapshots were in the memory of the coordinator that died (ABS-14)")


def test_a_job_that_had_no_snapshot_yet_starts_from_nothing() -> None:
    job, _ = took_over(record=JobRecord(job=1, attempt=1, next_checkpoint=2, version=2))
    assert ("attempt-started", None) in notes(job.saved())


def test_a_coordinator_that_died_closing_a_job_down_leaves_that_to_its_successor() -> None:
    closing = JobRecord(job=1, attempt=4, next_checkpoint=7, version=11, closing="cancelled", reason="by its user")
    job, effects = took_over(complete_snapshot(6, 4), record=closing, sink="plain")
    assert of(SaveJob, effects)[0].record.closing == "cancelled"
    assert end(job.saved()) == ("cancelled", 6, "by its user")


def test_a_job_that_ended_on_a_snapshot_only_finishes_its_commits() -> None:
    job, _ = took_over(complete_snapshot(6, 4, ending="finish"))
    orders = deployed(job.saved())
    assert all(order.suspended for order in orders.values())
    note, *terminates, timer = job.running()
    assert note == Note("attempt-running", None, 5)
    assert terminates == [Tell(task, Terminate(attempt=5, checkpoint=6)) for task in TASKS]
    assert timer == SetTimer("terminate", 3_000)
    assert end(job.finished()) == ("finished", 6, "")


def test_what_a_dead_coordinator_left_is_swept_when_the_job_ends() -> None:
    job, _ = took_over(complete_snapshot(6, 4, ending="finish"))
    job.saved()
    job.running()
    assert of(Sweep, job.finished()) == [Sweep(handles(6, 4))]


def test_an_acknowledgement_while_it_reads_is_left_to_the_sweep() -> None:
    job = Conductor()
    job.start(RECORD)
    assert job.ack(6, attempt=4) == []


# -- the end -----------------------------------------------------------------------------------------------------


def test_when_all_input_has_ended_one_final_checkpoint_is_taken() -> None:
    job = Conductor().up()
    assert job.ended(SOURCE, OP, OP) == []
    (save,) = job.ended(SINK)
    assert isinstance(save, SaveJob)
    assert told(Trigger, job.saved()) == [(SOURCE, Trigger(attempt=1, checkpoint=1))]
    assert job.ended() == []
    (snapshot,) = stored(job.ack(1))
    assert snapshot.ending == "finish"
    effects = job.stored(1)
    assert told(Terminate, effects) == [(task, Terminate(attempt=1, checkpoint=1)) for task in TASKS]
    assert not addressed(Complete, effects)


def test_nothing_else_is_triggered_while_it_ends() -> None:
    job = Conductor(concurrent_checkpoints=3).up()
    job.ended()
    job.saved()
    assert job.timer("checkpoint") == [SetTimer("checkpoint", 10_000)]
    assert answer(job.command("savepoint")) == (9, None, "the job is ending already")


def test_the_final_checkpoint_is_taken_again_when_it_was_given_up() -> None:
    job = Conductor().up()
    job.ended()
    job.saved()
    job.decline(1)
    assert timers(job.timer("checkpoint")) == ["checkpoint"]
    assert notes(job.saved())[0] == ("checkpoint-triggered", 2)


def test_input_that_ended_before_all_run_is_not_forgotten() -> None:
    job = Conductor()
    job.start()
    job.saved()
    job.ended()
    effects = job.running()
    assert [type(effect) for effect in effects] == [Note, SaveJob, SetTimer]
    assert told(Trigger, job.saved())


def test_input_that_ended_in_a_failed_attempt_must_end_again() -> None:
    job = Conductor().up()
    job.ended(SOURCE, OP)
    job.lose()
    job.again()
    job.running()
    assert job.ended(SINK) == []
    assert of(SaveJob, job.ended(SOURCE, OP))


def test_tasks_are_told_to_terminate_until_each_has_finished() -> None:
    job = Conductor().up()
    job.ended()
    job.saved()
    job.ack(1)
    job.stored(1)
    assert job.finished(OP) == []
    assert job.timer("terminate") == [
        Tell(SOURCE, Terminate(attempt=1, checkpoint=1)),
        Tell(SINK, Terminate(attempt=1, checkpoint=1)),
        SetTimer("terminate", 3_000),
    ]
    assert job.finished(OP, SINK) == []
    assert job.finished(SOURCE) == [EndJob("finished", 1, "")]
    assert job.timer("terminate") == []
    assert job.finished(SOURCE) == []


def test_a_failure_while_terminating_starts_over_from_the_final_checkpoint() -> None:
    job = Conductor().up()
    job.ended()
    job.saved()
    job.ack(1)
    job.stored(1)
    job.finished(OP)
    assert addressed(Cancel, job.lose(SINK)) == list(TASKS)
    assert all(order.suspended and order.checkpoint == 1 for order in deployed(job.again()).values())
    assert addressed(Terminate, job.running()) == list(TASKS)
    assert end(job.finished()) == ("finished", 1, "")


def test_at_most_once_ends_without_a_checkpoint() -> None:
    job = Conductor(guarantee="at-most-once", sink="plain").up()
    assert told(Terminate, job.ended()) == [(task, Terminate(attempt=1, checkpoint=None)) for task in TASKS]
    assert end(job.finished()) == ("finished", None, "")


def test_at_most_once_does_not_rewind() -> None:
    job = Conductor(guarantee="at-most-once", sink="plain", coordinator={"initial": (complete_snapshot(3),)})
    job.start()
    assert deployed(job.saved())[OP] == Deploy(attempt=1)


# -- closing down ------------------------------------------------------------------------------------------------


def test_a_cancelled_job_leaves_no_transaction_that_no_checkpoint_covers() -> None:
    job = Conductor().up()
    job.checkpoint(1)
    effects = job.command("cancel")
    assert effects[0] == Return(9)
    assert addressed(Cancel, effects) == list(TASKS)
    assert of(SaveJob, effects)[0].record.closing == "cancelled"
    assert job.saved() == [Transact(1, Fence(writer=SINK, attempt=2))]
    unfinished = (("old", 1), ("newer", 2), ("open", None))
    drop = [Transact(0, AbortTransaction(writer=SINK, attempt=2, name=name)) for name in ("newer", "open")]
    assert job.store_answers(1, Done(unfinished=unfinished)) == [*drop, EndJob("cancelled", 1, "by its user")]
    assert job.store_answers(0, Done()) == []


def test_the_store_is_asked_until_it_answers() -> None:
    job = Conductor().up()
    job.command("cancel")
    job.saved()
    assert job.store_answers(1, SILENCE) == [SetTimer("close", 3_000)]
    assert job.timer("close") == [Transact(1, Fence(writer=SINK, attempt=2))]
    assert job.store_answers(1, Denied(reason="not now")) == [SetTimer("close", 3_000)]
    assert job.store_answers(0, Done()) == [], "of an abort, which nobody waits for"
    assert end(job.store_answers(1, Done())) == ("cancelled", None, "by its user")
    assert job.timer("close") == []


def test_a_record_that_was_being_stored_counts_as_cover() -> None:
    """It was written before the decision to close was: both are durable in this order."""
    job = Conductor().up()
    job.trigger()
    job.ack(1)
    job.command("cancel")
    job.stored(1)
    job.saved()
    assert end(job.store_answers(1, Done(unfinished=(("sealed", 1),)))) == ("cancelled", 1, "by its user")


def test_answers_of_the_store_mean_nothing_before_a_job_closes() -> None:
    assert Conductor().up().store_answers(1, Done()) == []
