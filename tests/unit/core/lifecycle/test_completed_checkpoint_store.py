"""The complete snapshots of a job: which stay, which is restored, and what may not be deleted for them (ABS-6)."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.protocol.checkpoints import BeingStored, PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import Claims, CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.state import LastStates, TaskState
from unit.core.coordinator_rig import GRAPH, OP, TASKS, complete_snapshot, handle, handles

FORMER, JOB = 1, 2
TWO_OPS = JobGraph(
    (
        OperatorSpec(name="source", parallelism=1, splits=(0,), role="source"),
        OperatorSpec(name="op", parallelism=2, inputs=(EdgeSpec(sender="source", partitioning="hash"),)),
    ),
    16,
)
OP_1 = TaskId("op-1")


def store(
    *listed: CompletedCheckpoint,
    named: int | None = None,
    claims: Claims | None = None,
    under_way: UnderWay | None = None,
    graph: JobGraph = GRAPH,
    **settings: Any,
) -> CompletedCheckpointStore:
    """Of the second job, after these snapshots were listed."""
    completed = CompletedCheckpointStore(
        graph,
        Config(**settings),
        Parts(),
        JOB,
        under_way or UnderWay(),
        named=CheckpointId(named) if named is not None else None,
        claims=claims,
    )
    completed.take_over(listed)
    return completed


def own(checkpoint: int, **more: Any) -> CompletedCheckpoint:
    return complete_snapshot(checkpoint, **{"job": JOB, **more})


def former(checkpoint: int, **more: Any) -> CompletedCheckpoint:
    return complete_snapshot(checkpoint, **{"job": FORMER, **more})


def being_stored(*records: CompletedCheckpoint) -> UnderWay:
    under_way = UnderWay()
    under_way.storing = tuple(
        BeingStored(PendingCheckpoint(checkpoint=one.checkpoint, attempt=AttemptId(1), expected=TASKS), one)
        for one in records
    )
    return under_way


def ids(snapshots: list[CompletedCheckpoint] | tuple[CompletedCheckpoint, ...]) -> list[int]:
    return [one.checkpoint for one in snapshots]


def restored(completed: CompletedCheckpointStore) -> int | None:
    snapshot = completed.to_restore()
    return snapshot.checkpoint if snapshot is not None else None


# -- which are retained ----------------------------------------------------------------


def test_without_a_snapshot_there_is_none_to_restore() -> None:
    assert (store().latest, store().to_restore(), store().all) == (None, None, ())


def test_as_many_checkpoints_are_retained_as_the_job_says_and_the_oldest_are_subsumed() -> None:
    completed = store(retained_checkpoints=2)
    assert [ids(completed.add(own(number))) for number in (1, 2, 3, 4)] == [[], [], [1], [2]]
    assert ids(completed.all) == [3, 4]


def test_one_that_completes_behind_a_newer_one_takes_its_place_before_it() -> None:
    completed = store(retained_checkpoints=1)
    completed.add(own(2))
    assert ids(completed.add(own(1))) == [1], "it is subsumed at once"
    assert (ids(completed.all), restored(completed)) == ([2], 2)


def test_savepoints_are_not_subsumed_and_take_no_place() -> None:
    completed = store(retained_checkpoints=1)
    assert [ids(completed.add(own(number, savepoint=number == 1))) for number in (1, 2, 3)] == [[], [], [2]]
    assert ids(completed.all) == [1, 3]


def test_a_snapshot_from_which_the_job_was_resumed_goes_if_it_was_claimed_and_stays_if_not() -> None:
    savepoint, checkpoint = former(1, savepoint=True), former(1)
    for begun_from, claimed, subsumed in ((savepoint, True, [1]), (savepoint, False, []), (checkpoint, False, [])):
        completed = store(begun_from, named=1, claims={CheckpointId(1): claimed})
        assert ids(completed.add(own(2))) == subsumed, (begun_from.savepoint, claimed)
    unclaimed = store(checkpoint)
    assert ids(unclaimed.add(own(2))) == [1], "nobody said whose it is: a checkpoint is the job's"


def test_what_was_listed_is_kept_oldest_first() -> None:
    completed = store(own(3), own(1), own(2))
    assert (ids(completed.all), completed.knows_all) == ([1, 2, 3], True)
    completed.take_over([own(3)], knows_all=False)
    assert (ids(completed.all), completed.knows_all) == ([3], False)


def test_one_that_is_removed_is_returned_and_not_restored_any_more() -> None:
    completed = store(own(1), own(2))
    assert completed.remove(CheckpointId(2)) == own(2)
    assert completed.remove(CheckpointId(2)) is None, "it was not retained any more"
    assert (ids(completed.all), restored(completed)) == ([1], 1)


# -- which is restored -----------------------------------------------------------------


def test_the_latest_is_restored_savepoint_or_not() -> None:
    completed = store(own(1), own(2, savepoint=True))
    assert (restored(completed), completed.latest) == (2, own(2, savepoint=True))


def test_a_job_that_was_begun_from_a_named_snapshot_never_goes_back_to_a_newer_one_of_the_former_job() -> None:
    retained = former(3), former(4), former(5)
    assert restored(store(*retained)) == 5
    completed = store(*retained, named=4)
    assert (restored(completed), ids(completed.all)) == (4, [3, 4, 5]), "but it stays"
    completed.add(own(6))
    assert restored(completed) == 6, "its own may be newer than the named one"


def test_own_savepoints_that_are_never_restored_are_left_out_unless_they_ended_the_job() -> None:
    for kind in ("never-restored", "without-side-effects"):
        completed = store(own(1), own(2, savepoint=True), savepoints=kind)
        assert (restored(completed), ids(completed.all)) == (1, [1, 2]), kind
        assert restored(store(own(1), own(2, savepoint=True, ending=JobEnd.STOP), savepoints=kind)) == 2, kind
        assert restored(store(former(2, savepoint=True), savepoints=kind)) == 2, "a former job's is restored"


# -- the last states of finished tasks ---------------------------------------------------


def with_states(checkpoint: int) -> CompletedCheckpoint:
    return own(
        checkpoint,
        handles={OP: handle(checkpoint, OP), OP_1: handle(checkpoint, OP_1)},
        states={OP: TaskState(rotations=[checkpoint])},
        files={OP: (Handle(f"file {checkpoint}"),), OP_1: (Handle("of op-1"),)},
    )


def test_the_last_state_of_a_finished_task_is_that_of_the_latest_snapshot_with_all_that_it_needs() -> None:
    completed = store(with_states(1), with_states(2), graph=TWO_OPS)
    assert completed.last_states([OP]) == LastStates(
        {OP: handle(2, OP)}, {OP: TaskState(rotations=[2])}, {OP: (Handle("file 2"),)}
    )


def test_there_is_no_last_state_of_an_operator_that_has_finished_as_a_whole() -> None:
    completed = store(with_states(1), graph=TWO_OPS)
    assert completed.last_states([OP, OP_1]) == LastStates()


def test_there_is_no_last_state_without_finished_tasks_or_without_a_snapshot() -> None:
    assert store(with_states(1), graph=TWO_OPS).last_states([]) == LastStates()
    assert store(graph=TWO_OPS).last_states([OP]) == LastStates()


# -- what must not be deleted --------------------------------------------------------------


def test_what_it_needs_are_the_handles_of_the_retained_and_their_files() -> None:
    completed = store(own(1), own(2, files={OP: (Handle("f"),)}))
    assert completed.files == (*handles(1), *handles(2), Handle("f"))
    assert [completed.holds(one) for one in (handle(1, OP), handle(3, OP), Handle("f"))] == [True, False, False]


def test_all_may_be_discarded_while_no_task_has_finished() -> None:
    assert store(own(1)).unneeded(handles(1)) == (handles(1), ())


def test_a_last_state_is_needed_while_any_record_refers_to_it() -> None:
    completed = store(with_states(1), graph=TWO_OPS)
    completed.last_states([OP])
    last, other = handle(1, OP), handle(1, OP_1)
    completed.add(own(2, handles={OP: last}))
    assert ids(completed.all) == [2]
    assert completed.unneeded([other, last]) == ((other,), (last,))
    completed.add(own(3, handles={}))
    assert completed.unneeded([other, last]) == ((other, last), ())


def test_a_record_that_is_being_stored_needs_a_last_state_too() -> None:
    last = handle(1, OP)
    under_way = being_stored(own(2, handles={OP: last}))
    completed = store(own(1, handles={OP: last}, finished=(OP,)), under_way=under_way, graph=TWO_OPS)
    completed.remove(CheckpointId(1))
    assert ids(completed.all_and_being_stored) == [2]
    assert completed.unneeded([last]) == ((), (last,))
    under_way.storing = ()
    assert completed.unneeded([last]) == ((last,), ())


def test_the_last_states_in_records_that_were_listed_are_known() -> None:
    """Another coordinator wrote them, and this one never asked for them."""
    last = handle(1, OP)
    completed = store(own(2, handles={OP: last}, finished=(OP,)), graph=TWO_OPS)
    assert completed.unneeded([last]) == ((), (last,))


# -- from where on input and logs are needed -----------------------------------------------


def test_the_input_of_sources_is_needed_from_the_oldest_on_also_of_one_that_is_being_stored() -> None:
    assert store().oldest is None
    retained = own(3, savepoint=True), own(4)
    assert store(*retained).oldest == 3
    assert store(*retained, under_way=being_stored(own(2), own(5))).oldest == 2


def test_the_input_behind_a_pending_checkpoint_is_needed_too_since_it_may_still_complete() -> None:
    under_way = UnderWay()
    under_way.pending[CheckpointId(2)] = PendingCheckpoint(
        checkpoint=CheckpointId(2), attempt=AttemptId(1), expected=TASKS
    )
    completed = store(own(3), under_way=under_way)
    assert completed.oldest == 2
    under_way.pending.clear()
    assert completed.oldest == 3


def test_the_logs_of_persistent_channels_are_needed_from_the_oldest_checkpoint_on_and_not_for_a_savepoint() -> None:
    settings = {"alignment": "unaligned", "spilling": "continuous"}
    retained = own(1, savepoint=True), own(3)
    assert store(*retained, **settings).logs_from == 3
    assert store(*retained, under_way=being_stored(own(2)), **settings).logs_from == 2
    assert store(own(1, savepoint=True), **settings).logs_from == 1, "later ones are newer than it"
    assert store(*retained).logs_from is None, "the job keeps no logs"


def test_the_logs_that_a_task_takes_its_input_from_again_are_needed_from_the_newest_on_savepoint_or_not() -> None:
    retained, stored_now = (own(1), own(2, savepoint=True)), being_stored(own(3))
    for failover, first in (("local", 2), ("full", 3)):
        completed = store(
            *retained, under_way=stored_now, failover=failover, alignment="unaligned", spilling="continuous"
        )
        completed.remove(CheckpointId(1))
        assert completed.logs_from == first, failover
