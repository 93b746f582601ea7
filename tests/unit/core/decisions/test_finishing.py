"""Checkpoints after tasks have finished (FIN-1, FIN-2, FIN-3, FIN-8), task by task and in the coordinator's book."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.vocabulary.effects import Block, EndJob, Open, Persist, Report, Rest, Send, Unblock
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint, Poll
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Complete, Finished, Terminate, Trigger
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.status_changes import CheckpointTriggered
from cutproof.reference_impl.core.vocabulary.timeouts import CheckpointInterval, RetryTerminateTasks
from cutproof.reference_impl.core.vocabulary.transactions import BeginTransaction
from unit.core.coordinator_rig import (
    CoordinatorRig,
    addressed,
    deployed,
    discarded,
    end,
    handle,
    sent_to_tasks,
    stored,
    timers,
)
from unit.core.finishing import one_each, tasks_finish
from unit.core.machines import (
    END,
    ENDED,
    ack,
    barrier,
    deliver,
    deploy,
    finished,
    only,
    operator,
    row,
    running,
    sent,
    source,
    take,
    terminate,
    transactional,
    trigger,
    up,
)

SHORT, LONG, OP_0, OP_1, SINK = (TaskId(name) for name in ("short-0", "long-0", "op-0", "op-1", "sink-0"))
TASKS = (SHORT, LONG, OP_0, OP_1, SINK)


def graph(partitioning: str = "hash", sources: tuple[str, ...] = ("short", "long")) -> JobGraph:
    """Two sources of one split each into two tasks, and a sink."""
    return JobGraph(
        (
            *(OperatorSpec(name=name, parallelism=1, splits=(n,), role="source") for n, name in enumerate(sources)),
            OperatorSpec(
                name="op",
                parallelism=2,
                inputs=tuple(EdgeSpec(sender=name, partitioning=partitioning) for name in sources),
            ),
            OperatorSpec(name="sink", parallelism=1, inputs=(EdgeSpec(sender="op", partitioning="hash"),), role="sink"),
        ),
        16,
    )


# -- a task ------------------------------------------------------------------------------------------------------


def covers_the_end_of_source_0(job: CoordinatorRig) -> None:
    """Checkpoint 1 is complete, and source-0 acknowledged it after all its input."""
    job.trigger()
    job.ack(1, "source-0", ended=True)
    job.ack(1, "source-1", "op-0", "op-1", "sink-0")
    job.stored(1)


def test_a_snapshot_states_whether_all_input_had_ended() -> None:
    task = up(source(1))
    task.step(Poll())
    amid = only(Persist, deliver(task, trigger(1)))
    task.step(Poll())
    behind = only(Persist, deliver(task, trigger(2)))
    assert amid.then == (ack("source-0", 1),)
    assert behind.then == (ack("source-0", 2, ended=True),)


def test_the_end_of_data_and_the_end_of_the_partition_are_two_things() -> None:
    task = up(operator())
    assert sent(take(task, END)) == [(0, END)]
    assert sent(take(task, barrier(3))) == [(0, barrier(3))]
    assert deliver(task, terminate(3)) == [Send(0, ENDED), *finished("op-0")]


def test_a_task_that_is_stopped_amid_its_input_ends_no_partition() -> None:
    assert deliver(up(operator()), terminate(3)) == finished("op-0")


def test_a_channel_that_has_ended_delivers_every_barrier() -> None:
    task = up(operator(inputs=2))
    take(task, END, 0)
    assert take(task, barrier(1), 1) == [Block(1)]
    assert Unblock(1) not in take(task, barrier(1), 0)[:1]
    assert sent(take(task, ENDED, 0)) == []
    assert sent(take(task, barrier(2), 1)) == [(0, barrier(2))], "nothing is waited for from it"


def test_an_end_completes_the_alignment_that_waits_for_it() -> None:
    task = up(operator(inputs=2))
    take(task, END, 0)
    assert take(task, barrier(1), 1) == [Block(1)]
    effects = take(task, ENDED, 0)
    assert sent(effects) == [(0, barrier(1))]
    assert effects[-1] == Unblock(1)


def test_a_task_that_starts_a_checkpoint_first_takes_what_was_sent() -> None:
    task = up(operator(inputs=2))
    take(task, END, 0)
    take(task, ENDED, 0)
    assert deliver(task, trigger(4)) == []
    assert sent(take(task, row(1, 1), 1)) == [(0, row(1, 1))]
    take(task, END, 1)
    assert sent(take(task, ENDED, 1)) == [(0, barrier(4))]
    assert sent(deliver(task, trigger(5))) == [(0, barrier(5))]
    assert deliver(task, trigger(5)) == [], "told again"


def test_who_has_finished_only_reports_it() -> None:
    task = up(operator())
    take(task, END)
    deliver(task, terminate(1))
    assert deliver(task, trigger(2)) == finished("op-0")
    assert deliver(task, terminate(1)) == finished("op-0")
    assert take(task, barrier(2)) == []
    assert take(task, ENDED) == []


def test_a_task_that_had_finished_comes_up_finished() -> None:
    assert deliver(operator(), deploy(finished=True)) == [
        Open(),
        *running("op-0")[1:],
        Send(0, END),
        Send(0, ENDED),
        *finished("op-0"),
    ]
    again = deliver(source(3), deploy(finished=True))
    assert again[0] == Rest()
    assert sent(again) == [(0, END), (0, ENDED)]


def test_a_sink_on_its_way_out_opens_no_transaction() -> None:
    sink = up(transactional())
    take(sink, END)
    deliver(sink, terminate(1))
    effects = take(sink, barrier(2))
    assert not [effect for effect in effects if isinstance(getattr(effect, "request", None), BeginTransaction)]


# -- the coordinator ---------------------------------------------------------------------------------------------


def test_who_acknowledged_after_all_its_input_may_go() -> None:
    job = CoordinatorRig(graph=graph()).up()
    job.trigger()
    job.ack(1, SHORT, ended=True)
    job.ack(1, LONG, OP_0, OP_1, SINK)
    effects = job.stored(1)
    assert sent_to_tasks(Terminate, effects) == [(SHORT, Terminate(job=1, attempt=1, checkpoint=1))]
    assert addressed(Complete, effects) == [LONG, OP_0, OP_1, SINK]
    assert RetryTerminateTasks() in timers(effects)
    assert addressed(Terminate, job.timer(RetryTerminateTasks())) == [SHORT], "it is told until it answers"
    job.finished(SHORT)
    assert job.timer(RetryTerminateTasks()) == []


def test_a_checkpoint_after_that_goes_on_without_it() -> None:
    job = CoordinatorRig(graph=graph()).up()
    tasks_finish(job, 1, SHORT)
    assert addressed(Trigger, job.trigger()) == [LONG]
    (snapshot,) = stored(job.ack(2, LONG, OP_0, OP_1, SINK))
    assert snapshot.finished == (SHORT,)
    assert SHORT not in snapshot.handles, "of an operator that has finished as a whole nothing is needed"
    assert addressed(Complete, job.stored(2)) == [LONG, OP_0, OP_1, SINK]


def test_a_task_without_a_running_sender_is_notified_as_a_source_would_be() -> None:
    job = CoordinatorRig(graph=one_each()).up()
    tasks_finish(job, 1, "source-0")
    assert addressed(Trigger, job.trigger()) == ["source-1", "op-0"]


def test_a_task_that_finishes_in_between_is_covered() -> None:
    """It was to acknowledge the checkpoint, and went: those it sent to start the checkpoint in its stead."""
    job = CoordinatorRig(graph=one_each()).up()
    covers_the_end_of_source_0(job)
    assert addressed(Trigger, job.trigger()) == ["source-0", "source-1"]
    assert addressed(Trigger, job.finished("source-0")) == ["op-0"]
    (snapshot,) = stored(job.ack(2, "source-1", "op-0", "op-1", "sink-0"))
    assert snapshot.finished == ("source-0",)
    assert snapshot.handles[TaskId("source-0")] == handle(1, "source-0"), "the operator goes on: its state is kept"


def test_what_is_older_than_the_checkpoint_that_a_task_rests_on_does_not_go_on_without_it() -> None:
    """It took its part of the savepoint amid its records, and nobody heard of it: its end does not stand for that."""
    job = CoordinatorRig(graph=one_each(), concurrent_checkpoints=2).up()
    job.command("savepoint")
    job.saved()
    job.trigger()
    job.ack(2, "source-0", ended=True)
    job.ack(2, "source-1", "op-0", "op-1", "sink-0")
    job.stored(2)
    job.ack(1, "source-1", "op-0", "op-1", "sink-0")
    assert stored(job.finished("source-0")) == []
    (snapshot,) = stored(job.ack(1, "source-0"))
    assert (snapshot.checkpoint, snapshot.finished) == (1, ())


def test_a_task_counts_as_finished_once_all_that_send_to_it_do() -> None:
    """What the one before it said of its own end may be lost: it is told again, and until then nothing is deduced."""
    job = CoordinatorRig(graph=one_each()).up()
    tasks_finish(job, 1, "op-0")
    assert job.machine.ends.finished == ()
    assert addressed(Trigger, job.trigger()) == ["source-0", "source-1"]
    job.finished("source-0")
    assert job.machine.ends.finished == ("source-0", "op-0")
    (snapshot,) = stored(job.ack(2, "source-1", "op-1", "sink-0"))
    assert snapshot.finished == ("source-0", "op-0")


def test_who_acknowledged_and_then_finished_counts_as_finished_as_well() -> None:
    """Or a task behind it that finishes without acknowledging would count as finished, and it would not."""
    job = CoordinatorRig(graph=one_each()).up()
    job.trigger()
    job.ack(1, "source-0", "op-0", ended=True)
    job.ack(1, "source-1", "op-1", "sink-0")
    job.stored(1)
    job.trigger()
    job.ack(2, "source-0", ended=True)
    job.finished("source-0", "op-0")
    (snapshot,) = stored(job.ack(2, "source-1", "op-1", "sink-0"))
    assert snapshot.finished == ("source-0", "op-0")
    assert snapshot.handles[TaskId("source-0")] == handle(1, "source-0")
    assert handle(2, "source-0") in discarded(job.stored(2))


def test_the_last_acknowledgement_may_be_an_end() -> None:
    job = CoordinatorRig(graph=one_each()).up()
    covers_the_end_of_source_0(job)
    job.trigger()
    job.ack(2, "source-1", "op-0", "op-1", "sink-0")
    (snapshot,) = stored(job.finished("source-0"))
    assert snapshot.checkpoint == 2


def test_a_finished_task_that_declines_changes_nothing() -> None:
    job = CoordinatorRig(graph=one_each(), tolerated_failures=0).up()
    covers_the_end_of_source_0(job)
    job.trigger()
    job.finished("source-0")
    assert job.decline(2, "source-0") == []
    (snapshot,) = stored(job.ack(2, "source-1", "op-0", "op-1", "sink-0"))
    assert snapshot.finished == ("source-0",)


def test_what_a_finished_task_still_acknowledges_is_discarded() -> None:
    job = CoordinatorRig(graph=graph()).up()
    job.trigger()
    job.ack(1, SHORT, ended=True)
    job.ack(1, LONG, OP_0, OP_1, SINK)
    job.stored(1)
    job.trigger()
    job.finished(SHORT)
    assert discarded(job.ack(2, SHORT, ended=True)) == [handle(2, SHORT)]
    (snapshot,) = stored(job.ack(2, LONG, OP_0, OP_1, SINK))
    assert snapshot.finished == (SHORT,)


def test_a_finished_tasks_last_state_lives_as_long_as_a_snapshot_refers_to_it() -> None:
    job = CoordinatorRig(graph=one_each()).up()
    tasks_finish(job, 1, "source-0")
    job.trigger()
    job.ack(2, "source-1", "op-0", "op-1", "sink-0")
    assert handle(1, "source-0") not in discarded(job.stored(2))
    job.trigger()
    job.ack(3, "source-1", ended=True)
    job.ack(3, "op-0", "op-1", "sink-0")
    assert handle(1, "source-0") not in discarded(job.stored(3))
    job.finished("source-1")
    job.trigger()
    job.ack(4, "op-0", "op-1", "sink-0")
    assert {handle(1, "source-0"), handle(3, "source-1")} <= set(discarded(job.stored(4)))


def test_a_record_that_is_being_written_keeps_what_it_refers_to() -> None:
    """Two under way: the older completes, and subsumes the snapshot whose state the younger's record names."""
    job = CoordinatorRig(graph=one_each(), concurrent_checkpoints=2).up()
    covers_the_end_of_source_0(job)
    job.trigger()
    job.ack(2, "source-0", ended=True)
    job.trigger()
    job.finished("source-0")
    job.ack(2, "source-1", "op-0", "op-1", "sink-0")
    (younger,) = stored(job.ack(3, "source-1", "op-0", "op-1", "sink-0"))
    assert younger.handles[TaskId("source-0")] == handle(1, "source-0")
    assert handle(1, "source-0") not in discarded(job.stored(2))
    assert handle(1, "source-0") not in discarded(job.stored(3))


