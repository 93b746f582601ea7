"""The files that snapshots share, at the coordinator: on what a checkpoint builds, and which files nobody needs
(ABS-9)."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.snapshots.shared_files import SharedFiles
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.protocol.checkpoints import BeingStored, PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.events import Claims, CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle
from unit.core.coordinator_rig import OP, TASKS, complete_snapshot

FORMER, JOB = 1, 2
A, B, C = Handle("a"), Handle("b"), Handle("c")


class Complete:
    """The complete snapshots that are retained."""

    def __init__(self, *snapshots: CompletedCheckpoint) -> None:
        self.all = snapshots


def files(
    *complete: CompletedCheckpoint,
    under_way: UnderWay | None = None,
    begun_from: int | None = None,
    claims: Claims | None = None,
    **settings: Any,
) -> SharedFiles:
    """Of the second job, which retains these snapshots."""
    named = CheckpointId(begun_from) if begun_from is not None else None
    config, increments = Config(**settings), Parts().increments
    way = under_way or UnderWay()
    return SharedFiles(JOB, config, increments, way, Complete(*complete), begun_from=named, claims=claims)


def filed(checkpoint: int, *needed: Handle, **more: Any) -> CompletedCheckpoint:
    return complete_snapshot(checkpoint, **{"job": JOB, "format": "incremental", "files": {OP: needed}, **more})


def pending(checkpoint: int, *needed: Handle, base: CompletedCheckpoint | None = None) -> PendingCheckpoint:
    return PendingCheckpoint(
        checkpoint=CheckpointId(checkpoint), attempt=AttemptId(1), expected=TASKS, files={OP: needed}, base=base
    )


def base(shared: SharedFiles, name: str = "incremental") -> int | None:
    snapshot = shared.base_of(name)
    return snapshot.checkpoint if snapshot is not None else None


# -- on what a checkpoint builds -----------------------------------------------------------


def test_an_incremental_checkpoint_builds_on_the_newest_of_the_job() -> None:
    assert base(files()) is None, "there is none"
    assert base(files(filed(2, A), filed(1, A))) == 2


def test_none_builds_on_a_savepoint() -> None:
    assert base(files(filed(1, A), filed(2, B, savepoint=True))) == 1


def test_a_native_checkpoint_builds_on_nothing() -> None:
    assert base(files(filed(1, A)), "native") is None


def test_none_builds_on_a_canonical_checkpoint_nor_on_an_older_one_behind_it() -> None:
    assert base(files(filed(1, A), filed(2, format="canonical", files={}))) is None


def test_a_chain_has_as_many_checkpoints_as_the_job_says() -> None:
    for increments, expected in ((0, 1), (1, 1), (2, None)):
        assert base(files(filed(1, A, increments=increments), full_every=3)) == expected, increments


def test_of_a_former_job_it_builds_only_on_the_named_snapshot_and_only_if_that_was_claimed() -> None:
    named, other = filed(1, A, job=FORMER), filed(2, B, job=FORMER)
    claims = {CheckpointId(1): True, CheckpointId(2): True}
    assert base(files(named, other, begun_from=1, claims=claims)) == 1
    assert base(files(named, other, begun_from=1, claims={CheckpointId(1): False})) is None
    assert base(files(named, other, begun_from=1)) is None, "nobody said whose it is"
    assert base(files(named, other)) is None


def test_files_are_in_use_once_a_checkpoint_was_to_have_some() -> None:
    shared = files()
    assert not shared.in_use
    shared.base_of("native")
    assert shared.in_use


# -- which files nobody needs ----------------------------------------------------------------


def test_a_file_that_was_let_go_is_unneeded_once_no_retained_snapshot_needs_it() -> None:
    complete = Complete(filed(2, B, C), filed(3, C))
    shared = SharedFiles(JOB, Config(), Parts().increments, UnderWay(), complete)
    assert shared.unneeded() == ()
    shared.let_go((A, B))
    assert shared.unneeded() == (A,)
    assert shared.unneeded() == (), "it is named once"
    complete.all = complete.all[1:]
    assert shared.unneeded() == (B,)
    complete.all = ()
    assert shared.unneeded() == (), "nobody let the other go"


def test_a_record_that_is_being_stored_needs_its_files() -> None:
    under_way = UnderWay()
    under_way.storing = (BeingStored(pending(2), filed(2, A)),)
    shared = files(under_way=under_way)
    shared.let_go((A,))
    assert shared.unneeded() == ()
    under_way.storing = ()
    assert shared.unneeded() == (A,)


def test_a_pending_checkpoint_needs_the_files_that_were_acknowledged_and_those_of_its_base() -> None:
    under_way = UnderWay()
    under_way.pending[CheckpointId(3)] = pending(3, A, base=filed(2, B))
    shared = files(under_way=under_way)
    shared.let_go((A, B, C))
    assert shared.unneeded() == (C,)
    under_way.pending.clear()
    assert shared.unneeded() == (A, B)


# -- a checkpoint is aborted ------------------------------------------------------------------


def test_the_files_that_an_aborted_checkpoint_alone_needed_go_with_it_each_once() -> None:
    assert files(filed(1, A)).freed_by_abort((A, B, B)) == (B,)


def test_a_file_that_another_one_needs_goes_when_that_is_gone() -> None:
    complete = Complete(filed(1, A))
    shared = SharedFiles(JOB, Config(), Parts().increments, UnderWay(), complete)
    assert shared.freed_by_abort((A,)) == ()
    complete.all = ()
    assert shared.unneeded() == (A,)


def test_with_it_go_the_files_that_were_let_go_before_and_only_its_base_still_needed() -> None:
    under_way = UnderWay()
    way, shared = under_way.pending, files(under_way=under_way)
    for acknowledged, freed in (((), (A,)), ((B,), (B, A))):
        way[CheckpointId(2)] = pending(2, *acknowledged, base=filed(1, A))
        shared.let_go((A,))
        assert shared.unneeded() == ()
        way.clear()
        assert shared.freed_by_abort(acknowledged) == freed, acknowledged
