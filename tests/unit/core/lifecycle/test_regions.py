"""Failover by region, as the coordinator leads it: what is lost restarts, the others go on in theirs (ABS-6)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.lifecycle.regions import regions
from cutproof.reference_impl.core.vocabulary.causes import Killed, NotUpInTime, TaskFailed
from cutproof.reference_impl.core.vocabulary.effects import Effect, Return, SaveJob, SendToTask
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import (
    Abort,
    Cancel,
    Complete,
    Deploy,
    InputEnded,
    Running,
    Terminate,
    Trigger,
)
from cutproof.reference_impl.core.vocabulary.stages import Working
from cutproof.reference_impl.core.vocabulary.status_changes import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
    RegionRestarted,
    StatusChange,
)
from cutproof.reference_impl.core.vocabulary.timeouts import CheckpointInterval, DeployTimeout, RestartDelay
from unit.core.coordinator_rig import (
    CoordinatorRig,
    addressed,
    answer,
    changes,
    deployed,
    discarded,
    handle,
    of,
    stored,
    timers,
)


def graph(parallelism: int = 2, partitioning: str = "forward") -> JobGraph:
    sender = EdgeSpec(sender="source", partitioning=partitioning)
    return JobGraph(
        (
            OperatorSpec(name="source", parallelism=parallelism, splits=tuple(range(parallelism)), role="source"),
            OperatorSpec(name="sink", parallelism=parallelism, inputs=(sender,), role="sink"),
        ),
        16,
    )


A, B = ("source-0", "sink-0"), ("source-1", "sink-1")


def rig(parallelism: int = 2, **settings: object) -> CoordinatorRig:
    return CoordinatorRig(graph=graph(parallelism), **{"failover": "region", **settings})


def numbers(effects: list[Effect]) -> dict[str, int]:
    """The attempt that each message is addressed to, by task."""
    return {orders.task: orders.message.attempt for orders in of(SendToTask, effects)}


def acknowledge(job: CoordinatorRig, checkpoint: int, **attempts: int) -> list[Effect]:
    """Of every task, in the attempt that it is in; `attempts` by the number of the region."""
    return [
        effect
        for number, region in enumerate(regions(graph()))
        for effect in job.ack(checkpoint, *region, attempt=attempts.get(f"of_{number}", 1))
    ]


def failed_over(job: CoordinatorRig, region: Sequence[str] = B) -> list[Effect]:
    """A region has been lost and comes up again; what is said when it runs."""
    job.lose(region[0], job.machine.attempt_of(TaskId(region[0])))
    job.again()
    return job.running(*region)


# -- what a region is --------------------------------------------------------------------------------------------


def test_a_region_is_what_channels_join() -> None:
    assert regions(graph()) == [A, B]
    assert len(regions(graph(3))) == 3


@pytest.mark.parametrize("partitioning", ["hash", "rebalance"])
def test_any_edge_that_distributes_rows_joins_all(partitioning: str) -> None:
    assert regions(graph(partitioning=partitioning)) == [("source-0", "source-1", "sink-0", "sink-1")]


def test_two_inputs_that_meet_are_one_region_with_what_they_meet_in() -> None:
    inputs = (EdgeSpec(sender="east", partitioning="forward"), EdgeSpec(sender="west", partitioning="forward"))
    east, west = (OperatorSpec(name=name, parallelism=2, splits=(0, 1), role="source") for name in ("east", "west"))
    sink = OperatorSpec(name="sink", parallelism=2, inputs=inputs, role="sink")
    assert regions(JobGraph((east, west, sink), 16)) == [
        ("east-0", "west-0", "sink-0"),
        ("east-1", "west-1", "sink-1"),
    ]


def test_readers_of_one_enumerator_are_one_region() -> None:
    source, sink = graph().operators
    assert regions(JobGraph((msgspec.structs.replace(source, enumerated=True), sink), 16)) == [
        ("source-0", "source-1", "sink-0", "sink-1")
    ]


def test_another_failover_is_refused() -> None:
    with pytest.raises(Refused, match="unknown failover 'half'"):
        Config(failover="half").check()


# -- lost and up again -------------------------------------------------------------------------------------------


def test_a_lost_task_restarts_only_its_region() -> None:
    job = rig().up()
    job.checkpoint(1)
    lost = job.lose("sink-1")
    assert addressed(Cancel, lost) == list(B)
    assert timers(lost) == [RestartDelay()]
    (save,) = job.timer(RestartDelay())
    assert isinstance(save, SaveJob)
    assert save.record.attempt == 2, "a number of its own, durable before it is used"
    effects = job.saved()
    assert of(StatusChange, effects) == [
        AttemptStarted(2, 1, TaskFailed(TaskId("sink-1"), Killed())),
        RegionRestarted(2, 1, (TaskId("source-1"), TaskId("sink-1")), False),
    ]
    assert deployed(effects) == {task: Deploy(job=1, attempt=2, checkpoint=1, handle=handle(1, task)) for task in B}
    assert changes(job.running(*B)) == [(AttemptRunning, None)]
    assert isinstance(job.machine.stage, Working)


def test_without_the_setting_everything_restarts() -> None:
    assert addressed(Cancel, CoordinatorRig(graph=graph()).up().lose("sink-1")) == [
        *("source-0", "source-1"),
        "sink-0",
        "sink-1",
    ]


@pytest.mark.parametrize(
    "settings",
    [{"guarantee": "at-most-once", "sink": "plain"}, {"finishing": "one-by-one"}],
    ids=["no checkpoint to go back to", "tasks are gone before their time"],
)
def test_what_a_region_cannot_do_by_itself_all_do(settings: dict[str, str]) -> None:
    assert len(addressed(Cancel, rig(**settings).up().lose("sink-1"))) == 4


def test_what_is_pending_is_aborted_and_the_survivors_are_notified() -> None:
    job = rig().up()
    job.trigger()
    job.ack(1, "source-0")
    job.command("savepoint")
    job.saved()
    effects = job.lose("sink-1")
    assert [what for what in changes(effects) if what[0] is CheckpointAborted] == [
        (CheckpointAborted, 1),
        (CheckpointAborted, 2),
    ]
    assert addressed(Abort, effects)[:4] == [*("source-0", "source-1"), "sink-0", "sink-1"]
    assert discarded(effects) == [handle(1, "source-0")]
    assert "restart" in answer(effects)[2]
    assert job.machine.under_way.counted == 0


def test_survivors_keep_their_numbers_and_the_region_has_its_own() -> None:
    job = rig().up()
    job.checkpoint(1)
    failed_over(job)
    assert numbers(job.trigger()) == {"source-0": 1, "source-1": 2}
    (snapshot,) = stored(acknowledge(job, 2, of_1=2))
    assert snapshot.attempt == 2
    assert snapshot.handles == {
        "source-0": handle(2, "source-0"),
        "source-1": handle(2, "source-1", 2),
        "sink-0": handle(2, "sink-0"),
        "sink-1": handle(2, "sink-1", 2),
    }
    assert numbers(job.stored(2)) == {"source-0": 1, "source-1": 2, "sink-0": 1, "sink-1": 2}


def test_an_acknowledgement_of_the_regions_older_attempt_is_rejected() -> None:
    job = rig().up()
    failed_over(job)
    job.trigger()
    assert discarded(job.ack(1, "source-1", attempt=1)) == [handle(1, "source-1")]
    assert job.ack(1, "source-0", attempt=1) == [], "a survivor's counts"
    assert discarded(job.ack(1, "source-0", attempt=2)) == [handle(1, "source-0", 2)], "of an attempt it is not in"


def test_no_word_of_the_older_attempt_counts_and_every_word_of_a_survivor_does() -> None:
    job = rig().up()
    failed_over(job)
    assert job.lose("sink-1", 1) == []
    assert addressed(Cancel, job.lose("sink-0", 1)) == list(A)


def test_no_checkpoint_is_taken_while_a_part_is_missing() -> None:
    job = rig().up()
    job.lose("sink-1")
    assert timers(job.timer(CheckpointInterval())) == [CheckpointInterval()]
    assert not job.machine.under_way.pending
    job.again()
    assert timers(job.timer(CheckpointInterval())) == [CheckpointInterval()]
    assert timers(job.running(*B)) == [CheckpointInterval()]
    job.trigger()
    assert list(job.machine.under_way.pending) == [1]


def test_a_command_waits_until_the_region_is_up() -> None:
    job = rig().up()
    job.lose("sink-1")
    assert job.command("savepoint") == []
    job.again()
    assert of(SaveJob, job.running(*B))
    assert changes(job.saved()) == [(CheckpointTriggered, 1)]


def test_it_goes_back_to_a_checkpoint_that_is_being_stored() -> None:
    """The survivors commit it meanwhile: going back to an older one would repeat what they did not."""
    job = rig().up()
    job.checkpoint(1)
    job.trigger()
    job.ack(2)
    job.lose("sink-1")
    assert job.timer(RestartDelay()) == []
    effects = job.stored(2)
    assert addressed(Complete, effects) == ["source-0", "source-1", "sink-0", "sink-1"]
    assert deployed(job.saved())[TaskId("sink-1")].checkpoint == 2


# -- more than one failure ---------------------------------------------------------------------------------------


def test_the_same_region_lost_again_before_it_restarts_is_lost_once() -> None:
    job = rig().up()
    job.lose("sink-1")
    assert job.lose("source-1", 1) == []
    job.timer(RestartDelay())
    assert job.lose("source-1", 1) == [], "its new number is on the way"


def test_another_region_lost_before_the_first_restarts_comes_up_with_it() -> None:
    job = rig(3, restart_attempts=1).up()
    job.lose("sink-2")
    assert addressed(Cancel, job.lose("sink-1", 1)) == [*("source-1", "source-2"), "sink-1", "sink-2"]
    assert sorted(deployed(job.again())) == [*("sink-1", "sink-2"), "source-1", "source-2"]
    assert {job.machine.attempt_of(TaskId(task)) for task in B} == {2}
    assert job.machine.attempt_of(TaskId("sink-0")) == 1


def test_another_region_lost_while_the_first_comes_up_has_both_begin_again() -> None:
    job = rig(3).up()
    job.lose("sink-2")
    job.again()
    job.running("sink-2")
    effects = job.lose("sink-1", 1)
    assert numbers(effects) == {"source-1": 1, "sink-1": 1, "source-2": 2, "sink-2": 2}
    assert numbers(job.again()) == dict.fromkeys(("source-1", "sink-1", "source-2", "sink-2"), 3)
    assert job.report(Running, "sink-2", 2) == []


def test_a_number_that_becomes_durable_late_deploys_nothing() -> None:
    job = rig(3).up()
    job.lose("sink-2")
    job.timer(RestartDelay())
    job.lose("sink-1", 1)
    assert job.saved() == []
    assert numbers(job.again()) == dict.fromkeys(("source-1", "sink-1", "source-2", "sink-2"), 3)


def test_a_number_that_nothing_was_deployed_with_is_no_restart_of_its_own() -> None:
    job = rig(3, restart_attempts=1).up()
    job.lose("sink-2")
    job.timer(RestartDelay())
    job.lose("sink-1", 1)
    job.saved()
    assert sorted(deployed(job.again())) == [*("sink-1", "sink-2"), "source-1", "source-2"]
    job.lose("sink-0", 1)
    assert job.unsaved[-1].closure is not None, "what is lost now has been restarted"


def test_nor_is_it_one_when_all_is_lost_then() -> None:
    job = rig(restart_attempts=1).up()
    job.lose("sink-1")
    job.timer(RestartDelay())
    job.lose("sink-0", 1)
    job.saved()
    assert numbers(job.again()) == dict.fromkeys((*A, *B), 3)


def test_when_all_are_lost_everything_restarts_and_one_restart_is_counted() -> None:
    job = rig(restart_attempts=1).up()
    job.lose("sink-1")
    assert addressed(Cancel, job.lose("sink-0", 1)) == ["source-0", "source-1", "sink-0", "sink-1"]
    assert numbers(job.again()) == dict.fromkeys((*A, *B), 2)


def test_restarts_of_parts_are_counted_too() -> None:
    job = rig(restart_attempts=1).up()
    failed_over(job)
    job.lose("sink-0", 1)
    record = job.unsaved[-1]
    assert record.closure is not None
    assert record.closure.status is Status.FAILED
    assert "1 restarts are used up" in str(record.closure.cause)


def test_a_region_that_does_not_come_up_in_time_takes_all_with_it() -> None:
    job = rig().up()
    job.lose("sink-1")
    assert job.timer(DeployTimeout(AttemptId(1))) == [], "of the attempt that is up"
    job.again()
    effects = job.timer(DeployTimeout(AttemptId(2)))
    assert numbers(effects) == {"source-0": 1, "source-1": 2, "sink-0": 1, "sink-1": 2}
    again = job.again()
    assert of(AttemptStarted, again)[0].cause == NotUpInTime(B)
    assert numbers(again) == dict.fromkeys((*A, *B), 3)


def test_a_new_coordinator_restarts_everything() -> None:
    """It knows the newest number alone, and no attempt of a survivor is newer."""
    job = rig().up()
    job.checkpoint(1)
    job.lose("sink-1")
    (save,) = of(SaveJob, job.timer(RestartDelay()))
    successor = rig()
    successor.start(save.record)
    successor.listed(*job.machine.completed.all)
    assert numbers(successor.saved()) == dict.fromkeys((*A, *B), 3)


# -- the end -----------------------------------------------------------------------------------------------------


def test_a_failure_amid_a_stop_restarts_everything() -> None:
    job = rig().up()
    job.command("stop-with-savepoint")
    job.saved()
    effects = job.lose("sink-1")
    assert len(addressed(Cancel, effects)) == 4
    assert answer(effects)[2]


def test_once_a_part_may_have_finished_no_part_restarts_by_itself() -> None:
    """FLINK-21030: the part that has finished would be missing in what goes on (J21)."""
    job = rig().up()
    job.command("stop-with-savepoint")
    job.saved()
    job.ack(1)
    assert addressed(Terminate, job.stored(1)) == ["source-0", "source-1", "sink-0", "sink-1"]
    job.finished(*A)
    assert len(addressed(Cancel, job.lose("sink-1"))) == 4
    again = deployed(job.again())
    assert sorted(again) == sorted((*A, *B))
    assert all(order.suspended for order in again.values())


def test_a_survivor_that_finishes_meanwhile_stays_finished() -> None:
    job = rig().up()
    job.ended(*A)
    job.trigger()
    job.ack(1, *A, ended=True)
    job.ack(1, *B)
    assert addressed(Terminate, job.stored(1)) == list(A)
    job.lose("sink-1")
    job.finished(*A)
    again = job.again()
    assert deployed(again) == {task: Deploy(job=1, attempt=2, checkpoint=1, handle=handle(1, task)) for task in B}
    job.running(*B)
    assert addressed(Trigger, job.trigger()) == ["source-1"]


def test_a_region_forgets_that_it_had_ended_and_is_ordered_to_finish_later() -> None:
    job = rig().up()
    job.checkpoint(1)
    job.ended(*B)
    failed_over(job)
    for task in A:
        assert job.report(InputEnded, task, 1) == [], "the region has input again, and says so when it has none"
    assert of(SaveJob, job.ended(*B)), "the final checkpoint"


def test_a_job_that_is_cancelled_meanwhile_cancels_each_in_its_attempt() -> None:
    job = rig().up()
    job.lose("sink-1")
    job.again()
    effects = job.command("cancel")
    assert numbers(effects) == {"source-0": 1, "source-1": 2, "sink-0": 1, "sink-1": 2}
    assert of(Return, job.saved())
