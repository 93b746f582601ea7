"""A copy of a snapshot for its user: all its files, then its record, then the answer (SNAP-3)."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.causes import NotCopied
from cutproof.reference_impl.core.vocabulary.effects import CopyFiles, Discard, Effect, Return, StoreCopy, SweepCopies
from cutproof.reference_impl.core.vocabulary.events import (
    Commanded,
    CommandKind,
    CompletedCheckpoint,
    CopyFailed,
    FilesCopied,
    SnapshotCopied,
)
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.defects.snapshots.copies import DeletedBeforeItIsCopied
from unit.core.coordinator_rig import CoordinatorRig, complete_snapshot, of

FIRST = CheckpointId(1)
MISSING = "op-0: the store reported an error"


def job_with(retained: int = 2, parts: Parts | None = None) -> CoordinatorRig:
    """A job with the checkpoints 1 and 2."""
    job = CoordinatorRig(retained_checkpoints=retained, parts=parts).up()
    for checkpoint in (1, 2):
        job.checkpoint(checkpoint)
    return job


def copy(job: CoordinatorRig, kind: CommandKind = CommandKind.COPY, number: int = 9) -> list[Effect]:
    return job.feed(Commanded(number, kind, snapshot=FIRST))


def recorded(effects: list[Effect]) -> CompletedCheckpoint:
    (record,) = effects
    assert isinstance(record, StoreCopy)
    return record.snapshot


def test_the_record_of_a_copy_is_written_once_its_files_are_there_and_the_command_answered_then() -> None:
    job = job_with()
    (files,) = copy(job)
    assert isinstance(files, CopyFiles)
    assert recorded(job.feed(FilesCopied(FIRST))) == complete_snapshot(1)
    assert job.feed(SnapshotCopied(FIRST)) == [Return(9, FIRST)]
    assert copy(job, number=10) == [Return(10, FIRST)], "there is a copy"


@pytest.mark.parametrize("kind", [CommandKind.COPY, CommandKind.MOVE])
def test_only_a_move_deletes_and_only_in_a_move_the_defect_does_so_first(kind: CommandKind) -> None:
    moves = kind is CommandKind.MOVE
    sound, early = job_with(), job_with(parts=Parts(cleanup=(planted := DeletedBeforeItIsCopied())))
    assert of(Discard, copy(sound, kind)) == []
    assert bool(of(Discard, copy(early, kind))) is planted.reached is moves
    for job in (sound, early):
        recorded(job.feed(FilesCopied(FIRST)))
    assert bool(of(Discard, sound.feed(SnapshotCopied(FIRST)))) is moves
    assert of(Discard, early.feed(SnapshotCopied(FIRST))) == []


@pytest.mark.parametrize("kind", [CommandKind.COPY, CommandKind.MOVE])
def test_a_copy_that_lacks_a_file_gets_no_record_and_leaves_nothing(kind: CommandKind) -> None:
    job = job_with()
    copy(job, kind)
    refused = [SweepCopies(), Return(9, cause=NotCopied(FIRST, MISSING))]
    assert job.feed(FilesCopied(FIRST, MISSING)) == refused
    assert of(CopyFiles, copy(job, kind, 10)), "it can be repeated"


def test_a_copy_whose_record_cannot_be_written_leaves_nothing() -> None:
    job = job_with()
    copy(job)
    job.feed(FilesCopied(FIRST))
    assert job.feed(CopyFailed(FIRST, "disk full")) == [SweepCopies(), Return(9, cause=NotCopied(FIRST, "disk full"))]


def test_what_is_moved_is_deleted_once_its_copy_is_complete() -> None:
    job = job_with()
    assert of(Discard, copy(job, CommandKind.MOVE)) == []
    assert of(Discard, job.feed(FilesCopied(FIRST))) == []
    effects = job.feed(SnapshotCopied(FIRST))
    assert of(Discard, effects)[0] == Discard((), FIRST)
    assert effects[-1] == Return(9, FIRST)


def test_who_asks_for_a_copy_that_is_being_made_waits_for_it() -> None:
    job = job_with()
    copy(job)
    assert copy(job, number=10) == []
    recorded(job.feed(FilesCopied(FIRST)))
    assert job.feed(SnapshotCopied(FIRST)) == [Return(9, FIRST), Return(10, FIRST)]


def test_a_snapshot_that_is_subsumed_while_it_is_copied_has_its_record_all_the_same() -> None:
    job = job_with(retained=2)
    copy(job)
    job.checkpoint(3)
    assert recorded(job.feed(FilesCopied(FIRST))) == complete_snapshot(1)


def test_files_for_which_nobody_waits_get_no_record() -> None:
    assert job_with().feed(FilesCopied(FIRST)) == []
