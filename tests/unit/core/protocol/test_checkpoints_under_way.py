"""A pending checkpoint: who acknowledged it, and who is excused; and all checkpoints under way (ABS-3, ABS-4)."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.protocol.checkpoints import BeingStored, PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Ack
from cutproof.reference_impl.core.vocabulary.state import TaskState
from unit.core.coordinator_rig import OP, SINK, SOURCE, TASKS, complete_snapshot, handle


def pending(checkpoint: int = 1, **more: Any) -> PendingCheckpoint:
    return PendingCheckpoint(
        **{"checkpoint": CheckpointId(checkpoint), "attempt": AttemptId(1), "expected": TASKS, **more}
    )


def ack(task: TaskId, checkpoint: int = 1, **more: Any) -> Ack:
    number, attempt = CheckpointId(checkpoint), AttemptId(1)
    return Ack(job=1, attempt=attempt, task=task, checkpoint=number, handle=handle(checkpoint, task), **more)


def under_way(*waiting: PendingCheckpoint, storing: tuple[PendingCheckpoint, ...] = ()) -> UnderWay:
    way = UnderWay()
    way.pending = {one.checkpoint: one for one in waiting}
    way.storing = tuple(BeingStored(one, complete_snapshot(one.checkpoint)) for one in storing)
    return way


# -- one that is pending -----------------------------------------------------------------


def test_it_is_acknowledged_by_all_once_every_expected_task_has_acknowledged() -> None:
    checkpoint = pending()
    before = []
    for task in TASKS:
        before.append(checkpoint.is_acknowledged_by_all)
        checkpoint.acknowledge(ack(task))
    assert (before, checkpoint.is_acknowledged_by_all) == ([False] * 3, True)


def test_a_task_that_nobody_expected_counts_for_none_that_is_expected() -> None:
    checkpoint = pending(expected=(SOURCE, OP))
    checkpoint.acknowledge(ack(SOURCE))
    checkpoint.acknowledge(ack(SINK))
    assert not checkpoint.is_acknowledged_by_all


def test_an_acknowledgement_says_what_the_record_will_need() -> None:
    checkpoint, state = pending(), TaskState(rotations=[1])
    checkpoint.acknowledge(ack(OP, state=state, logs=("l",), files=(Handle("f"),), ended=True, in_flight=True))
    checkpoint.acknowledge(ack(SINK))
    assert checkpoint.acknowledged == {OP: handle(1, OP), SINK: handle(1, SINK)}
    assert (checkpoint.states, checkpoint.files) == ({OP: state}, {OP: (Handle("f"),)})
    assert (checkpoint.logs, checkpoint.ended) == ({OP: ("l",), SINK: ()}, (OP,))
    assert checkpoint.in_flight == {OP: True, SINK: False}


def test_a_repeated_acknowledgement_names_an_ended_task_once() -> None:
    checkpoint = pending()
    for _ in range(2):
        checkpoint.acknowledge(ack(OP, ended=True))
    assert checkpoint.ended == (OP,)


def test_it_goes_on_without_a_task_that_is_excused_and_drops_what_that_acknowledged() -> None:
    checkpoint = pending(expected=(SOURCE, OP))
    checkpoint.acknowledge(ack(SOURCE, state=TaskState(), logs=("l",), files=(Handle("f"),), in_flight=True))
    assert checkpoint.excuse(SOURCE) == handle(1, SOURCE)
    assert (checkpoint.expected, checkpoint.finished) == ((OP,), (SOURCE,))
    assert (checkpoint.acknowledged, checkpoint.states, checkpoint.files) == ({}, {}, {})
    assert (checkpoint.logs, checkpoint.in_flight) == ({}, {}), "no log is needed for its sake"
    assert checkpoint.excuse(OP) is None, "it had not acknowledged"
    assert checkpoint.is_acknowledged_by_all, "nobody is expected any more"


# -- all that are under way ----------------------------------------------------------------


def test_the_job_is_ending_while_a_checkpoint_that_ends_it_is_pending_or_its_record_is_being_stored() -> None:
    last = pending(2, ending=JobEnd.STOP)
    assert not under_way().is_ending
    assert not under_way(pending(1), storing=(pending(2),)).is_ending
    assert under_way(pending(1), last).is_ending
    assert under_way(pending(1), storing=(last,)).is_ending


def test_savepoints_are_not_counted_and_a_checkpoint_is_until_its_record_is_stored() -> None:
    assert under_way(pending(1, savepoint=True), storing=(pending(2, savepoint=True),)).counted == 0
    assert under_way(pending(1), pending(2, savepoint=True), storing=(pending(3), pending(4))).counted == 3


def test_the_records_being_stored_are_those_of_checkpoints_that_all_have_acknowledged() -> None:
    assert under_way(pending(3), storing=(pending(1), pending(2))).records_being_stored == (
        complete_snapshot(1),
        complete_snapshot(2),
    )


def test_the_requests_of_users_are_those_behind_pending_checkpoints() -> None:
    assert under_way(pending(1, command=0), pending(2), pending(3, command=7)).commands == [0, 7]


def test_the_tasks_that_were_triggered_are_those_that_have_not_acknowledged_yet() -> None:
    checkpoint = pending(triggered=(SOURCE, OP))
    checkpoint.acknowledge(ack(SOURCE))
    assert under_way(checkpoint, pending(2, triggered=(SOURCE,))).triggered_tasks == [OP, SOURCE]