def test_a_failure_brings_finished_operators_up_finished() -> None:
    job = CoordinatorRig(graph=graph()).up()
    tasks_finish(job, 1, SHORT)
    job.trigger()
    job.ack(2, LONG, OP_0, OP_1, SINK)
    job.stored(2)
    job.lose(OP_0)
    orders = deployed(job.again())
    assert [task for task, order in orders.items() if order.finished] == [SHORT]
    assert orders[OP_0].handle == handle(2, OP_0)
    assert job.report(Finished, SHORT) == [], "what it says again is known"
    job.running()
    job.timer(CheckpointInterval())
    assert addressed(Trigger, job.saved()) == [LONG]


def test_the_tasks_of_an_operator_that_goes_on_come_up_with_their_last_state() -> None:
    job = CoordinatorRig(graph=one_each()).up()
    tasks_finish(job, 1, "source-0")
    job.trigger()
    job.ack(2, "source-1", "op-0", "op-1", "sink-0")
    job.stored(2)
    job.lose("op-0")
    orders = deployed(job.again())
    assert not any(order.finished for order in orders.values())
    assert orders["source-0"].handle == handle(1, "source-0")


def test_a_state_in_the_coordinators_memory_goes_on_in_later_snapshots_as_well() -> None:
    job = CoordinatorRig(graph=one_each(), snapshots_in_memory=True).up()
    state = TaskState(positions={0: 4})
    job.trigger()
    job.ack(1, "source-0", ended=True, state=state)
    job.ack(1, "source-1", "op-0", "op-1", "sink-0")
    job.saved()
    job.stored(1)
    job.finished("source-0")
    job.trigger()
    (snapshot,) = stored(job.ack(2, "source-1", "op-0", "op-1", "sink-0"))
    assert snapshot.states == {TaskId("source-0"): state}


