"""A user has a snapshot deleted: what the coordinator answers, and in which order it deletes (SNAP-3)."""

from __future__ import annotations

from cutproof.reference_impl.core.lifecycle.snapshot_listing import ListedSnapshot, listed
from cutproof.reference_impl.core.vocabulary.effects import Discard, Return
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, Handle
from unit.core.coordinator_rig import OP, SOURCE, CoordinatorRig, answer, complete_snapshot, handles, of


def with_two_checkpoints() -> CoordinatorRig:
    job = CoordinatorRig(retained_checkpoints=3).up()
    for checkpoint in (1, 2):
        job.checkpoint(checkpoint)
    return job


def test_the_record_goes_first_then_the_files_then_the_answer() -> None:
    effects = with_two_checkpoints().delete(1)
    assert effects == [Discard((), CheckpointId(1)), Discard(handles(1)), Return(9, CheckpointId(1))]


def test_the_one_that_recovery_would_choose_is_refused() -> None:
    job = with_two_checkpoints()
    assert answer(job.delete(2)) == (9, None, "after a failure the job would restore checkpoint 2")
    assert [one.checkpoint for one in job.machine.retained] == [1, 2]


def test_one_that_is_not_there_is_answered_like_one_that_is() -> None:
    job = with_two_checkpoints()
    job.delete(1)
    assert job.delete(1, number=10) == [Return(10, CheckpointId(1))]


def test_the_command_waits_while_a_task_may_be_loading() -> None:
    job = with_two_checkpoints()
    job.lose()
    assert of(Return, job.delete(1)) == []
    assert [one.checkpoint for one in job.machine.retained] == [1, 2]


def test_the_listing_tells_own_bytes_from_shared_ones() -> None:
    shared = Handle("job-1/chk-1/op-0-1.0")
    one, other = (
        complete_snapshot(number, handles={SOURCE: Handle(f"of {number}")}, files={OP: (shared,)}) for number in (1, 2)
    )
    sizes = {Handle("of 1"): 10, Handle("of 2"): 20, shared: 100}
    assert listed([one, other], sizes) == (
        ListedSnapshot(CheckpointId(1), (Handle("of 1"), shared), 10, 100),
        ListedSnapshot(CheckpointId(2), (Handle("of 2"), shared), 20, 100),
    )
    assert listed([one], sizes) == (ListedSnapshot(CheckpointId(1), (Handle("of 1"), shared), 110, 0),)
