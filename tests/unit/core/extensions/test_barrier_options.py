"""What the barriers of a checkpoint say besides its id: when they overtake (FLIP-76), and how snapshots are written
(SNAP-2)."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.barrier_options import BarrierOptions
from cutproof.reference_impl.core.extensions.snapshots.shared_files import SharedFiles
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.protocol.checkpoints import PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.formats import Format
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle
from unit.core.coordinator_rig import GRAPH, OP, TASKS, complete_snapshot


def pending(checkpoint: int, **more: Any) -> PendingCheckpoint:
    return PendingCheckpoint(checkpoint=CheckpointId(checkpoint), attempt=AttemptId(1), expected=TASKS, **more)


def chosen(
    new: PendingCheckpoint,
    *before: PendingCheckpoint,
    complete: CompletedCheckpoint | None = None,
    format_name: str = "",
    **settings: Any,
) -> PendingCheckpoint:
    """The new checkpoint with its options; those `before` it are pending."""
    config, parts, under_way = Config(**settings), Parts(), UnderWay()
    under_way.pending = {one.checkpoint: one for one in before}
    completed = CompletedCheckpointStore(GRAPH, config, parts, 1, under_way, named=None)
    completed.take_over([complete] if complete is not None else [])
    files = SharedFiles(1, config, parts.increments, under_way, completed)
    BarrierOptions(config, under_way, files).choose(new, format_name)
    return new


def timeout_us(new: PendingCheckpoint, *before: PendingCheckpoint, alignment: str = "timeout") -> int | None:
    return chosen(new, *before, alignment=alignment, alignment_timeout_us=500).alignment_timeout_us


# -- when they overtake --------------------------------------------------------------------


@pytest.mark.parametrize(("alignment", "expected"), [("aligned", None), ("unaligned", 0), ("timeout", 500)])
def test_the_alignment_timeout_is_that_of_the_job(alignment: str, expected: int | None) -> None:
    assert timeout_us(pending(1), alignment=alignment) == expected


def test_in_turn_each_checkpoint_has_its_own() -> None:
    assert [timeout_us(pending(number), alignment="in-turn") for number in (3, 4, 5)] == [None, 0, 500]


def test_the_barriers_of_savepoints_and_of_checkpoints_that_end_the_job_never_overtake() -> None:
    assert timeout_us(pending(1, savepoint=True)) is None
    assert timeout_us(pending(1, ending=JobEnd.FINISH)) is None


def test_no_barrier_waits_less_than_one_before_it() -> None:
    """It would overtake the older barrier."""
    assert timeout_us(pending(3), pending(1, alignment_timeout_us=900), pending(2, alignment_timeout_us=0)) == 900
    assert timeout_us(pending(3), pending(2, alignment_timeout_us=0)) == 500


def test_behind_barriers_that_never_overtake_none_does() -> None:
    savepoint = pending(1, savepoint=True, alignment_timeout_us=None)
    assert timeout_us(pending(3), savepoint, pending(2, alignment_timeout_us=0)) is None


# -- how snapshots are written -----------------------------------------------------------------


COMPLETE = complete_snapshot(1, format="incremental", files={OP: (Handle("a"),)})


def test_a_canonical_checkpoint_has_no_format_and_no_base() -> None:
    checkpoint = chosen(pending(2), complete=COMPLETE, snapshot_format="canonical")
    assert (checkpoint.format, checkpoint.base) == (None, None)


def test_an_incremental_checkpoint_names_its_base_and_holds_it() -> None:
    """Its files are needed while the checkpoint is pending."""
    checkpoint = chosen(pending(2), complete=COMPLETE, snapshot_format="incremental")
    assert (checkpoint.format, checkpoint.base) == (Format("incremental", CheckpointId(1)), COMPLETE)


def test_without_a_base_it_names_none() -> None:
    checkpoint = chosen(pending(2), snapshot_format="incremental")
    assert (checkpoint.format, checkpoint.base) == (Format("incremental"), None)


def test_a_format_that_is_asked_for_goes_before_that_of_the_job() -> None:
    assert chosen(pending(2), snapshot_format="incremental", format_name="native").format == Format("native")
    assert chosen(pending(2), snapshot_format="incremental", format_name="canonical").format is None
    assert chosen(pending(2), snapshot_format="canonical", format_name="native").format == Format("native")