def test_a_stop_waits_for_those_who_are_still_there() -> None:
    job = CoordinatorRig(graph=graph()).up()
    tasks_finish(job, 1, SHORT)
    job.command("stop-with-savepoint")
    job.saved()
    job.ack(2, LONG, OP_0, OP_1, SINK)
    assert addressed(Terminate, job.stored(2)) == [LONG, OP_0, OP_1, SINK]
    assert end(job.finished(LONG, OP_0, OP_1, SINK)) == ("stopped", 2, "")


def test_when_all_have_finished_the_job_ends_by_a_record_alone() -> None:
    """The news that their input had ended was lost: that they finished tells as much."""
    job = CoordinatorRig(graph=graph()).up()
    job.trigger()
    job.ack(1, *TASKS, ended=True)
    job.stored(1)
    job.finished(*TASKS)
    (snapshot,) = stored(job.saved())
    assert (snapshot.ending, snapshot.handles, snapshot.finished) == (JobEnd.FINISH, {}, TASKS)
    assert end(job.stored(2)) == ("finished", 2, "")


def test_a_final_checkpoint_is_not_stored_before_it_is_triggered() -> None:
    """It awaits no task, and an older savepoint is acknowledged by all while its id is not durable yet."""
    job = CoordinatorRig(graph=graph()).up()
    job.command("savepoint")
    job.saved()
    job.trigger()
    job.ack(2, *TASKS, ended=True)
    job.stored(2)
    job.finished(*TASKS)
    (savepoint,) = stored(job.ack(1, *TASKS))
    assert savepoint.checkpoint == 1
    effects = job.saved()
    assert [one.checkpoint for one in effects if isinstance(one, CheckpointTriggered)] == [3]
    assert [one.checkpoint for one in stored(effects)] == [3]
    job.stored(1)
    assert end(job.stored(3)) == ("finished", 3, "")


def test_nobody_goes_while_the_job_is_ending() -> None:
    job = CoordinatorRig(graph=graph()).up()
    job.trigger()
    job.ended()
    job.saved()
    job.ack(1, *TASKS, ended=True)
    effects = job.stored(1)
    assert addressed(Terminate, effects) == []
    assert not [effect for effect in effects if isinstance(effect, EndJob)]


@pytest.mark.parametrize(
    ("finished_before", "names"),
    [
        ((OP_0, OP_1, SINK), "op as finished, but not all that sends to it: rows of short, long would"),
        ((SHORT, OP_0, OP_1, SINK), "op as finished, but not all that sends to it: rows of long would"),
    ],
)
def test_a_new_operator_before_a_finished_one_is_refused_by_name(
    finished_before: tuple[TaskId, ...], names: str
) -> None:
    snapshot = CompletedCheckpoint(
        checkpoint=CheckpointId(7),
        job=1,
        attempt=AttemptId(1),
        savepoint=True,
        ending=JobEnd.STOP,
        handles={SHORT: Handle("s"), LONG: Handle("l")},
        finished=finished_before,
    )
    job = CoordinatorRig(job=2, graph=graph(), coordinator={"initial": (snapshot,)})
    job.start()
    assert names in job.closed_for


def test_who_reports_is_known_by_its_report() -> None:
    assert finished("op-0") == [Report(Finished(job=1, attempt=AttemptId(3), task=OP_0))]
